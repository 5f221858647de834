"""The sweep's look at a store in memory, and executions that a test may run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.ports.executions import FORGOTTEN, Execution
from s3commit.core.ports.objects import OpenUpload
from s3commit.core.ports.survey import SeenObject, SeenVersion, UploadParts
from s3commit.testing.store import MemoryObjectStore


class MemorySurvey:
    """Implements `s3commit.core.ports.survey.Survey` on a store in memory."""

    def __init__(self, store: MemoryObjectStore) -> None:
        self._store = store

    def objects(self, bucket: str, prefix: str, *, after: str = "") -> Iterator[SeenObject]:
        """See `Survey.objects`."""
        for listed in self._store.list(bucket, prefix):
            version = self._store.bucket(bucket).current(listed.key)
            if version is not None and listed.key.encode() > after.encode():
                yield SeenObject(listed.key, listed.etag, listed.length, version.modified)

    def uploads(
        self, bucket: str, prefix: str = "", *, after: str = "", after_upload: str = ""
    ) -> Iterator[OpenUpload]:
        """See `Survey.uploads`; of one key in the order of their ids, which is that of time."""
        for upload in self._store.list_uploads(bucket, prefix):
            of_the_same = upload.key == after and upload.upload_id > after_upload != ""
            if of_the_same or upload.key.encode() > after.encode():
                yield upload

    def parts(self, bucket: str, key: str, upload_id: str) -> UploadParts:
        """See `Survey.parts`."""
        upload = self._store.upload(bucket, key, upload_id)
        return UploadParts(sum(map(len, upload.parts.values())), upload.modified)

    def versions(self, bucket: str, key: str) -> Iterator[SeenVersion]:
        """See `Survey.versions`."""
        for one in reversed(self._store.bucket(bucket).objects.get(key, [])):
            if one.body is not None:
                yield SeenVersion(one.version_id or "null", one.etag, len(one.body))


class MemoryExecutions:
    """Implements `s3commit.core.ports.executions.Executions`: starts each name once, by ``run``.

    ``running`` are those that a test says are at work.
    """

    def __init__(self, run: Callable[[JobDirectory, str], object] = lambda *_: None) -> None:
        self._run = run
        self.running: set[str] = set()
        self.started: dict[str, JobDirectory] = {}

    def describe(self, execution: str) -> Execution:
        """See `Executions.describe`."""
        return Execution("RUNNING" if execution in self.running else FORGOTTEN)

    def start(self, name: str, directory: JobDirectory) -> str | None:
        """See `Executions.start`; the name is the ARN."""
        if name in self.started:
            return None
        self.started[name] = directory
        self._run(directory, name)
        return name
