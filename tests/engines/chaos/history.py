"""The history of a run: what changed, in the order in which it did, judged at once.

It looks at S3 and the ledger themselves (moto's, in this process), right before and right after
each request that changes something, while no other such request runs.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from typing import Any

from s3commit.aws.ledger_items import job_key
from s3commit.core.formats.layout import COMMITS, MAGIC_PREFIX, SUCCESS, is_data
from s3commit.core.model.job import Conflict
from s3commit.core.model.states import ENDED, TRANSITIONS, JobState
from s3commit.local.server import ACCOUNT, REGION
from tests.engines.chaos.plans import Kind
from tests.engines.chaos.played import Played, Register
from tests.engines.chaos.wire import Call

_JOB = re.compile(rb'"JOB#([0-9a-f-]{36})"')
_DELETED = re.compile(rb"<Key>([^<]+)</Key>")
DECIDED = frozenset(
    {JobState.COMMITTING, JobState.PUBLISHING, JobState.COMMITTED, JobState.ROLLING_BACK}
)


@dataclass(frozen=True, slots=True)
class Moved:
    """A transition in the ledger; ``number`` is its place in the history."""

    number: int
    job_id: str
    state: JobState


@dataclass(slots=True)
class History:
    """Implements `tests.engines.chaos.wire.Observer`.

    ``violations`` say what did not hold, and when.
    """

    register: Register
    table: str
    lines: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    moves: list[Moved] = field(default_factory=list)
    visible: dict[str, set[str]] = field(default_factory=dict)
    requests: int = 0
    began: float = field(default_factory=time.monotonic)
    _states: dict[str, JobState] = field(default_factory=dict)

    def trace(self, who: str, what: str) -> None:
        """Keep a line for people."""
        self.lines.append(f"{time.monotonic() - self.began:8.3f}  {who:26}  {what}")

    def fail(self, invariant: str, what: str) -> None:
        """Note that something does not hold."""
        self.trace("VIOLATION", f"{invariant}: {what}")
        self.violations.append(f"{invariant}: {what}")

    def state(self, job_id: str) -> JobState | None:
        """The job's state in the ledger."""
        job = self.register.get(job_id)
        found = self.item(*job_key(job.directory.ref)) if job else None
        return JobState(found["state"].value) if found else None

    def item(self, pk: str, sk: str) -> dict[str, Any]:
        """The attributes of an item of the ledger."""
        from moto.dynamodb.models import dynamodb_backends

        keys = {"pk": {"S": pk}, "sk": {"S": sk}}
        found = dynamodb_backends[ACCOUNT][REGION].get_item(self.table, keys)
        return dict(found.attrs) if found else {}

    def all_keys(self) -> list[str]:
        """Of all objects of the bucket."""
        return list(_bucket(self.register.bucket).keys)

    def bodies(self) -> dict[str, bytes]:
        """All objects of the bucket."""
        return {key: self.body(key) for key in self.all_keys()}

    def body(self, key: str) -> bytes:
        """An object's bytes; none if it is not there."""
        found = _bucket(self.register.bucket).keys.get(key)
        return bytes(found.value) if found is not None else b""

    def is_there(self, key: str) -> bool:
        """There is an object."""
        return key in _bucket(self.register.bucket).keys

    def before(self, call: Call) -> dict[str, bytes]:
        """The data that the call may delete, as it is now."""
        if call.bucket != self.register.bucket:
            return {}
        keys = [call.key] if call.operation == "DeleteObject" else []
        if call.operation == "DeleteObjects":
            keys = [key.decode() for key in _DELETED.findall(call.body)]
        return {key: self.body(key) for key in keys if self.is_there(key)}

    def after(self, call: Call, status: int, seen: dict[str, bytes]) -> None:
        """See `tests.engines.chaos.wire.Observer`."""
        self.requests += 1
        if call.service == "dynamodb":
            for job_id in sorted({found.decode() for found in _JOB.findall(call.body)}):
                self._moved(call, job_id)
            return
        if call.bucket != self.register.bucket:
            return
        named = self.register.named(call.key)
        self.trace(_who(call), f"{call.operation} {named} -> {status}")
        if status >= 300:
            return
        if call.operation == "CompleteMultipartUpload":
            self._appeared(call)
        elif call.operation == "PutObject":
            self._put(call)
        elif call.operation == "AbortMultipartUpload" and (
            call.upload_id in self.register.foreign_uploads
        ):
            self.fail("I5", f"{_who(call)} aborts the foreign upload of {call.key}")
        for key, body in seen.items():
            if not self.is_there(key):
                self._deleted(call, key, body)

    def _moved(self, call: Call, job_id: str) -> None:
        state, before = self.state(job_id), self._states.get(job_id)
        job = self.register.get(job_id)
        if state is None or state is before or job is None:
            return
        self._states[job_id] = state
        self.moves.append(Moved(self.requests, job_id, state))
        self.trace(_who(call), f"{job.name}: {before or 'unknown'} -> {state}")
        if before is not None and state not in TRANSITIONS[before]:
            self.fail("states", f"{job.name} goes from {before} to {state}")
        if state is JobState.COMMITTING and job.plan.kind is Kind.SABOTAGED:
            self._sabotage(job)

    def _sabotage(self, job: Played) -> None:
        from moto.s3.models import s3_backends

        uploads = _bucket(self.register.bucket).multiparts
        mine = [one for one in uploads.values() if one.key_name in job.files]
        if mine:
            self.trace(
                "SABOTEUR", f"aborts every upload of {self.register.named(mine[0].key_name)}"
            )
            for one in [one for one in mine if one.key_name == mine[0].key_name]:
                backend = s3_backends[ACCOUNT]["aws"]
                backend.abort_multipart_upload(self.register.bucket, one.id)

    def _appeared(self, call: Call) -> None:
        if not is_data(call.key):
            return
        body = self.body(call.key)
        job = self.register.owner(call.key, body)
        if job is None:
            self.fail("I5", f"{_who(call)} completes {call.key}, which no job wrote")
            return
        state = self.state(job.job_id)
        if state not in DECIDED:
            named = self.register.named(call.key)
            self.fail("I1", f"{named} appears while {job.name} is {state}")

    def _put(self, call: Call) -> None:
        name = call.key.rsplit("/", 1)[-1]
        if name == SUCCESS:
            job = self.register.get(json.loads(call.body)["jobId"])
            if job is None:
                self.fail("I9", f"{call.key} names no job")
                return
            if self.state(job.job_id) is not JobState.PUBLISHING:
                self.fail("I9", f"{call.key} of {job.name}, which is {self.state(job.job_id)}")
            if not self.is_there(job.directory.commits):
                self.fail("I9", f"{call.key} of {job.name} comes before its manifest")
            self._all_there(job, "I9", call.key)
        elif name == "result.json" and MAGIC_PREFIX in call.key:
            job = self.register.job_of(call.key)
            if job is not None and self.state(job.job_id) not in ENDED:
                self.fail("I2", f"result of {job.name}, which is {self.state(job.job_id)}")
        elif call.function and COMMITS in call.key and name.endswith(".jsonl"):
            job = self.register.job_of(call.key)
            if job is not None:
                self._all_there(job, "I9", call.key)

    def _deleted(self, call: Call, key: str, body: bytes) -> None:
        """Data goes by a roll back of its job, or by a job that replaces it (I2, I5, I10)."""
        if not is_data(key):
            return
        job = self.register.owner(key, body)
        named = self.register.named(key)
        self.trace(_who(call), f"deletes {named}")
        if job is not None and self.state(job.job_id) is JobState.ROLLING_BACK:
            return
        if job is not None and self.state(job.job_id) is not JobState.COMMITTED:
            self.fail("I2", f"{named} is deleted while {job.name} is {self.state(job.job_id)}")
        for other in self.register.jobs:
            if other.plan.conflict is not Conflict.REPLACE or key not in other.before({key: b""}):
                continue
            if self.state(other.job_id) is JobState.PUBLISHING and not self._missing(other):
                return
        self.fail("I10", f"{_who(call)} deletes {named}, which no publishing job replaces now")

    def _all_there(self, job: Played, invariant: str, what: str) -> None:
        if missing := self._missing(job):
            named = self.register.named(missing[0])
            self.fail(invariant, f"{self.register.named(what)} is put, and {named} is not visible")

    def _missing(self, job: Played) -> list[str]:
        return [key for key, body in job.files.items() if self.body(key) != body]

    def look(self, prefix: str, listed: set[str]) -> None:
        """A reader's listing of a table; what is new in it was decided before it was made (I1)."""
        for key in sorted(listed - self.visible.get(prefix, set())):
            job = self.register.owner(key, self.body(key))
            if job is not None and self.state(job.job_id) in {
                None,
                JobState.OPEN,
                JobState.SEALED,
                JobState.ABORTING,
                JobState.ABORTED,
            }:
                self.fail(
                    "I1", f"a reader sees {self.register.named(key)}: {job.name} is undecided"
                )
        self.visible[prefix] = listed


def _bucket(name: str) -> Any:
    from moto.s3.models import s3_backends

    return s3_backends[ACCOUNT]["aws"].get_bucket(name)


def _who(call: Call) -> str:
    return f"{call.function} {call.who[:6]}" if call.function else call.who
