"""`register` finds out before the first write whether Spark's Python workers could run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow
import pyspark
import pytest

from s3commit.spark import WrongPythonError, register


class Session:
    """Takes the place of a SparkSession whose workers run ``executable``."""

    def __init__(self, executable: str) -> None:
        self.sparkContext = SimpleNamespace(pythonExec=executable)
        self.registered: list[Any] = []
        self.dataSource = SimpleNamespace(register=self.registered.append)


def script(path: Path, *options: str) -> str:
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" {" ".join(options)} "$@"\n')
    path.chmod(0o755)
    return str(path)


def registered(executable: str) -> list[Any]:
    session = Session(executable)
    register(session)  # type: ignore[arg-type]
    return [source.name() for source in session.registered]


def test_the_drivers_own_interpreter_is_taken() -> None:
    assert registered(sys.executable) == ["s3commit"]


def test_a_worker_that_makes_no_client_loads_no_aws_library() -> None:
    """Spark imports the data source in a new process for each step of a write."""
    code = "import sys, s3commit.spark.source; print(*{m.split('.')[0] for m in sys.modules})"

    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()

    assert "s3commit" in loaded
    assert not {"boto3", "botocore"} & set(loaded)


def test_another_interpreter_that_can_run_it_is_taken(tmp_path: Path) -> None:
    assert registered(script(tmp_path / "python3")) == ["s3commit"]


def test_an_interpreter_without_the_package_is_refused_with_the_setting(tmp_path: Path) -> None:
    with pytest.raises(WrongPythonError) as caught:
        registered(script(tmp_path / "python3", "-S"))
    assert "No module named 's3commit'" in caught.value.message
    assert "os.environ['PYSPARK_PYTHON'] = sys.executable" in caught.value.message
    assert "\n" not in caught.value.message


def test_an_interpreter_that_is_not_there_is_refused() -> None:
    with pytest.raises(WrongPythonError, match="'no-such-python'"):
        registered("no-such-python")


def test_a_package_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyarrow, "__version__", "17.0.0")
    with pytest.raises(WrongPythonError, match=r"pyarrow 17\.0\.0 is too old: .*>=18\.0"):
        registered(sys.executable)


def test_the_format_is_refused_with_what_works_where_spark_has_no_python_data_sources(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pyspark, "__version__", "3.5.6")
    line = r"pyspark 3\.5\.6 is too old: this needs pyspark>=4\.0; here .*write\(\) works"
    with pytest.raises(WrongPythonError, match=line):
        registered(sys.executable)
