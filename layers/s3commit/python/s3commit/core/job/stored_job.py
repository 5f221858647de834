"""A document that may be missing or unreadable: what is in it, or what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.job.documents import read_result
from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.core.model.job import JobResult
from s3commit.core.ports.bundle import Ports

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Document(Generic[T]):
    """One document; ``value`` is set if it is there, ``error`` if it can't be read."""

    value: T | None = None
    error: InvalidInputError | None = None


def result_document(ports: Ports, directory: JobDirectory) -> Document[JobResult]:
    """``result.json``."""
    return read_document(lambda: read_result(ports.store, directory))


def read_document(read: Callable[[], T]) -> Document[T]:
    """What ``read`` returns, or why it does not."""
    try:
        return Document(read())
    except NotFoundError:
        return Document()
    except InvalidInputError as error:
        return Document(error=error)
