"""The guide's configuration; tests/e2e/test_guide.py runs its code."""

from __future__ import annotations

from s3commit.writer.config import parse_config
from s3commit.writer.options import KNOWN
from tests.guide import GUIDE, blocks

PYTHON = GUIDE / "python.md"


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
