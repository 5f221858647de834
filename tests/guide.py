"""The guide's pages and the docstrings' examples as programs, with what they say is printed."""

import doctest
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

GUIDE = Path(__file__).parents[1] / "docs" / "guide"
EXPECTED = re.compile(r"print\(.*\)  # (?P<output>.+)$")


def blocks(page: Path, language: str, indent: str = "") -> list[str]:
    """The page's code blocks of that language, indented so far."""
    found = rf"^{indent}```{language}\n(.*?)^{indent}```$"
    return re.findall(found, page.read_text(), re.DOTALL | re.MULTILINE)


def program(page: Path) -> tuple[str, list[str]]:
    """The page's Python as one program, and what its lines say that they print."""
    code = "\n".join(blocks(page, "python"))
    expected = [found["output"] for line in code.splitlines() if (found := EXPECTED.search(line))]
    assert code.count("print(") == len(expected), "each print says what it prints"
    return code, expected


def run_page(page: Path, directory: Path, place: str) -> list[str]:
    """Run the page as one program whose ``lake`` is ``place`` (``bucket`` or ``bucket/prefix``).

    It runs as a module, so that other processes find its functions. Returns what its lines say
    that they print.
    """
    code, expected = program(page)
    file = directory / "guide_page.py"
    file.write_text(re.sub(r'(//|")lake/', rf"\g<1>{place}/", code))
    spec = importlib.util.spec_from_file_location("guide_page", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["guide_page"] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules["guide_page"]
    return expected


def run_examples(thing: Any, place: str, names: dict[str, Any]) -> None:
    """Run the examples of a docstring, whose ``lake`` is ``place``, and compare what they show."""
    for example in doctest.DocTestParser().get_examples(thing.__doc__ or ""):
        source = example.source.replace("s3://lake/", f"s3://{place}/")
        if example.want:
            assert f"{eval(source, names)!r}\n" == example.want, source
        else:
            exec(source, names)
