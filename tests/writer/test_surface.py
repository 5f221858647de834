"""What a program can name: one vocabulary, all of it importable, and checked by its types."""

import ast
import inspect
import io
import re
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas
import pytest

import s3commit
import s3commit.spark
from docs import gather, reference
from s3commit.cli.app import app
from s3commit.core.model.errors import S3CommitError
from s3commit.writer.job import Job
from s3commit.writer.options import KEYWORDS
from tests.guide import run_examples
from tests.lake import Lake
from tests.servers import ran

ROOT = Path(__file__).parents[2]
OPTIONS = ROOT / "layers" / "s3commit" / "python" / "s3commit" / "writer" / "options.py"
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
    *("Boto3Session", "SparkSession"),
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
                assert re.fullmatch("[a-z_3]+", name)
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
        assert taken <= given | {*re.findall(r"``(\w+)``", prose)}, where


def test_a_keyword_has_one_text_in_the_docstring_of_each_function() -> None:
    """But for its default and what only the one does, which stand behind it: editors show these."""
    said: dict[str, set[str]] = {}
    for call in (*WRITES, s3commit.undo):
        given = parts(inspect.getdoc(call) or "")["Args"]
        for name, text in re.findall(r"^    (\w+): (.*(?:\n     .*)*)", given, re.MULTILINE):
            first = re.split(r"; by default|\. |\.$", " ".join(text.split()))[0]
            said.setdefault(name, set()).add(first)
        assert {*inspect.signature(call).parameters} <= {*said}, call
    assert {name: texts for name, texts in said.items() if len(texts) > 1} == {}


def documented(source: str) -> set[str]:
    """``class.name`` of each assignment with a text behind it, as editors find them."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        body, where = getattr(node, "body", []), getattr(node, "name", "")
        for one, text in pairwise(body if isinstance(body, list) else []):
            if isinstance(text, ast.Expr) and isinstance(one, ast.Assign | ast.AnnAssign):
                target = one.target if isinstance(one, ast.AnnAssign) else one.targets[0]
                found.add(f"{where}.{ast.unparse(target).removeprefix('self.')}".lstrip("."))
    return found


INHERITED = {*dir(io.BufferedIOBase), *dir(OSError)}
CORE = {"JobDirectory", "PendingFile"}  # documents: their docstrings say all that needs a word


@pytest.mark.parametrize("name", [name for name in PUBLIC if name != "__version__"])
def test_what_is_completed_has_a_docstring(name: str, job: Job) -> None:
    """Of an alias, of fields, and of what a job, its tasks and its files have."""
    one = PUBLIC[name]
    source = Path(sys.modules[one.__module__].__file__ or "") if inspect.isclass(one) else OPTIONS
    texts = documented(source.read_text())
    if not (inspect.isclass(one) or callable(one)):
        assert name in texts
    task = job.task("0")
    made: dict[str, Any] = {"Job": job, "Task": task, "PendingUpload": task.open("a")}
    shown = made.get(name, one)
    if not inspect.isclass(one) or name in CORE:
        return
    for each in {*dir(shown), *getattr(one, "__dataclass_fields__", ())} - INHERITED:
        member = inspect.getattr_static(one, each, None)
        method = inspect.isroutine(member) or isinstance(member, property)
        prose = any(f"``{each}``" in (kind.__doc__ or "") for kind in one.__mro__)
        known = texts & {f"{name}.{each}", f"__init__.{each}"} or (method and member.__doc__)
        assert each[0] == "_" or prose or known, f"{name}.{each}"


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
    assert {*s3commit.__all__} == {*dir(s3commit)} - {"spark"}
    assert {*s3commit.spark.__all__} == {*dir(s3commit.spark)}
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
