"""Lists of files that a stranger has written, by all that reads them: bounded memory (I12)."""

import tracemalloc
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import cast
from unittest.mock import MagicMock, patch

import pytest

from s3commit.aws import catalog
from s3commit.aws.env import Catalog
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.documents import commit_manifest
from s3commit.core.documents.commit_manifest import commit_lines, stream_commit_manifest
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.destination import Scope
from s3commit.core.model.errors import InvalidInputError, S3CommitError
from s3commit.core.model.limits import MAX_JOB_FILES
from s3commit.core.undo.bound import Look
from s3commit.core.undo.later import files_of
from s3commit.core.undo.look_back import look_back
from s3commit.spark import read as read_by_spark
from s3commit.writer.access import Access
from tests.cli.support import SALES, Desk
from tests.engines.fuzz.documents import FILE, HEADER

LONG = 256 * 1024 * 1024
PIECE = 1024 * 1024
SOME = 5_000  # files of a list; a job may have two hundred times as many
MOST = 3008 * 1024 * 1024 * SOME // MAX_JOB_FILES  # bytes: their share of a function


@dataclass(frozen=True)
class Endless:
    """An object that is made as it is read: a start, and a line again and again."""

    start: bytes
    line: bytes
    length: int = LONG

    def first_bytes(self, count: int, start: int) -> bytes:
        count = min(count, self.length - start)
        head = self.start[start : start + count]
        left, at = count - len(head), max(0, start - len(self.start)) % len(self.line)
        return head + (self.line * (left // len(self.line) + 2))[at : at + left]


def header(files: int) -> bytes:
    return next(commit_lines(replace(HEADER, files=files, scope=Scope.PARTITION), ()))


SOUND = list(commit_lines(HEADER, [FILE]))[1]
ALL_SOUND = header(SOME) + b"".join(
    SOUND.replace(b"sales/", b"sales/dt=%d/%s/" % (number, b"x" * 150)) for number in range(SOME)
)
# What each is refused for.
LISTS = {
    "one line": (Endless(b"", b"x"), "TOO_LARGE"),
    "one line behind a header": (Endless(header(MAX_JOB_FILES), b" "), "TOO_LARGE"),
    "a header without an end": (Endless(header(1)[:-2], b" "), "TOO_LARGE"),
    "more lines than it says": (Endless(header(1), SOUND), "TRUNCATED"),
    "more than a job has": (Endless(header(MAX_JOB_FILES + 1), SOUND), "TOO_LARGE"),
    "more than a number has": (Endless(header(2**63), SOUND), "BAD_FIELD"),
    "empty lines": (Endless(header(MAX_JOB_FILES), b"\n"), "BAD_JSON"),
    "empty objects": (Endless(header(MAX_JOB_FILES), b"{}\n"), "BAD_FIELD"),
    "sound lines": (Endless(ALL_SOUND, b"x", len(ALL_SOUND)), ""),
}


def tell(desk: Desk, directory: JobDirectory) -> object:
    table = {"StorageDescriptor": {"Location": SALES}}
    glue = SimpleNamespace(get_table=lambda **_: {"Table": table})
    with patch.object(catalog, "full", lambda *_: iter([""])):
        store = cast("S3ObjectStore", desk.session.store)
        return catalog.tell(store, glue, Catalog("sales/", "a.b", False), directory)


def read(desk: Desk, directory: JobDirectory) -> object:
    with patch.object(Access, "store", lambda *_: desk.session.store):
        return read_by_spark(MagicMock(), SALES, job_id=directory.job_id)


def code_of(desk: Desk, directory: JobDirectory) -> str:
    try:
        deque(stream_commit_manifest(desk.session.store, directory)[1], maxlen=0)
    except InvalidInputError as error:
        return error.code
    return ""


READERS: dict[str, Callable[[Desk, JobDirectory], object]] = {
    "copies": lambda desk, job: files_of(Look(desk.world.ports), job, lambda _file: None),
    "undo": lambda desk, job: look_back(Look(desk.world.ports), job),
    "catalog": tell,
    "read": read,
    "ls": lambda desk, job: desk.run_any("ls", SALES, "--files", job.job_id),
    "fsck": lambda desk, job: desk.run_any("fsck", SALES),
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize(("body", "code"), LISTS.values(), ids=LISTS)
def test_i12_a_list_without_end_is_read_up_to_its_first_wrong_line(
    body: Endless,
    code: str,
    reader: Callable[[Desk, JobDirectory], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk()
    directory = desk.committed_job(HEADER.job_id)
    whole, pieces = desk.world.store.get, desk.world.store.first_bytes
    asked: list[int] = []

    def get(bucket: str, key: str, *, max_bytes: int) -> object:
        if key != directory.commits:
            return whole(bucket, key, max_bytes=max_bytes)
        return SimpleNamespace(body=body.first_bytes(body.length, 0))

    def first_bytes(bucket: str, key: str, count: int, *, start: int = 0) -> bytes:
        if key != directory.commits:
            return pieces(bucket, key, count, start=start)
        asked.append(count)
        return body.first_bytes(count, start)

    monkeypatch.setattr(commit_manifest, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(desk.world.store, "get", get)
    monkeypatch.setattr(desk.world.store, "first_bytes", first_bytes)
    tracemalloc.start()
    assert code_of(desk, directory) == code
    with suppress(S3CommitError):
        reader(desk, directory)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert PIECE in asked
    assert sum(asked) < 12 * PIECE
    assert peak < MOST
