"""The invariants of one state of the small world."""

from __future__ import annotations

import json
from itertools import permutations
from typing import TYPE_CHECKING, NoReturn

from s3commit.core.formats.layout import META_ATTEMPT
from s3commit.core.model.destination import Conflict
from s3commit.core.model.states import JobState
from tests.engines.explorer.small import OLD, own_files, way_there
from tests.engines.sim.model import DECIDED, ENDED, UNDER_WAY
from tests.engines.sim.scheduler import Violation

if TYPE_CHECKING:
    from tests.engines.explorer.explorer import Explorer
    from tests.engines.explorer.small import State

ALL_VISIBLE = frozenset({JobState.PUBLISHING, JobState.COMMITTED})
NOTHING_VISIBLE = frozenset(
    {JobState.OPEN, JobState.SEALED, JobState.ABORTING, JobState.ABORTED, JobState.ROLLED_BACK}
)


def judge(explorer: Explorer, state: State, *, at_an_end: bool = False) -> None:
    """Raise `Violation` for what does not hold in this state."""
    judged = _Judged(explorer, state)
    for index in range(len(explorer.directories)):
        judged.job(index, at_an_end=at_an_end)
    judged.marker()
    judged.together()
    if at_an_end:
        judged.order()
        _, locks, _, appends, *_ = state.world.ledger
        if locks or not all(one.ended for one, _ in appends.values()):
            judged.fail("I6", f"{sorted(locks)} are locked at the end, or appends under way")


class _Judged:
    def __init__(self, explorer: Explorer, state: State) -> None:
        self.rules = explorer.rules
        self.directories = explorer.directories
        self.state = state
        self.world = state.world
        self.records = [self.world.records.get(directory.ref) for directory in self.directories]

    def fail(self, invariant: str, seen: str) -> NoReturn:
        steps = enumerate(way_there(self.state), 1)
        way = "".join(f"\n  {number:3} {one}" for number, one in steps)
        raise Violation(invariant, f"{seen}, after{way}")

    def at(self, index: int) -> JobState | None:
        record = self.records[index]
        return record.state if record else None

    def files(self, index: int) -> dict[str, str]:
        """The visible files of a job: key, and the attempt that made it."""
        job_id = self.directories[index].job_id
        return {
            key: found[-1].metadata[META_ATTEMPT]
            for key, found in self.world.objects.items()
            if f"-{job_id}." in key and "/_" not in key
        }

    def job(self, index: int, *, at_an_end: bool) -> None:
        """I1 to I5 and I10, of one job."""
        name, where = "AB"[index], self.at(index)
        files = self.files(index)
        if any(attempt != "a0" for attempt in files.values()):
            self.fail("I3", f"a file of {name} is of an attempt that does not count")
        if files and (where is None or where in NOTHING_VISIBLE):
            self.fail("I1, I2", f"job {name} is {where}, and {sorted(files)} are visible")
        replaced = any(
            other != index
            and self.rules.jobs[other].conflict is Conflict.REPLACE
            and not self.rules.jobs[other].undoes
            and self.at(other) in ALL_VISIBLE
            for other in range(len(self.directories))
        )
        wanted = len(own_files(self.rules.jobs[index]))
        if where in ALL_VISIBLE and len(files) != wanted and not replaced:
            self.fail("I2", f"job {name} is {where}, and only {sorted(files)} are visible")
        decision = self.world.objects.get(self.directories[index].decision)
        if files and decision is None:
            self.fail("I8", f"{sorted(files)} are visible, and no decision record of job {name}")
        if at_an_end:
            self._ended(index)
            decided = where in {JobState.COMMITTED, JobState.ROLLED_BACK}
            if decided and (decision is None or json.loads(decision[-1].body)["state"] != where):
                self.fail("I8", f"job {name} is {where}, and its decision record does not say so")

    def _ended(self, index: int) -> None:
        name, where, directory = "AB"[index], self.at(index), self.directories[index]
        if where not in ENDED:
            self.fail("progress", f"nobody moves any more, and job {name} is {where}")
        result = self.world.objects.get(directory.result)
        if result is None or json.loads(result[-1].body)["outcome"] != where.value:
            self.fail("I2", f"job {name} is {where}, and _result.json does not say so")
        manifests = [key for key in self.world.objects if key.startswith(directory.tasks)]
        # A manifest that came after the job was tidied up is left to its own event.
        late = {json.loads(self.world.objects[key][-1].body)["taskId"] for key in manifests}
        for upload_id, upload in self.world.uploads.items():
            if f"-{directory.job_id}." in upload.key and not any(
                task in upload.key for task in late
            ):
                self.fail("I4", f"{upload_id} of job {name} is open at the end")

    def marker(self) -> None:
        """I9 and I10, of the destination."""
        found = self.world.objects.get("sales/_SUCCESS")
        job_id = json.loads(found[-1].body)["jobId"] if found else ""
        for index, directory in enumerate(self.directories):
            if directory.job_id == job_id and self.at(index) not in ALL_VISIBLE:
                self.fail("I9", f"the marker is of {'AB'[index]}, which is {self.at(index)}")
        if self.rules.before:
            return
        replacing = [
            index for index, spec in enumerate(self.rules.jobs) if spec.conflict is Conflict.REPLACE
        ]
        gone = self.rules.old and OLD not in self.world.objects
        if gone and not any(self.at(index) in ALL_VISIBLE for index in replacing):
            self.fail("I10", "the file of before is gone, and no job that replaces it is visible")
        for index in replacing:
            if self.at(index) is JobState.COMMITTED and not gone and self.rules.old:
                self.fail("I10", f"{'AB'[index]} is COMMITTED, and the file of before is there")

    def together(self) -> None:
        """I6 and I11, of two jobs."""
        if len(self.directories) < 2:
            return
        first, second = self.rules.jobs
        conflicts = Conflict.APPEND not in {first.conflict, second.conflict}
        key = second.idempotency_key
        once = key is not None and key == first.idempotency_key
        both = (self.at(0), self.at(1))
        is_undone = any(
            record is not None and record.state is JobState.ROLLING_BACK and not record.locks
            for record in self.records
        )
        if conflicts and not is_undone and all(where in UNDER_WAY for where in both):
            self.fail("I6", f"both jobs are under way: {both}")
        if once and all(where in DECIDED for where in both):
            self.fail("I11", f"both jobs are decided under one key: {both}")
        taken = key and any(one.idempotency_key == key for one in self.rules.before)
        if taken and self.at(1) in DECIDED and self.at(0) not in ALL_VISIBLE:
            self.fail("I11", f"B is decided under the key of a job, and its undo is {self.at(0)}")

    def order(self) -> None:
        """I6: the visible files are those of one serial order of the committed jobs."""
        committed = [
            index for index in range(len(self.directories)) if self.at(index) is JobState.COMMITTED
        ]
        first = {file for spec in self.rules.before for file in own_files(spec).values()}
        seen = ({OLD} | first) & set(self.world.objects) | {
            key for index in range(len(self.directories)) for key in self.files(index)
        }
        own = [set(own_files(spec).values()) for spec in self.rules.jobs]
        found = []
        orders = [tuple(committed)] if self.rules.apart else permutations(committed)
        for order in orders:
            files = first or ({OLD} if self.rules.old else set())
            for index in order:
                conflict = self.rules.jobs[index].conflict
                if conflict is Conflict.FAIL and files:
                    break
                if self.rules.jobs[index].undoes:
                    if not first <= files:
                        break  # it is undone, or replaced
                    files = files - first | own[index]
                    continue
                files = own[index] | (set() if conflict is Conflict.REPLACE else files)
            else:
                found.append(files)
        if seen not in found:
            self.fail("I6", f"{sorted(seen)} are visible: no order of the jobs leaves them")
