"""The guide's page on Spark's own writers does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.test_spark_guide import run_page
from tests.spark.tiny import Place


@pytest.mark.usefixtures("spark")
def test_the_page_does_what_it_says(
    place: Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    run_page("native.md", place, capsys, monkeypatch, tmp_path)
