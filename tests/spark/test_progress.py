"""What a user sees of a write: how to follow it, how far it is, what came of it; its errors."""

import importlib
import pkgutil
import re
import sys
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from s3commit.core.model.errors import InvalidInputError, S3CommitError
from s3commit.core.ports.ledger import LostRaceError
from s3commit.spark import CommitResult, progress, write
from s3commit.spark.tasks import for_the_driver, of_a_task
from tests.spark.tiny import Place


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("s3commit: ")]


def test_a_write_says_how_to_follow_it_before_its_tasks_and_when_it_asks_for_the_commit(
    session: SparkSession, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """And how far it is only to a program that has asked."""
    result = write(session.range(0, 10, 1, 2), place.uri)
    begins, ended, committed = lines(capsys)
    where = f"s3commit show --follow {place.destination.uri}__magic_job-{result.job_id}/"
    assert begins == f"s3commit: job {result.job_id} begins; see: {where}"
    assert re.search(rf"ended with 2 files, .*, 10 rows; requesting .* {result.job_id}$", ended)
    assert committed.startswith("s3commit: committed 2 files, ")


@pytest.mark.parametrize("where", ["is_notebook", "is_terminal", "asked"])
def test_who_watches_sees_files_and_rows_as_tasks_end(
    spark: SparkSession,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    where: str,
) -> None:
    monkeypatch.setattr(progress, "WATCHED", 0.01)
    monkeypatch.setattr(progress, "LOGGED", 0.01)
    if where != "asked":
        monkeypatch.setattr(progress, where, lambda: True)
    write(spark.range(0, 30, 1, 3), place.uri, progress=True if where == "asked" else None)
    shown = capsys.readouterr().err
    found = re.findall(r"s3commit: tasks have written (\d) files?, (\d+) rows *(\n?)", shown)
    for files, rows, end in found:
        assert int(rows) == 10 * int(files) > 0
        assert bool(end) or where == "is_notebook"
    assert found[-1] == ("3", "30", "\n")


def test_with_connect_no_progress_is_shown(connect: SparkSession, place: Place) -> None:
    assert write(connect.range(3), place.uri, progress=True).rows == 3


def test_a_notebook_is_known_by_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    class Shell:
        kernel = object()

        @staticmethod
        def get_ipython() -> Any:
            return Shell()

    assert not progress.is_notebook()
    monkeypatch.setitem(sys.modules, "IPython", Shell)
    assert progress.is_notebook()


def test_a_result_is_a_table_in_a_notebook() -> None:
    result = CommitResult("s3://lake/<b>/", "id", 1, 2, 3, 0, "s3://lake/m")
    assert "<th>path</th><td>s3://lake/&lt;b&gt;/</td>" in result._repr_html_()


# An error of ours keeps its class, its code and its line on the way from a task


def every_kind() -> Iterator[type[S3CommitError]]:
    """All classes of errors that a task could raise: of writer, store and core."""
    for package in ("core.model", "aws", "writer", "spark"):
        root = importlib.import_module(f"s3commit.{package}")
        for one in pkgutil.iter_modules(root.__path__, root.__name__ + "."):
            importlib.import_module(one.name)
    kinds = [S3CommitError]
    for kind in kinds:
        yield kind
        kinds += [one for one in kind.__subclasses__() if one is not LostRaceError]


def shown(error: S3CommitError) -> Exception:
    """What a driver gets: the traceback's text, in an exception of Spark's."""
    try:
        raise for_the_driver(error) from None
    except S3CommitError as raised:
        text = "".join(traceback.format_exception(raised))
    return RuntimeError(f"Job aborted.\nPythonException: \n  Traceback\n{text}\n\tat java.lang.X\n")


@pytest.mark.parametrize("kind", list(every_kind()), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("code", ["BAD_PATH", "S3_403", None])
def test_every_kind_arrives_as_it_left(kind: type[S3CommitError], code: str | None) -> None:
    error = kind("file 'a: [b] c' is no path; do this", code=code)
    found = of_a_task(shown(error))
    assert type(found) is kind
    assert (found.code, found.message) == (error.code, error.message)


def test_the_last_try_counts_and_text_of_others_does_not() -> None:
    first, last = InvalidInputError("one", code="A"), InvalidInputError("two\nlines", code="B")
    both = RuntimeError(f"{shown(first)}\n{shown(last)}")
    found = of_a_task(both)
    assert found is not None
    assert (found.code, found.message) == ("B", "two\\nlines")
    assert of_a_task(RuntimeError("s3commit.core.model.errors.Other: [A B] c")) is None


def test_a_class_that_the_driver_does_not_know_is_one_of_ours_all_the_same() -> None:
    text = "s3commit.core.model.errors.S3CommitError: [Newer NEW_CODE] a line"
    found = of_a_task(RuntimeError(text))
    assert type(found) is S3CommitError
    assert found.code == "NEW_CODE"
