"""The guide's pages for Spark do what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.tiny import BUCKET, Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
EXPECTED = re.compile(r"print\(.*\)  # (?P<output>.+)$")


def run_page(
    name: str,
    place: Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    data: Path,
) -> None:
    """Run the page's code as one program, in this session, and compare what it prints."""
    monkeypatch.setenv("PYSPARK_PYTHON", "restored afterwards")
    page = (GUIDE / name).read_text()
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))
    lake = place.destination.prefix.split("/")[0]
    program = re.sub("(s3a?)://lake/", rf"\1://{BUCKET}/{lake}/", code)
    program = program.replace("/data/", f"{data}/")
    names: dict[str, Any] = {"__name__": "guide_page"}
    exec(compile(program, name, "exec"), names)
    expected = [found["output"] for line in code.splitlines() if (found := EXPECTED.search(line))]
    assert code.count("print(") == len(expected)  # each says what it prints
    assert capsys.readouterr().out.splitlines() == expected


@pytest.mark.usefixtures("spark", "copies")
def test_the_spark_page_does_what_it_says(
    place: Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    run_page("spark.md", place, capsys, monkeypatch, tmp_path)


@pytest.mark.usefixtures("copies")
def test_the_streaming_page_does_what_it_says(
    spark: SparkSession,
    place: Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    events = spark.range(0, 3, 1, 1).selectExpr("id", "'2026-11-21' dt")
    events.write.json(str(tmp_path / "events"))
    run_page("streaming.md", place, capsys, monkeypatch, tmp_path)
