"""Prints docs/reference.md from the signatures and docstrings of the public names."""

import ast
import inspect
import re
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

import s3commit
from s3commit.spark import batch_writer, write

WRITES: Final = (write, batch_writer, s3commit.write_table, s3commit.open_job)
PAGE: Final = """# Python reference

From the docstrings (`python docs/reference.py`).

## Keywords of a write

`write_table` and `open_job` have no session: their defaults are then `static`, `snappy`, no limit
and the bucket's encryption.

| keyword | meaning | not in |
|---|---|---|
{keywords}
`help(s3commit.spark.read)` and `help(s3commit.undo)` have the other arguments.

## `CommitResult`

{result}"""


def page() -> str:
    """The whole page."""
    told = {name: text for one in reversed(WRITES) for name, text in _arguments(one)}
    told |= dict(_arguments(write))
    return PAGE.format(
        keywords="".join(
            f"| `{name}` | {told[name]}{_default(name)} | {_lacking(name)} |\n"
            for name in dict.fromkeys(name for one in WRITES for name in _keywords(one))
        ),
        result=_fields(s3commit.CommitResult),
    )


def _keywords(call: Callable[..., Any]) -> list[str]:
    known = inspect.signature(call).parameters.items()
    return [name for name, one in known if one.kind is inspect.Parameter.KEYWORD_ONLY]


def _default(name: str) -> str:
    """Its default, if that says something, and the calls that have another one."""
    found: dict[str, list[str]] = {}
    for call in WRITES:
        if default := name in _keywords(call) and inspect.signature(call).parameters[name].default:
            found.setdefault(f"`{default}`", []).append(f"`{call.__name__}`")
    said = "; ".join(f"{one} in {', '.join(calls)}" for one, calls in found.items())
    return f" By default {said}." if said else ""


def _lacking(name: str) -> str:
    return ", ".join(f"`{one.__name__}`" for one in WRITES if name not in _keywords(one))


def _arguments(call: Callable[..., Any]) -> list[tuple[str, str]]:
    """The names of a docstring's arguments, with their texts as Markdown."""
    told = (inspect.getdoc(call) or "").partition("\nArgs:\n")[2].partition("\n\n")[0]
    found = re.split(r"^    (\w+): ", told, flags=re.MULTILINE)[1:]
    return [(name, _markdown(text)) for name, text in zip(found[::2], found[1::2], strict=True)]


def _markdown(text: str) -> str:
    text = re.sub(r"\(docs/([\w/]+)\.md\)", r"([more](\1.md))", " ".join(text.split()))
    text = text.replace("``", "`").strip()
    return text[:1].upper() + text[1:]


def _fields(of: type) -> str:
    """A class's docstring, and its fields with theirs, which only the source has."""
    body = [*ast.iter_child_nodes(ast.parse(inspect.getsource(of)).body[0])]
    rows = "".join(
        f"| `{ast.unparse(field.target)}` | {_markdown(ast.literal_eval(text.value))} |\n"
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
    )
    return f"{_markdown(of.__doc__ or '')}\n\n| field | meaning |\n|---|---|\n{rows}"


if __name__ == "__main__":
    sys.stdout.write(page())
