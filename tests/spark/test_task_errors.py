"""An error of ours keeps its class, its code and its line on the way from a task to the driver."""

from __future__ import annotations

import importlib
import pkgutil
import traceback
from collections.abc import Iterator

import pytest

from s3commit.core.model.errors import InvalidInputError, S3CommitError
from s3commit.core.ports.ledger import LostRaceError
from s3commit.spark.task_errors import for_the_driver, of_a_task


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
