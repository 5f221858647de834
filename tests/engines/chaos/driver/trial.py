"""One destination at which drivers die, and the verdict at the end."""

import io
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq

import s3commit
from s3commit.core.formats.layout import MAGIC_PREFIX, JobDirectory, is_data
from s3commit.core.model.destination import Destination
from s3commit.core.model.states import ENDED, JobState
from s3commit.local.runtime import LocalRuntime
from tests.cli.support import run
from tests.engines.chaos.driver.gate import REQUEST, Gate
from tests.engines.chaos.driver.program import ROWS, partition_of, text_of
from tests.engines.chaos.left import s3, state_of
from tests.engines.chaos.world import sweep
from tests.engines.sim.clients import BUCKET
from tests.servers import until

WAIT_SECONDS = 600  # a bound for what hangs, on a busy machine too
OLD = {f"k={number}/old.bin": b"old" for number in range(3)}
KEPT = {"_job.json", REQUEST, "_result.json"}
# Why a job may have been refused here. Another reason is a refusal that nothing speaks for.
REASONS = {"ABANDONED", "ABORTED_BY_CLIENT", "ALREADY_COMMITTED"}
MOST_SWEEPS = 5
TIDY_SECONDS = 5.0  # `TidyUp` comes after the result


@dataclass(frozen=True)
class Case:
    """A policy: what the driver writes, and which of the old files it replaces."""

    name: str
    mode: str = "append"
    options: Mapping[str, str] = field(default_factory=dict)
    replaced: tuple[str, ...] = ()
    again: bool = False  # another driver comes after the dead one


def check(files: Mapping[str, bytes]) -> None:
    """What is visible is the source, row for row."""
    found: list[tuple[int, int, str]] = []
    for key, body in files.items():
        # A file object: by a path pyarrow would take a partition column from it.
        columns = pq.read_table(io.BytesIO(body)).to_pydict()
        rows = zip(columns["id"], columns["text"], strict=True)
        found += [(number, int(key[len("k=")]), text) for number, text in rows]
    wanted = [(number, partition_of(number), text_of(number)) for number in range(ROWS)]
    assert len(found) == len(wanted), f"{len(found)} rows instead of {len(wanted)}"
    assert sorted(found) == wanted


@dataclass(eq=False)
class Trial:
    """A table with old files in it, of which a commit replaces some.

    If the case comes `again`, one job must be committed at the end, else those that were requested.
    """

    runtime: LocalRuntime
    name: str
    case: Case
    gates: list[Gate] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.table = Destination(BUCKET, f"driver/{self.name}/")
        for name, body in OLD.items():
            client = self.runtime.client("s3")
            client.put_object(Bucket=BUCKET, Key=self.table.prefix + name, Body=body)

    def objects(self) -> dict[str, bytes]:
        """All objects, by their names below the table."""
        found, prefix = dict(s3(BUCKET).keys.items()), self.table.prefix
        mine = {key: one for key, one in found.items() if key.startswith(prefix)}
        return {key.removeprefix(prefix): bytes(one.value) for key, one in mine.items()}

    def states(self) -> dict[str, JobState | None]:
        """The ledger's word on each job that has left a trace, or that a driver began."""
        traces = {_job(name) for name in self.objects() if name.startswith(MAGIC_PREFIX)}
        jobs = traces.union(*(gate.jobs for gate in self.gates))
        return {
            job: state_of(self.runtime.table, JobDirectory(self.table, job)) for job in sorted(jobs)
        }

    def left(self) -> list[str]:
        """What is not tidied up: uploads, and documents."""
        uploads = [one.key_name for one in list(s3(BUCKET).multiparts.values())]
        inside = [name for name in self.objects() if name.startswith(MAGIC_PREFIX)]
        return [key for key in uploads if key.startswith(self.table.prefix)] + [
            name for name in inside if name.rsplit("/", 1)[1] not in KEPT
        ]

    def settle(self) -> None:
        """Let the pipeline and the deployed sweep end what is left."""
        for count in range(MOST_SWEEPS):
            until(self._is_answered, f"the result of {self.name}", WAIT_SECONDS)
            end = time.monotonic() + TIDY_SECONDS
            while time.monotonic() < end and self.left() and self._have_ended():
                time.sleep(0.1)
            if self._have_ended() and not self.left():
                return
            # What nothing tells of but a job directory waits for the next job there.
            if count and not self._have_ended():
                s3commit.open_job(self.table.uri).abort("it was passing by")
                until(self._is_answered, f"the end of who passes by {self.name}", WAIT_SECONDS)
            report = sweep(self.runtime.client("lambda"))
            assert report.get("failed") == 0, report
        raise AssertionError(f"not over: {self.name}, {self.states()}, {self.left()}")

    def _have_ended(self) -> bool:
        return all(state in ENDED for state in self.states().values())

    def _is_answered(self) -> bool:
        """Every job that was requested has ended: it does so by itself."""
        found, states = self.objects(), self.states()
        asked = {_job(name) for name in found if name.endswith(f"/{REQUEST}")}
        results = {_job(name) for name in found if name.endswith("/_result.json")}
        return asked <= results and all(states[job] in ENDED for job in asked)

    def verdict(self) -> None:
        """Judge the end; what readers see on the way to it does not depend on the client."""
        found, states = self.objects(), self.states()
        requested = set[str]().union(*(gate.requested for gate in self.gates))
        committed = {job for job, state in states.items() if state is JobState.COMMITTED}
        facts = f"{self.name}: {states}, asked for {requested}"
        assert committed <= requested, facts
        assert len(committed) == (1 if self.case.again else len(requested)), facts
        for name in [name for name in found if name.endswith("/_result.json")]:
            result: dict[str, Any] = json.loads(found[name])
            assert result["outcome"] == states[_job(name)], f"{facts}: {result}"
            assert not result.get("error") or result["error"]["code"] in REASONS, result
        kept = OLD.keys() - (self.case.replaced if committed else ())
        data = {name: body for name, body in found.items() if is_data(name)}
        new = {name: data[name] for name in data.keys() - OLD.keys()}
        assert data.keys() - new.keys() == kept, f"{facts}: {sorted(data)}"
        assert {name: data[name] for name in kept} == {name: OLD[name] for name in kept}, facts
        assert bool(new) == bool(committed) == ("_SUCCESS" in found), facts
        if committed:
            check(new)
            assert json.loads(found["_SUCCESS"])["jobId"] in committed, facts
        assert not self.left(), f"{facts}: {self.left()}"
        run("fsck", self.table.uri, "--table", self.runtime.table)


def _job(name: str) -> str:
    return name.partition(MAGIC_PREFIX)[2].partition("/")[0]
