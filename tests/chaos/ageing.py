"""Time passes: everything that carries a time gets older, as if a clock had jumped for all of them.

The limits of the sweep are those of the template (a quarter of an hour, a day); the machine's
clock can't be turned. So the times in S3 and in the ledger are turned back instead, while no
request that changes something runs, and the clock of the schedules is turned on.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from s3commit.core.formats.layout import JOB_FILE
from s3commit.core.sweep.sweep import shifted
from s3commit.local.server import ACCOUNT, REGION


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


def age_everything(bucket: str, table: str, seconds: int) -> None:
    """Turn back the times in S3 and in the ledger by so many seconds."""
    _age_bucket(bucket, timedelta(seconds=seconds))
    _age_ledger(bucket, table, seconds)


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


def _age_ledger(bucket: str, table: str, seconds: int) -> None:
    from moto.dynamodb.models import dynamodb_backends

    rows: Any = dynamodb_backends[ACCOUNT][REGION].get_table(table).items
    for row in list(rows.values()):
        for item in list(row.values()):
            for name in ("created_at", "updated_at"):
                if name in item.attrs:
                    _turn_back(item.attrs[name], seconds)
            if "opened_at" in item.attrs:
                _open_as_s3_has_it(item.attrs, bucket, seconds)
            if "waiting" in item.attrs:
                for waiter in item.attrs["waiting"].value.values():
                    _turn_back(waiter.value["since"], seconds)
                    _turn_back(waiter.value["seen"], seconds)
            if "until" in item.attrs:  # a sweep that was stopped keeps the next one waiting
                _turn_back(item.attrs["until"], seconds)
            if "turns" in item.attrs:  # when each step of the sweep last went through everything
                for step in item.attrs["turns"].value.values():
                    step.value = _walk_turned_back(step.value, seconds)


def _open_as_s3_has_it(attributes: dict[str, Any], bucket: str, seconds: int) -> None:
    """A function may have read job.json before a turn back, and noted its time after it."""
    from moto.s3.models import s3_backends

    keys = s3_backends[ACCOUNT]["aws"].get_bucket(bucket).keys
    stored = keys.get(attributes["directory"].value + JOB_FILE)
    if stored is None:
        _turn_back(attributes["opened_at"], seconds)
    else:
        moment = stored.last_modified.replace(microsecond=0, tzinfo=None)
        attributes["opened_at"].value = moment.isoformat(timespec="milliseconds") + "Z"


def _walk_turned_back(text: str, seconds: int) -> str:
    walk = json.loads(text)
    for name in ("began", "before"):
        walk[name] = shifted(walk[name], -seconds) if walk[name] else ""
    return json.dumps(walk)


def _turn_back(value: Any, seconds: int) -> None:
    if value.value:
        value.value = shifted(value.value, -seconds)
