"""The guide's Python page against the deployed pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import Deployed
from tests.guide import GUIDE, run_page


def test_the_python_page_does_what_it_says(
    environment: Deployed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = run_page(GUIDE / "python.md", tmp_path, f"{environment.bucket}/guide")
    assert capsys.readouterr().out.splitlines() == expected
    assert len(expected) >= 10
