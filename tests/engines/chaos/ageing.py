"""Time passes: everything that carries a time gets older, as if a clock had jumped for all of them.

The limits of the sweep are those of the template (15 minutes, a day); the machine's
clock can't be turned. So the times in S3 and in the ledger are turned back instead, and the clock
of the schedules is turned on. No function runs meanwhile: one that had read a time before and
compared it with another one after would see what no clock shows.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from s3commit.core.sweep.sweep import shifted
from s3commit.local.moto_patches import Patcher
from s3commit.local.server import ACCOUNT, REGION
from s3commit.local.worker import CallOutcome, Worker


class Clock:
    """The machine's clock, some hours ahead: the schedules' clock (`s3commit.local.schedule`)."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        """The present, in UTC."""
        return datetime.now(UTC) + self.ahead

    def pass_by(self, seconds: int) -> None:
        """Be so much further ahead."""
        self.ahead += timedelta(seconds=seconds)


class Calls:
    """The calls of functions. ``none`` waits until no call runs, and keeps new ones waiting."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._halted = False

    def count(self, patcher: Patcher) -> None:
        """Count all calls from now on."""

        def make_invoke(original: Any) -> Any:
            def invoke(worker: Worker, payload: bytes) -> CallOutcome:
                with self._one():
                    outcome: CallOutcome = original(worker, payload)
                    return outcome

            return invoke

        patcher.replace(Worker, "invoke", make_invoke)

    @contextmanager
    def _one(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._halted)
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    @contextmanager
    def none(self) -> Iterator[None]:
        """For one thread at a time."""
        with self._changed:
            self._halted = True
            self._changed.wait_for(lambda: not self._running)
        try:
            yield
        finally:
            with self._changed:
                self._halted = False
                self._changed.notify_all()


def age_everything(bucket: str, table: str, seconds: int) -> None:
    """Turn back the times in S3 and in the ledger by so many seconds."""
    _age_bucket(bucket, timedelta(seconds=seconds))
    _age_ledger(table, seconds)


def _age_bucket(name: str, span: timedelta) -> None:
    from moto.s3.models import s3_backends

    bucket = s3_backends[ACCOUNT]["aws"].get_bucket(name)
    for stored in list(bucket.keys.values()):
        stored.last_modified -= span
    uploads: dict[str, Any] = bucket.multiparts
    for upload in list(uploads.values()):
        upload.initiated -= span
        for part in list(upload.parts.values()):
            part.last_modified -= span


def _age_ledger(table: str, seconds: int) -> None:
    from moto.dynamodb.models import dynamodb_backends

    rows: Any = dynamodb_backends[ACCOUNT][REGION].get_table(table).items
    for row in list(rows.values()):
        for item in list(row.values()):
            for name in ("created_at", "updated_at", "opened_at"):
                if name in item.attrs:
                    _turn_back(item.attrs[name], seconds)
            if "waiting" in item.attrs:
                for waiter in item.attrs["waiting"].value.values():
                    _turn_back(waiter.value["since"], seconds)
                    _turn_back(waiter.value["seen"], seconds)


def _turn_back(value: Any, seconds: int) -> None:
    if value.value:
        value.value = shifted(value.value, -seconds)
