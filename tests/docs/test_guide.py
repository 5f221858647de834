"""The guide's code runs, against a bucket with a pipeline stand-in (tests/e2e: a deployed one)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from s3commit.writer.config import parse_config
from s3commit.writer.options import KNOWN
from tests.guide import GUIDE, blocks, run_page
from tests.lake import Lake, lake_on

PYTHON = GUIDE / "python.md"


@pytest.fixture
def lake(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    with lake_on(moto_endpoint, monkeypatch) as lake:
        yield lake


def test_the_python_page_does_what_it_says(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = run_page(PYTHON, tmp_path, lake.bucket)
    assert capsys.readouterr().out.splitlines() == expected
    assert len(expected) > 10
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
