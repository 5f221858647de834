"""The guide's code runs, as one program a page, against a bucket with a pipeline stand-in."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from s3commit.writer.config import parse_config
from s3commit.writer.options import KNOWN
from tests.lake import Lake, lake_on

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
PYTHON = GUIDE / "python.md"
EXPECTED = re.compile(r"print\(.*\)  # (?P<output>.+)$")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture
def lake(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    with lake_on(moto_endpoint, monkeypatch) as lake:
        yield lake


def run(program: Path) -> None:
    """Run the program as a module, so that other processes find its functions."""
    spec = importlib.util.spec_from_file_location("guide_page", program)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["guide_page"] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules["guide_page"]


def test_the_python_page_does_what_it_says(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "\n".join(blocks(PYTHON, "python")).replace("//lake/", f"//{lake.bucket}/")
    program = tmp_path / "guide.py"
    program.write_text(code.replace('"lake/', f'"{lake.bucket}/'))
    run(program)
    expected = [found["output"] for line in code.splitlines() if (found := EXPECTED.search(line))]
    assert code.count("print(") == len(expected)  # each says what it prints
    assert capsys.readouterr().out.splitlines() == expected
    assert lake.open_uploads() == []


def test_the_configuration_is_one() -> None:
    (text,) = blocks(PYTHON, "toml")
    assert len(parse_config(text, source="guide").sections) == 3


def test_every_option_of_a_configuration_is_described() -> None:
    page = PYTHON.read_text()
    conditions = {name for name in KNOWN if name.startswith("conditions.")}
    for option in set(KNOWN) - conditions:
        assert f"`{option}`" in page
    for option in conditions:
        assert option.split(".")[1] in page
