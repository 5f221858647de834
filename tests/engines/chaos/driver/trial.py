"""One destination at which clients die, and the verdict at the end."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import s3commit
from s3commit.aws.ledger import DynamoLedger
from s3commit.core.formats.layout import MAGIC_PREFIX, is_data
from s3commit.core.model.states import ENDED, JobState
from tests.cli.support import run
from tests.e2e.conftest import Deployed, until
from tests.engines.chaos.driver.deployment import sweep
from tests.engines.chaos.driver.gate import REQUEST, Gate

WAIT_SECONDS = 600  # a bound for what hangs, on a busy machine too
KEPT = {"_job.json", REQUEST, "_result.json"}
# Why a job may have been refused here. Another reason is a refusal that nothing speaks for.
REASONS = {"ABANDONED", "ABORTED_BY_CLIENT", "ALREADY_COMMITTED"}
MOST_SWEEPS = 5
TIDY_SECONDS = 5.0  # `TidyUp` comes after the result

Check = Callable[[Mapping[str, bytes]], None]


@dataclass(eq=False)
class Trial:
    """A table, with files ``old`` (relative key → body) in it of which a commit replaces some.

    ``check`` judges the files of the committed job by their relative keys. With ``again`` one job
    must be committed at the end; without, those whose commit was asked for.
    """

    deployed: Deployed
    name: str
    check: Check
    old: Mapping[str, bytes]
    replaced: frozenset[str]
    again: bool
    gates: list[Gate] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.s3: Any = self.deployed.client("s3")
        self.ledger = DynamoLedger(self.deployed.table)
        self.prefix = f"driver/{self.name}/"
        self.table = self.prefix + "table/"
        self.uri = f"s3://{self.deployed.bucket}/{self.table}"
        for key, body in self.old.items():
            self.s3.put_object(Bucket=self.deployed.bucket, Key=self.prefix + key, Body=body)

    def keys(self) -> list[str]:
        """All keys, relative."""
        listed = self.s3.list_objects_v2(Bucket=self.deployed.bucket, Prefix=self.prefix)
        assert not listed["IsTruncated"]
        return [one["Key"].removeprefix(self.prefix) for one in listed.get("Contents", [])]

    def body(self, key: str) -> bytes:
        """An object's bytes."""
        answer = self.s3.get_object(Bucket=self.deployed.bucket, Key=self.prefix + key)
        body: bytes = answer["Body"].read()
        return body

    def uploads(self) -> list[str]:
        """The relative keys of the open uploads."""
        listed = self.s3.list_multipart_uploads(Bucket=self.deployed.bucket, Prefix=self.prefix)
        return [one["Key"].removeprefix(self.prefix) for one in listed.get("Uploads", [])]

    def results(self) -> dict[str, Any]:
        """The result of each job that has one."""
        found = [key for key in self.keys() if key.endswith("/_result.json")]
        return {_job(key): json.loads(self.body(key)) for key in found}

    def outcomes(self) -> dict[str, str]:
        """How each job has ended that has left a trace; empty: it has not."""
        traces = [key for key in self.keys() if key.startswith(f"table/{MAGIC_PREFIX}")]
        found = dict.fromkeys(map(_job, traces), "")
        found |= {job: str(result["outcome"]) for job, result in self.results().items()}
        for job in self.jobs:  # the jar deletes the documents of a job that it knows to be undone
            state = self.state(job)
            if job not in found and state in ENDED:
                found[job] = str(state)
        return found

    @property
    def jobs(self) -> list[str]:
        """The jobs of all clients so far."""
        return [job for gate in self.gates for job in gate.jobs]

    @property
    def asked(self) -> set[str]:
        """Those whose commit was asked for."""
        return {job for gate in self.gates for job in gate.asked}

    def state(self, job: str) -> JobState | None:
        """The ledger's word on a job; None if it knows none."""
        record = next(iter(self.ledger.jobs_with_id(job)), None)
        return record.state if record else None

    @property
    def over(self) -> bool:
        """Every job that left a trace has ended and is tidied up."""
        quiet = not self.uploads() and not self._left()
        return quiet and all(self.outcomes().values())

    def _left(self) -> list[str]:
        directories = (f"/{MAGIC_PREFIX}", MAGIC_PREFIX)
        inside = [key for key in self.keys() if any(part in key for part in directories)]
        return [key for key in inside if key.rsplit("/", 1)[1] not in KEPT]

    def wait_for_requests(self) -> None:
        """Wait until every job that was requested has ended: it does so by itself."""

        def ended() -> bool:
            asked = {_job(key) for key in self.keys() if key.endswith(f"/{REQUEST}")}
            return asked <= self.results().keys() and all(self.state(job) in ENDED for job in asked)

        until(ended, f"the result of {self.name}", WAIT_SECONDS)

    def next_job_comes(self) -> None:
        """Another job at the destination, given up at once."""
        s3commit.open_job(self.uri, client="the next").abort("it was only passing by")
        self.wait_for_requests()

    def verdict(self) -> None:
        """Judge the end; what readers see on the way to it does not depend on the client."""
        keys = self.keys()
        data, has_marker = set(filter(is_data, keys)), "table/_SUCCESS" in keys
        outcomes, asked = self.outcomes(), self.asked
        committed = {job for job, outcome in outcomes.items() if outcome == "COMMITTED"}
        facts = f"{self.name}: {outcomes}, asked for {asked}"
        assert committed <= asked, facts
        assert len(committed) == (1 if self.again else len(asked)), facts
        assert all(outcomes.values()), facts
        states = {job: str(self.state(job)) for job in outcomes}
        assert states == outcomes, facts
        errors = [result["error"] for result in self.results().values() if result.get("error")]
        assert {error["code"] for error in errors} <= REASONS, f"{facts}: {errors}"
        new = data - self.old.keys()
        kept = self.old.keys() - (self.replaced if committed else frozenset())
        assert data - new == kept, f"{facts}: {sorted(data)}"
        assert {key: self.body(key) for key in kept} == {key: self.old[key] for key in kept}, facts
        if committed:
            self.check({key: self.body(key) for key in new})
        assert bool(new) == bool(committed), facts
        assert has_marker == bool(committed), facts
        if committed:
            assert json.loads(self.body("table/_SUCCESS"))["jobId"] in committed, facts
        assert not self.uploads(), f"{facts}: {self.uploads()}"
        assert not self._left(), f"{facts}: {self._left()}"
        run("fsck", self.uri, "--table", self.deployed.table)


def settle(trial: Trial) -> None:
    """Let the pipeline and the deployed sweep end what is left."""
    for count in range(MOST_SWEEPS):
        trial.wait_for_requests()
        end = time.monotonic() + TIDY_SECONDS
        while not trial.over and time.monotonic() < end and all(trial.outcomes().values()):
            time.sleep(0.1)
        if trial.over:
            return
        # What nothing tells of but a job directory waits for the next job there.
        if count and not trial.uploads() and not all(trial.outcomes().values()):
            trial.next_job_comes()
        report = sweep(trial.deployed.client("lambda"))
        assert report.get("failed") == 0, report
    raise AssertionError(f"not over: {trial.name}, {trial.outcomes()}, {trial.uploads()}")


def _job(key: str) -> str:
    return key.partition(MAGIC_PREFIX)[2].partition("/")[0]
