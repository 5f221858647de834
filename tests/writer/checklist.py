"""What the suites of the stream's checklist share."""

from __future__ import annotations

from typing import Protocol

from s3commit.core.ports.objects import UploadStarter
from s3commit.writer.stream import PendingUpload
from s3commit.writer.transfer import Transfer
from tests.writer.support import (
    KEY,
    ScriptedEnvironment,
)


class Opener(Protocol):
    """Makes a stream of the kind that the test runs on."""

    def __call__(
        self,
        store: UploadStarter,
        transfer: Transfer | None = None,
        key: str = KEY,
        environment: ScriptedEnvironment | None = None,
    ) -> PendingUpload: ...
