"""The guide's pages for Spark do what they say."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.guide import GUIDE, program
from tests.spark.tiny import BUCKET, Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def run_page(
    place: Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Callable[[str], None]:
    """Run a page's code as one program, in this session, and compare what it prints."""

    def run(name: str) -> None:
        monkeypatch.setenv("PYSPARK_PYTHON", "restored afterwards")
        code, expected = program(GUIDE / name)
        lake = place.destination.prefix.split("/")[0]
        code = re.sub("(s3a?)://lake/", rf"\1://{BUCKET}/{lake}/", code)
        code = code.replace("/data/", f"{tmp_path}/")
        exec(compile(code, name, "exec"), {"__name__": "guide_page"})
        assert capsys.readouterr().out.splitlines() == expected

    return run


@pytest.mark.usefixtures("spark", "copies")
def test_the_spark_page_does_what_it_says(run_page: Callable[[str], None]) -> None:
    run_page("spark.md")


@pytest.mark.usefixtures("copies")
def test_the_streaming_page_does_what_it_says(
    spark: SparkSession, tmp_path: Path, run_page: Callable[[str], None]
) -> None:
    events = spark.range(0, 3, 1, 1).selectExpr("id", "'2026-11-21' dt")
    events.write.json(str(tmp_path / "events"))
    run_page("streaming.md")
