"""The end of a run: everything is quiet, and every client has an answer. Is it true?"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from s3commit.core.formats.documents import decode_result
from s3commit.core.formats.layout import is_data
from s3commit.core.model.job import Conflict, JobResult, Outcome
from s3commit.core.model.states import ENDED, JobState
from s3commit.local.server import ACCOUNT, REGION
from tests.engines.chaos.history import History
from tests.engines.chaos.mail import dead_letters, keys_of
from tests.engines.chaos.plans import Kind
from tests.engines.chaos.played import Played, Register

_ALWAYS = {"ABORTED_BY_CLIENT", "DESTINATION_BUSY", "STALLED"}
_BY_KIND = {
    Kind.SABOTAGED: {"UPLOADS_LOST"},
    Kind.CONDITION: {"CONDITION_FAILED"},
    Kind.KEYED: {"ALREADY_COMMITTED"},
}
_OUTCOMES = {
    JobState.COMMITTED: Outcome.COMMITTED,
    JobState.ABORTED: Outcome.ABORTED,
    JobState.ROLLED_BACK: Outcome.ROLLED_BACK,
}


class Judge:
    """Compares what is there with the clients' answers; `judge` notes violations."""

    def __init__(self, history: History, register: Register) -> None:
        self._history = history
        self._register = register
        self.results: dict[str, JobResult] = {}

    def unended(self) -> list[Played]:
        """Jobs that have to be ended, and have not ended or have no result yet."""
        return [job for job in self._register.jobs if not self._has_ended(job)]

    def _has_ended(self, job: Played) -> bool:
        history = self._history
        if not job.done:
            return False
        if history.is_there(job.directory.job):
            return self._is_over(job) or self._waits_for_the_next_job(job)
        return True

    def _waits_for_the_next_job(self, job: Played) -> bool:
        """Nothing but job.json, whose event was lost, where the ledger knows of no job.

        A sweep looks where the ledger has a job: the next one there brings it along.
        """
        directory = job.directory
        if self._history.state(job.job_id) is not None:
            return False
        beside = [
            other
            for other in self._register.jobs
            if other.plan.prefix == job.plan.prefix and self._history.state(other.job_id)
        ]
        keys = [key for key in self._history.all_keys() if key.startswith(directory.prefix)]
        mine = [one for one in self._open_uploads().values() if directory.job_id in one.key_name]
        return not beside and keys == [directory.job] and not mine

    def _is_over(self, job: Played) -> bool:
        state = self._history.state(job.job_id)
        return state in ENDED and self._history.is_there(job.directory.result)

    def left_over(self) -> list[str]:
        """Open uploads and working objects of jobs that have ended: the next sweep finds them."""
        return [upload.key_name for upload in self._unexpected()] + self._working_objects()

    def _working_objects(self) -> list[str]:
        scratch = tuple(
            job.directory.tasks
            for job in self._register.jobs
            if self._history.is_there(job.directory.result)
        )
        return [key for key in self._history.all_keys() if key.startswith(scratch)]

    def judge(self) -> None:
        """Everything."""
        for job in self._register.jobs:
            body = self._history.body(job.directory.result)
            if body:
                self.results[job.job_id] = decode_result(body, job.directory)
            self._answered(job)
        self._tables()
        self._uploads()
        self._apart()
        self._markers()
        self._once()
        self._locks()
        self._letters()

    def _fail(self, invariant: str, what: str) -> None:
        self._history.fail(invariant, what)

    def _answered(self, job: Played) -> None:
        """What the client heard is what result and ledger say, and a refusal has a reason."""
        result, state = self.results.get(job.job_id), self._history.state(job.job_id)
        if not self._has_ended(job):
            self._fail("end", f"{job.name} is {state} at the end ({job.plan.policy}, {job.answer})")
            return
        if result is None:
            if job.answer != "not opened" and not self._waits_for_the_next_job(job):
                self._fail("end", f"{job.name} has no result; its client's answer: {job.answer}")
            return
        if state is not None and result.outcome is not _OUTCOMES.get(state):
            self._fail("I2", f"{job.name} is {state}, and its result says {result.outcome}")
        code = result.error.code if result.error else ""
        committed = result.outcome is Outcome.COMMITTED
        heard = {
            "committed": committed,
            "failed": not committed and job.code == code,
            "already committed": code == "ALREADY_COMMITTED",
            "aborted": code == "ABORTED_BY_CLIENT",
            "refused": code in {"ABORTED_BY_CLIENT", "ABANDONED"},
            "unknown": False,
        }
        if not heard.get(job.answer, True):
            self._fail(
                "answer",
                f"{job.name} was answered {job.answer} {job.code}: {result.outcome} {code}",
            )
        allowed = _ALWAYS | _BY_KIND.get(job.plan.kind, set())
        if job.plan.conflict is Conflict.FAIL:
            allowed = allowed | {"DESTINATION_NOT_EMPTY"}
        if job.asked != "commit" or job.answer == "refused":
            allowed = allowed | {"ABANDONED"}
        if not committed and code not in allowed:
            self._fail("refusal", f"{job.name} ({job.plan.policy}) ended {result.error}")
        if committed and (job.asked != "commit" or job.plan.kind is Kind.CONDITION):
            self._fail("I2", f"{job.name} ({job.plan.policy}) is COMMITTED")

    def committed(self) -> list[Played]:
        """The committed jobs in the order of their decisions."""
        jobs = [
            job
            for job in self._register.jobs
            if (result := self.results.get(job.job_id)) and result.outcome is Outcome.COMMITTED
        ]
        return sorted(jobs, key=lambda job: self.results[job.job_id].decided_at or "")

    def _tables(self) -> None:
        """One after the other, the committed jobs make what is there, byte for byte."""
        expected = dict(self._register.foreign)
        for job in self.committed():
            before = job.before(expected)
            result = self.results[job.job_id]
            if job.plan.conflict is Conflict.FAIL and before:
                self._fail("I6", f"{job.name} found nothing, and {sorted(before)[0]} was there")
            if job.plan.conflict is Conflict.REPLACE:
                if result.replaced != len(before):
                    self._fail(
                        "I6", f"{job.name} replaced {result.replaced} files of {len(before)}"
                    )
                expected = {key: body for key, body in expected.items() if key not in before}
            if result.files != len(job.files):
                self._fail("I2", f"{job.name} committed {result.files} of {len(job.files)} files")
            expected |= job.files
        found = self._history.bodies()
        for key in sorted(expected.keys() | {key for key in found if is_data(key)}):
            if expected.get(key) != found.get(key):
                what = "is there" if key not in expected else "is missing"
                if key in expected and key in found:
                    what = "has other bytes"
                invariant = "I5" if key in self._register.foreign else "I2"
                self._fail(invariant, f"{self._register.named(key)} {what}")

    def _uploads(self) -> None:
        for upload in self._unexpected():
            self._fail("I4", f"an upload of {self._register.named(upload.key_name)} is open")
        uploads = self._open_uploads()
        for upload_id, key in self._register.foreign_uploads.items():
            if upload_id not in uploads or len(uploads[upload_id].parts) != 1:
                self._fail("I5", f"the foreign upload of {key} is not as it was")

        for key in self._working_objects():
            self._fail("tidy", f"{self._register.named(key)} of a job that has ended is there")

    def _unexpected(self) -> list[Any]:
        """Open uploads but those of others."""
        foreign = self._register.foreign_uploads
        return [one for one in self._open_uploads().values() if one.id not in foreign]

    def _open_uploads(self) -> dict[str, Any]:
        from moto.s3.models import s3_backends

        found = s3_backends[ACCOUNT]["aws"].get_bucket(self._register.bucket).multiparts
        return dict(found)

    def _apart(self) -> None:
        """From its decision to its end, who needs a destination alone is alone there (I6)."""
        spans: dict[str, list[int]] = defaultdict(list)
        for move in self._history.moves:
            if move.state is JobState.COMMITTING or (move.state in ENDED and spans[move.job_id]):
                spans[move.job_id].append(move.number)
        decided = [job for job in self._register.jobs if len(spans[job.job_id]) == 2]
        for job in decided:
            if not job.alone:
                continue
            for other in decided:
                here, there = spans[job.job_id], spans[other.job_id]
                meet = any(_overlap(job.plan.prefix, place) for place in other.claimed)
                if other is not job and meet and here[0] < there[1] and there[0] < here[1]:
                    self._fail("I6", f"{job.name} and {other.name} are decided side by side")

    def _markers(self) -> None:
        last: dict[str, set[str]] = defaultdict(set)
        for job in self.committed():
            last[job.directory.success].add(job.job_id)
            if not self._history.is_there(job.directory.commits):
                self._fail("I9", f"{job.name} is COMMITTED without its manifest in _commits/")
        for key, jobs in last.items():
            body = self._history.body(key)
            if not body or json.loads(body)["jobId"] not in jobs:
                self._fail("I9", f"{key} is of no committed job")
        for key in self._history.bodies():
            if key.endswith("/_SUCCESS") and key not in last:
                self._fail("I9", f"{key} is there, and nothing was committed")

    def _once(self) -> None:
        winners: dict[tuple[str, str], Played] = {}
        for job in self.committed():
            key = job.plan.options.get("idempotency_key")
            if key is None:
                continue
            if (job.plan.prefix, key) in winners:
                self._fail("I11", f"{key!r} is committed twice")
            winners[job.plan.prefix, key] = job
        for job in self._register.jobs:
            result = self.results.get(job.job_id)
            if result is not None and result.already_committed:
                assert result.error is not None
                winner = winners.get((job.plan.prefix, job.plan.options["idempotency_key"]))
                if winner is None or winner.job_id not in result.error.message:
                    self._fail("I11", f"{job.name} was answered: {result.error.message}")

    def _locks(self) -> None:
        from moto.dynamodb.models import dynamodb_backends

        rows: Any = dynamodb_backends[ACCOUNT][REGION].get_table(self._history.table).items
        for row in rows.values():
            for item in row.values():
                if item.attrs["pk"].value.startswith("CLAIMS#"):
                    self._fail("I6", f"{item.attrs['sk'].value} is there at the end")

    def _letters(self) -> None:
        """Whatever a queue gave up is about jobs that have ended all the same."""
        for body in dead_letters():
            for key in keys_of(body):
                job = self._register.job_of(key)
                if job is None or not self._has_ended(job):
                    self._fail("queues", f"a dead letter is about {self._register.named(key)}")


def _overlap(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)
