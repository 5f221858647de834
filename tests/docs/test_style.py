"""All that people read is in plain English: no phrase of docs/style.md's table."""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "style.md"
TABLE = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text().split("|---|---|---|\n")[1].splitlines()
]


def phrases(cell: str) -> list[str]:
    """A cell's phrases as patterns: ``^`` begins a sentence, ``…`` is a word, ``#`` a number."""
    return [
        re.escape(phrase)
        .replace(r"\^\ ", r"(?:^|(?<=[.!?] ))(?![^.]*\?)")
        .replace("…", r"[\w'-]+")
        .replace(r"\#", r"\d[\d,.]*")
        for phrase in cell.split(", ")
        if phrase
    ]


def pattern(found: list[str]) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w'-])(?:{'|'.join(found)})(?![\w'-])", re.IGNORECASE)


REFUSED = [(pattern(phrases(bad)), good) for bad, good, _ in TABLE]
FINE = pattern([phrase for *_, fine in TABLE for phrase in phrases(fine)])


def slips(text: str) -> list[str]:
    """Each refused phrase of a text, beside it what to write; code is exempt."""
    prose = re.sub(r"(`+).+?\1", "X", text, flags=re.DOTALL)
    parts = [FINE.sub("~", " ".join(part.split())) for part in re.split(r"\n\s*\n", prose)]
    return [
        f"{found[0]!r} in {part[max(0, found.start() - 40) : found.end() + 40]!r}: {good}"
        for part in parts
        for bad, good in REFUSED
        for found in bad.finditer(part)
    ]


Texts = Iterator[tuple[int, str]]


def of_python(source: str) -> Texts:
    """Every string and comment with its line, docstrings too; a placeholder is ``{}``."""
    yield from _comments(source)
    nodes = list(ast.walk(ast.parse(source)))
    formatted = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    for one in formatted:
        parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in one.values]
        yield one.lineno, "".join(map(str, parts))
    inner = {id(part) for one in formatted for part in one.values}
    for node in nodes:
        if isinstance(node, ast.Constant) and id(node) not in inner:
            yield node.lineno, str(node.value)


def _comments(source: str) -> Texts:
    """Every comment of whole lines, joined, and every one beside code."""
    begins, lines = 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if lines and token.start[0] != begins + len(lines):
            yield begins, " ".join(lines)
            lines = []
        begins = begins if lines else token.start[0]
        lines.append(token.string.lstrip("# "))
    yield begins, " ".join(lines)


def of_java(source: str) -> Texts:
    """Every string with its line: literals that are added directly are one."""
    code = re.sub(r"(?m)^\s*(//|/?\*).*$|'\\?\"'", "", source)
    for found in re.finditer(r'"(?:[^"\\\n]|\\.)*"(?:\s*\+\s*"(?:[^"\\\n]|\\.)*")*', code):
        line = code.count("\n", 0, found.start()) + 1
        yield line, re.sub(r'"\s*\+\s*"', "", found[0]).strip('"')


def of_page(source: str) -> Texts:
    """Every paragraph, row, heading and point of a list, with its line; no blocks of code."""
    page = re.sub(r"(?ms)^ *```.*?^ *```", lambda code: "\n" * code[0].count("\n"), source)
    line = 1
    for text in re.split(r"(\n\s*\n|\n(?=[|#]|\s*[-*] |\s*\d+\. ))", page):
        yield line, re.sub(r"^\s*([-*#]+|\d+\.) ", "", text)
        line += text.count("\n")


PACKAGE = "layers/s3commit/python/s3commit"
KINDS: dict[str, tuple[Callable[[str], Texts], tuple[str, ...]]] = {
    "python": (of_python, ("app.py", "lambdas/*.py", "stacks/*.py", f"{PACKAGE}/**/*.py")),
    "java": (of_java, ("jvm/src/main/java/**/*.java",)),
    "pages": (of_page, ("*.md", "docs/*.md", "docs/guide/*.md")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_refused_phrase_is_read_by_people(kind: str) -> None:
    texts_of, patterns = KINDS[kind]
    files = {file for pattern in patterns for file in ROOT.glob(pattern)} - {PAGE}
    assert len(files) > 20
    found = [
        f"{file.relative_to(ROOT)}:{line}: {slip}"
        for file in sorted(files)
        for line, text in texts_of(file.read_text())
        if " " in text
        for slip in slips(text)
    ]
    assert found == [], "\n".join(["", *found])


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row[0])
def test_every_phrase_of_the_table_is_refused(row: list[str]) -> None:
    for phrase in row[0].split(", "):
        text = phrase.removeprefix("^ ").replace("…", "key").replace("#", "8")
        assert slips(f"{text} so"), phrase
