"""What a program can name: one vocabulary, all of it importable, and checked by its types."""

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest

import s3commit
import s3commit.spark
from docs import gather, reference
from s3commit.cli.app import app
from s3commit.core.model.errors import S3CommitError
from s3commit.writer.options import KEYWORDS
from tests.guide import run_examples
from tests.lake import Lake
from tests.servers import ran

ROOT = Path(__file__).parents[2]
MISUSE = Path(__file__).with_name("misuse.py")
PLACES = (s3commit, s3commit.spark)
PUBLIC = {name: getattr(place, name) for place in PLACES for name in place.__all__}
WRITES = (
    s3commit.open_job,
    s3commit.write_table,
    s3commit.spark.write,
    s3commit.spark.batch_writer,
)
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs" / "guide").glob("*.md")]
EXAMPLES = "".join((one.__doc__ or "").partition("Examples:")[2] for one in PUBLIC.values())
# Of other packages, or of the language.
FOREIGN = {
    *("Any", "Callable", "DataFrame", "Iterable", "Literal", "Mapping", "None", "Sequence"),
    *("False", "Exception", "KeyboardInterrupt", "OSError", "PathLike", "Self", "StructType"),
    "SparkSession",
    *("BaseException", "ReadableBuffer", "True", "TracebackType"),
}


def all_kinds(kind: type[Exception]) -> set[str]:
    return {kind.__name__}.union(*map(all_kinds, kind.__subclasses__()))


def members(thing: Any) -> dict[str, Callable[..., Any]]:
    """The functions that a program calls by this name."""
    if not inspect.isclass(thing) or thing.__module__.startswith("s3commit.core"):  # plain values
        return {"": thing} if callable(thing) and inspect.isfunction(thing) else {}
    named = {name: inspect.unwrap(getattr(one, "fget", one)) for name, one in vars(thing).items()}
    return {
        name: one
        for name, one in named.items()
        if inspect.isfunction(one) and (not name.startswith("_") or name == "__enter__")
    }


def test_a_keyword_has_one_type_and_one_meaning_in_all_calls() -> None:
    known: dict[str, str] = {}
    for call in WRITES:
        for name, one in inspect.signature(call).parameters.items():
            if one.kind is inspect.Parameter.KEYWORD_ONLY:
                assert re.fullmatch("[a-z_]+", name)
                assert known.setdefault(name, one.annotation) == one.annotation, name
                assert one.default in {None, False, "append", "error"}
            assert one.kind is not inspect.Parameter.VAR_KEYWORD, call
    assert {*known} - {"dry_run", "progress", "query"} == KEYWORDS


@pytest.mark.parametrize("name", [name for name in PUBLIC if name != "__version__"])
def test_what_a_signature_or_docstring_names_can_be_imported(name: str) -> None:
    errors = all_kinds(S3CommitError)
    for member, one in members(PUBLIC[name]).items():
        for annotation in inspect.get_annotations(one).values():
            words = {*re.findall(r"\b[A-Z]\w+", str(annotation))}
            assert words - FOREIGN <= {*PUBLIC}, f"{name}.{member}"
        named = {*re.findall(r"\b\w+Error\b", inspect.getdoc(one) or "")}
        assert named - FOREIGN <= {*PUBLIC}, f"{name}.{member}"
    assert {*re.findall(r"\b\w+Error\b", PUBLIC[name].__doc__ or "")} & errors <= {*PUBLIC}


def parts(docstring: str) -> dict[str, str]:
    """The sections of a docstring in Google's style."""
    found = re.split(r"^(Args|Returns|Raises|Examples|Attributes):$", docstring, flags=re.MULTILINE)
    return {"": found[0], **dict(zip(found[1::2], found[2::2], strict=True))}


@pytest.mark.parametrize("name", [name for name, one in PUBLIC.items() if members(one)])
def test_a_docstring_says_all_arguments_in_one_style_and_has_an_example(name: str) -> None:
    whole = inspect.getdoc(PUBLIC[name]) or ""
    made = re.findall(r"ade by `[\w.]+`", whole) or f"s3commit.{name}(" in EXAMPLES
    assert "Examples" in parts(whole) or made, f"neither it nor who makes it has an example: {name}"
    for member, one in members(PUBLIC[name]).items():
        said = parts(inspect.getdoc(one) or "The same.")
        prose, where = " ".join(said[""].split()), f"{name}.{member}"
        assert not re.search(r"\b[Rr]aises? `", prose), f"{where}: in a section of its own"
        taken = {*inspect.signature(one).parameters} - {"self"}
        given = {*re.findall(r"^    (\w+):", said.get("Args", ""), re.MULTILINE)}
        assert given <= taken, where
        assert not given or "Returns" in said, where
        if "keywords that are not below are those of" in prose:
            taken -= KEYWORDS
        assert taken <= given | {*re.findall(r"``(\w+)``", prose)}, where


@pytest.mark.parametrize("name", [name for name in s3commit.__all__ if name != "__version__"])
def test_the_example_of_a_docstring_runs(lake: Lake, tmp_path: Path, name: str) -> None:
    (local := tmp_path / "local").write_text("whole")
    frame = pandas.DataFrame({"n": [1]})
    names = {"s3commit": s3commit, "pandas": pandas, "frame": frame, "local_path": local}
    run_examples(PUBLIC[name], lake.bucket, names)


def test_the_calls_for_who_comes_from_another_library_run(lake: Lake) -> None:
    page = (ROOT / "docs" / "guide" / "coming_from.md").read_text()
    cells = re.findall(r"^\| (?!to |---).*\| (.+) \|$", page, re.MULTILINE)
    names = {"df": pandas.DataFrame({"n": [1], "dt": ["2026-11-21"]}), "pandas": pandas}
    names |= {"path": f"s3://{lake.bucket}/sales/", **vars(s3commit), "undo": s3commit.undo}
    names["write_table"] = s3commit.write_table
    for code in re.findall("`(.+?)`", "".join(cells)):
        if code.startswith("s3commit "):
            _, verb, *words = code.split()
            app.commands[verb].make_context(verb, words)
        elif isinstance(done := eval(code, names), s3commit.CommitResult):
            names["job_id"] = done.job_id
    assert len(cells) == 10


def test_what_a_page_names_can_be_imported_and_no_old_keyword_is_on_one() -> None:
    errors = all_kinds(S3CommitError)
    old = re.compile(r"(?<![\w.-])(?!availableNow)(?:[a-z]+[A-Z]\w*|conflict|scope|frame)=(?!=)")
    for page in PAGES:
        text = page.read_text()
        named = {*re.findall(r"(?<![\w.-])s3commit\.([A-Za-z]\w+)(?=[(`,)])", text)}
        assert named - {"jobs", "spark", "zip"} <= {*PUBLIC}, page.name
        assert old.findall(text) == [], page.name
        assert {*re.findall(r"\b\w+Error\b", text)} & errors <= {*PUBLIC}, page.name


def test_the_reference_is_what_the_docstrings_say_and_the_site_has_every_name_once() -> None:
    page = (ROOT / "docs" / "reference.md").read_text()
    assert page == reference.page(), "python docs/reference.py > docs/reference.md"
    assert {*re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)} >= KEYWORDS
    named = re.findall(r"^::: s3commit\.(?:spark\.)?(\w+)$", gather.docstrings(), re.MULTILINE)
    assert sorted([*named, "__version__"]) == sorted(PUBLIC)


def test_lazy_names_are_there_and_listed() -> None:
    assert {*s3commit.__all__} <= {*dir(s3commit)}
    assert all(getattr(s3commit, name) is not None for name in s3commit.__all__)
    with pytest.raises(AttributeError, match="no attribute 'opne_job'"):
        getattr(s3commit, "opne_job")  # noqa: B009


def test_a_type_checker_finds_each_slip(tmp_path: Path) -> None:
    wanted = {
        number: line.partition("  # ")[2]
        for number, line in enumerate(MISUSE.read_text().splitlines(), 1)
        if "  # " in line
    }
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-pretty"]
    command += ["--ignore-missing-imports", f"--cache-dir={tmp_path}", "--follow-imports=silent"]
    command += ["--disable-error-code=import-untyped"]
    done = ran(*command, MISUSE)
    found = dict[int, str]()
    for number, said in re.findall(r"misuse\.py:(\d+): error: (.*)", done.stdout):
        found[int(number)] = f"{found.get(int(number), '')} {said}"
    assert [number for number in wanted if wanted[number] not in found.get(number, "")] == [], found
    assert {*found} == {*wanted}
