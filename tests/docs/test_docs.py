"""The documents say what the code does."""

import json
import re
import shlex
import subprocess
import sys
import textwrap
from codeop import compile_command
from collections.abc import Collection
from dataclasses import is_dataclass
from importlib import import_module
from itertools import chain
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, get_args, get_type_hints

import pytest

import s3commit.core.documents as core_documents
from docs import gather
from s3commit.cli.app import app
from s3commit.core.calls.routes import STEPS
from s3commit.core.formats.codec import Codec
from s3commit.core.formats.layout import DECISION_FILE, PIPELINE, JobDirectory
from s3commit.core.formats.strict_json import member_name
from s3commit.core.model.destination import Destination
from s3commit.core.model.fields import Name

JOB = "0b6f6f0e-0000-4000-8000-000000000001"
ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "layers" / "s3commit" / "python" / "s3commit"
TESTS = {
    name
    for file in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^ *def (test_\w+)\(", file.read_text(), re.MULTILINE)
}
LINK = re.compile(r"\[(.+?)\]\((0.+?)\)").findall
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def printed(script: str) -> str:
    """What a script in docs/ prints."""
    command = [sys.executable, str(ROOT / "docs" / script)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_picture_of_the_states_is_the_codes_table() -> None:
    assert f"```mermaid\n{printed('states.py')}```" in (ROOT / "docs" / "protocol.md").read_text()


def test_the_table_of_the_states_has_each_with_its_function_and_module() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", page, re.MULTILINE))
    for step, function in STEPS.items():
        assert f"`{step}`" in rows[function]
        module = "_".join(re.findall("[A-Z][a-z]+", step)).lower()
        assert (PACKAGE / "core" / "commit" / f"{module}.py").exists()


def on_pages(pattern: str) -> list[tuple[Path, Any]]:
    """What is found on each page, which are many."""
    found = [(page, one) for page in PAGES for one in re.findall(pattern, page.read_text())]
    assert len(found) > 10
    return found


def test_every_link_leads_to_a_page_and_to_a_heading_of_it() -> None:
    for page, (target, anchor) in on_pages(r"\]\(([^)#]*)(?:#([^)]*))?\)"):
        linked = page.parent / target if target else page
        if "://" not in target:
            assert linked.exists(), f"{page.name} links to {target}"
            assert not anchor or anchor in anchors(linked), f"{page.name}: {target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives the page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


PASTED = [page for page in PAGES if "```python" in page.read_text() and page.stem != "airflow"]


@pytest.mark.parametrize("page", PASTED, ids=lambda page: page.stem)
def test_a_block_of_python_can_be_pasted_into_an_interactive_session(page: Path) -> None:
    """Python 3.11 reads it line by line: an empty line ends an indented block, and nothing else."""
    for block in re.findall(r"^ *```python\n(.*?)^ *```$", page.read_text(), re.M | re.DOTALL):
        lines: list[str] = []
        for line in [*textwrap.dedent(block).splitlines(), ""]:
            lines.append(line)
            if compile_command("\n".join(lines)) is not None:
                lines = []
        assert lines in ([], [""])


def test_every_path_that_is_named_exists() -> None:
    pattern = r"`((?:tests|docs|bench|acceptance|stacks|lambdas|core|aws|local)/[\w./-]*[\w/])`"
    for page, path in on_pages(pattern):
        assert (ROOT / path).exists() or (PACKAGE / path).exists(), f"{page.name} names {path}"


def test_the_table_of_the_directories_has_each_and_names_modules_that_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text().partition("## The directories")[2]
    rows = dict(re.findall(r"^\| `([a-z_/]+/)` \| (.+) \|$", page, re.MULTILINE))
    there: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*/[a-z]*.py"):
        there.setdefault(f"{path.parent.relative_to(PACKAGE)}/", set()).add(path.stem)
    assert {*rows} == {*there} - {"core/"}
    for directory, text in rows.items():
        assert {*re.findall(r"`(\w+)`", text)} <= there[directory], directory


def test_every_decision_that_is_referred_to_has_its_page() -> None:
    """In documents and in comments: an absorbed page's number is nowhere any more."""
    there = {int(page.name[:4]) for page in (ROOT / "docs" / "adr").glob("0*.md")}
    folders = ("layers", "lambdas", "stacks", "tests", "bench", "acceptance")
    files = [*PAGES, *(file for folder in folders for file in (ROOT / folder).rglob("*.py"))]
    named = {
        (int(number), str(file.relative_to(ROOT)))
        for file in files
        for number in re.findall(r"\b(?:ADR |adr/)0*([1-9]\d*)", file.read_text())
    }
    assert len(named) > 20
    assert {(number, file) for number, file in named if number not in there} == set()


def test_i12_every_threat_has_what_stops_it_and_a_test() -> None:
    head = "| threat | what stops it | test |\n|---|---|---|\n"
    _, table = (ROOT / "docs" / "security.md").read_text().split(head)
    rows = [line.strip("|").split("|") for line in table.split("\n\n")[0].splitlines()]
    assert len(rows) > 25
    for threat, stop, test in rows:
        assert threat.strip() and stop.strip()
        names = [f"test_{name}" for name in re.findall(r"`(\w+)`", test)]
        assert names and {*names} <= TESTS, threat


def test_every_test_that_is_named_exists() -> None:
    for page, (path, name) in on_pages(r"`(tests/[\w./-]+\.py)::(\w+)`"):
        assert f"def {name}(" in (ROOT / path).read_text(), f"{page.name} names {path}::{name}"


def test_i12_the_names_in_the_protocol_are_the_codes() -> None:
    """With 128 bits nobody finds a second destination of the same name."""
    directory, digits = JobDirectory(Destination("b", "t/"), JOB), "[0-9a-f]{32}"
    assert re.fullmatch(f"{PIPELINE}{JOB}-{digits}/", directory.pipeline_prefix)
    assert re.fullmatch(f"{PIPELINE}_keys/{digits}/_sha.json", directory.key_note("sha"))
    page = (ROOT / "docs" / "protocol.md").read_text()
    objects = page.split("## Objects in S3")[1].split("\n## ")[0]
    keys = ("<job_id>-<32 digits", "_keys/<32 digits", "_commits/_once/_<digest>")
    for name in (*keys, DECISION_FILE):
        assert name in objects


def test_the_example_of_the_event_has_all_that_its_schema_names() -> None:
    page = (ROOT / "docs" / "events.md").read_text()
    (example,) = re.findall(r"```json\n(\{\n  \"source\".+?)\n```", page, re.DOTALL)
    schema = json.loads((ROOT / "docs" / "events.schema.json").read_text())
    assert list(json.loads(example)["detail"]) == list(schema["properties"])


def test_the_releases_of_spark_are_those_that_are_tested() -> None:
    [tested] = re.findall(r"^SPARKS \?= (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    page = (ROOT / "docs" / "matrix.md").read_text()
    assert re.findall(r"\b\d\.\d\.\d\b", page.split("\n| Spark")[0]) == tested.split()
    named = re.findall(r"\d\.\d", "".join(re.findall(r"^\| (\d[\d., ]+) \|", page, re.MULTILINE)))
    assert named == [release[:3] for release in tested.split()]


def test_the_counts_of_hadoops_tests_are_the_sums_of_their_table() -> None:
    """Each suite names tests here that state the same."""
    words = " ".join((page := (ROOT / "docs" / "proof.md").read_text()).split())
    rows = re.findall(r"^\| [^|]+ \| (\d+) \| (\d+) \| (\d+) \| (.+) \|$", page, re.MULTILINE)
    passes, differ, left = (sum(int(row[column]) for row in rows) for column in range(3))
    assert f", {passes} of the tests of Hadoop's" in words
    assert f" pass, {differ} differ on purpose, and {left} do not apply" in words
    for row in rows:
        for path in re.findall(r"`(tests/[^`]+)`", row[3]):
            assert "def test_" in (ROOT / path).read_text()


# The site and the index


SITE = {
    str(page.relative_to(ROOT))
    for pattern in gather.PAGES
    for page in ROOT.glob(pattern)
    if "adr" not in page.parts
}


def test_the_sites_navigation_has_every_page_once() -> None:
    nav = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    named = re.findall(r"([\w/]+\.md)$", nav, re.MULTILINE)
    assert sorted(named) == sorted([*SITE, "docs/adr/README.md"])


def test_the_index_has_every_page_of_the_documentation() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {str(page.relative_to(ROOT)) for page in gather.links(index)}
    ours = {page for page in SITE if page.startswith("docs/")} - {"docs/README.md"}
    assert ours - linked == set()


def test_what_is_gathered_keeps_its_place_and_brings_what_it_shows(tmp_path: Path) -> None:
    site = tmp_path / "site"
    gather.gather(site)
    assert {page for page in SITE if not (site / page).exists()} == set()
    drawn = [picture.name for picture in (ROOT / "docs" / "pictures").iterdir()]
    assert {picture.name for picture in (site / "docs" / "pictures").iterdir()} == {*drawn}
    long = "a_name_of/a.test-that_is_long"
    shown = gather.on_page_content(f"<code>{long}</code>, {long}, <code>_short.json</code>")
    assert shown.replace("<wbr>", "|") == (
        f"<code>a_|name_|of/|a.|test-|that_|is_|long</code>, {long}, <code>_short.json</code>"
    )


# How the project is worked on


def test_the_index_of_decisions_has_the_fate_of_each_number() -> None:
    folder = ROOT / "docs" / "adr"
    listed, gone = (folder / "README.md").read_text().split("\nNo page is left")
    there = {page.read_text().split("\n")[0]: page.name for page in folder.glob("0*.md")}
    assert {f"# {text}": name for text, name in LINK(listed)} == there
    fates = re.findall(r"\d+", re.sub(r"\b(of|by)\s\d+", "", gone))
    numbers = [int(number) for number in [*re.findall(r"# (\d+)\.", "".join(there)), *fates]]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))


OF_THE_PIPELINE = {"pages", "partition_list", "plan", "replace_list", "ticket"}  # nobody else reads


def members_of(
    kind: type, formed: Collection[str] = (), unwritten: Collection[str] = ()
) -> set[str]:
    """The names of a record's members in a document, and of those of the records in it.

    Those that are ``formed`` are no objects there.
    """
    found = set()
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if name not in unwritten:
            parts = [hint, *get_args(hint), *chain.from_iterable(map(get_args, get_args(hint)))]
            found.add(next((one.name for one in parts if isinstance(one, Name)), member_name(name)))
            records = [one for one in parts if isinstance(one, type) and is_dataclass(one)]
            found |= set().union(*map(members_of, records if name not in formed else ()))
    return found


def documents() -> list[tuple[str, Codec[Any]]]:
    names = {one.name for one in iter_modules(core_documents.__path__)} - OF_THE_PIPELINE
    modules = [import_module(f"{core_documents.__name__}.{name}") for name in sorted(names)]
    found = [(each.__name__, one) for each in modules for one in vars(each).values()]
    return [(name.rpartition(".")[2], one) for name, one in found if isinstance(one, Codec)]


@pytest.mark.parametrize(("name", "codec"), documents())
def test_each_member_of_a_document_is_in_the_protocol(name: str, codec: Codec[Any]) -> None:
    formats = (ROOT / "docs" / "protocol.md").read_text()
    written = {*re.findall(r'["`](\w+)["`]', formats)}
    assert sorted(members_of(codec.kind, codec.forms, codec.unwritten) - written) == [], name


def test_each_claim_of_the_comparison_has_a_source_and_the_page_a_date() -> None:
    page = (ROOT / "docs" / "comparison.md").read_text()
    assert re.search(r"were read on 20\d\d-\d\d-\d\d", page)
    committers, notes, formats = re.split(r"^## (?:Notes|Commit state unknown)$", page, flags=re.M)
    source = r"\]\(https://|[A-Z]+-\d+|`\w+\.\w+`|`\w+`\.$"  # a page, an issue, a method
    told = re.split(r"^\d+\. ", notes, flags=re.M)[1:]
    assert [one for one in told if not re.search(source, one.strip())] == []
    rows = re.findall(r"^\| (?!\||---|\*\*s3commit)(.+?) \|(.+)\|$", committers, re.M)
    judged = [(name, cells) for name, cells in rows if "✓" in cells or "✗" in cells]
    marks = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
    named = re.findall(r"[⁰¹²³⁴⁵⁶⁷⁸⁹]+", str(judged))
    assert {int(one.translate(marks)) for one in named} == {*range(1, len(told) + 1)}
    linked = re.findall(r"^\| (?!\||---)(.+?) \|", formats, re.M)
    assert [name for name in linked if "](" not in name] == []


def test_each_decision_says_what_it_rests_on() -> None:
    """So that it is looked at again when that changes."""
    pages = sorted((ROOT / "docs" / "adr").glob("0*.md"))
    assert [page.name for page in pages if "\n**Rests on.** " not in page.read_text()] == []


def test_the_forms_name_options_that_exist() -> None:
    named = []
    for form in (ROOT / ".github").rglob("*.[ym][md]*"):
        for verb, words in re.findall(r"`s3commit (\w*)([^`]*)`", form.read_text()):
            command = app.commands[verb] if verb else app
            known = {option for one in command.params for option in one.opts} | {"--version"}
            named += (found := re.findall(r"--[\w-]+", words))
            assert {*found} <= known, f"{form.name}: s3commit {verb}{words}"
    assert "--json" in named


def test_a_workflow_runs_pinned_actions_and_targets_that_exist() -> None:
    targets = re.findall(r"^([\w-]+):", (makefile := (ROOT / "Makefile").read_text()), re.MULTILINE)
    sparks = re.findall(r"^SPARKS \?= (.+)$", makefile, re.MULTILINE)[0].split()
    flows = [flow.read_text() for flow in (ROOT / ".github" / "workflows").glob("*.yml")]
    uses = re.findall(r"uses: (.+)", "".join(flows))
    assert [one for one in uses if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", one)] == []
    nightly = re.findall(r"^ {10}- (.+)$", "".join(flows), re.MULTILINE)
    assert {"test-long", "coverage mutants", "site"} < {*nightly}
    assert [one[14:] for one in nightly if one.startswith("matrix SPARKS=")] == sparks
    pieces = [one.split("=")[-1] for one in nightly if one.startswith("spark-suites ARGS=--piece=")]
    assert pieces == [f"{number}/{len(pieces)}" for number in range(1, len(pieces) + 1)] != []
    made = [*re.findall(r"run: make (?:--silent )?([\w-]+)", "".join(flows)), *nightly]
    words = {word for one in made for word in shlex.split(one) if "=" not in word}
    assert {"soak", "fuzz", "chaos", "mutants"} < words <= {*targets}


GOOD = ("core: keep a state", "Merge api: one", "fixup! core: keep a state", "core: " + "k" * 66)
BAD = ("core: " + "k" * 67, "A record keeps its state", "core: keep a state.", "core:keep a state")


@pytest.mark.parametrize("subject", [*GOOD, *BAD])
def test_a_subject_has_an_area_and_72_characters(tmp_path: Path, subject: str) -> None:
    """By git's hook, and by CI's range of commits."""
    (message := tmp_path / "message").write_text(f"# a comment\n{subject}\n\nWhy.\n")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-qm", subject, "--allow-empty"], check=True)
    for given in (str(message), "HEAD"):
        hook = [sys.executable, str(ROOT / ".githooks" / "commit-msg"), given]
        done = subprocess.run(hook, cwd=tmp_path, stdout=subprocess.DEVNULL, check=False)
        assert (done.returncode == 0) == (subject in GOOD)
