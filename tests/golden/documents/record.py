"""Records what this version writes, in each case of README.md beside this.

From the repository's root: python -m tests.golden.documents.record NEW-DIRECTORY
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.states import JobState
from tests import servers
from tests.core.world import BUCKET
from tests.fakes.execution import run_execution
from tests.fakes.faults import Call, Crash
from tests.golden.documents import jobs
from tests.golden.documents.kept import TABLE, Kept

HERE = Path(__file__).parent
VALUE = re.compile(r"""\{\s+("[A-Z]+": (?:"(?:[^"\\]|\\.)*"|true|false))\s+\}""")  # on one line

# Where their executions die: behind, or before, the first call of a verb with that word in it.


@dataclass(frozen=True)
class Stop:
    verb: str
    word: str = ""
    before: bool = False

    def strikes(self, call: Call) -> bool:
        """By a record's new state or stage, or by an object's name."""
        after = call.arguments.get("after")
        words = {call.arguments.get("target"), after and after.stage, call.key.rpartition("/")[2]}
        return self.word == "" or self.word in words


NEVER, AT_THE_END = Stop("never begun"), Stop("never stopped")
PLANNED, ENTERING, DECIDING = Stop("note"), Stop("put_claim"), Stop("decide", before=True)
DECIDED, HALF, TOLD = Stop("decide"), Stop("complete_upload"), Stop("put", "result.json")
REMOVING = Stop("delete_seen", before=True)
PAUSING = Stop("pause")


def entered(state: JobState) -> Stop:
    return Stop("advance", state)


S = JobState
COMMITTED, LOST = "COMMITTED", "ROLLED_BACK UPLOADS_LOST"
CASES: dict[str, tuple[Callable[[Kept], list[JobDirectory]], Stop, JobState, str]] = {
    "open": (jobs.writing, NEVER, S.OPEN, COMMITTED),
    "open_abandoned": (jobs.abandoned, NEVER, S.OPEN, "ABORTED ABANDONED"),
    "sealed": (jobs.appending, entered(S.SEALED), S.SEALED, COMMITTED),
    "sealed_planned": (jobs.replacing_partitions, PLANNED, S.SEALED, COMMITTED),
    "sealed_entering": (jobs.two_tasks, ENTERING, S.SEALED, COMMITTED),
    "sealed_waiting": (jobs.waiting, PAUSING, S.SEALED, COMMITTED),
    "sealed_holding": (jobs.replacing, DECIDING, S.SEALED, COMMITTED),
    "sealed_key_taken": (jobs.key_taken, entered(S.SEALED), S.SEALED, "ABORTED ALREADY_COMMITTED"),
    "sealed_without_files": (jobs.without_files, DECIDING, S.SEALED, COMMITTED),
    "committing": (jobs.replacing, DECIDED, S.COMMITTING, COMMITTED),
    "committing_half": (jobs.two_tasks, HALF, S.COMMITTING, COMMITTED),
    "publishing": (jobs.beside_nobody, entered(S.PUBLISHING), S.PUBLISHING, COMMITTED),
    "publishing_removing": (jobs.replacing_partitions, REMOVING, S.PUBLISHING, COMMITTED),
    "committed_untold": (jobs.appending, entered(S.COMMITTED), S.COMMITTED, COMMITTED),
    "committed_untidy": (jobs.two_tasks, TOLD, S.COMMITTED, COMMITTED),
    "committed": (jobs.replacing_partitions, AT_THE_END, S.COMMITTED, COMMITTED),
    "committed_without_files": (jobs.without_files, AT_THE_END, S.COMMITTED, COMMITTED),
    "aborting": (jobs.given_up, entered(S.ABORTING), S.ABORTING, "ABORTED ABORTED_BY_CLIENT"),
    "aborted_untold": (
        jobs.in_the_way,
        entered(S.ABORTED),
        S.ABORTED,
        "ABORTED DESTINATION_NOT_EMPTY",
    ),
    "aborted": (jobs.conditioned, AT_THE_END, S.ABORTED, "ABORTED CONDITION_FAILED"),
    "rolling_back": (jobs.replacing, entered(S.ROLLING_BACK), S.ROLLING_BACK, LOST),
    "rolled_back_untold": (jobs.appending, entered(S.ROLLED_BACK), S.ROLLED_BACK, LOST),
    "rolled_back": (jobs.replacing, AT_THE_END, S.ROLLED_BACK, LOST),
}


def record(world: Kept, name: str) -> dict[str, Any]:
    """Run a case's jobs up to where the last one stops, and return what is there then."""
    prepare, stop, state, end = CASES[name]
    directories = prepare(world)
    if end == LOST:
        jobs.lose_last_upload(world)
    if stop is REMOVING:  # it dies between two files
        gone = f"{TABLE}dt=1/old.csv"
        world.plan.run_before("delete_seen", lambda: world.store.delete(BUCKET, gone))
    strike = world.plan.crash_before if stop.before else world.plan.crash_after
    strike(stop.verb, where=stop.strikes)

    def pause() -> None:
        raise Crash

    if stop is not NEVER:
        with suppress(Crash):
            run_execution(world.ports, directories[-1], pause=pause)
            assert stop is AT_THE_END, f"{name} has not come to where it stops"
    assert world.record(directories[-1]).state is state, name
    ends = [COMMITTED] * (len(directories) - 1) + [end]
    told = [
        {"jobId": directory.job_id, "state": world.record(directory).state, "ends": one}
        for directory, one in zip(directories, ends, strict=True)
    ]
    return {"what": f"{prepare.__doc__}", "jobs": told, **world.save()}


@contextmanager
def moto() -> Iterator[str]:
    """The URL of a moto server."""
    command = [sys.executable, servers.__file__]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield servers.read_line(process)
        finally:
            process.kill()


def main() -> None:
    """Record all cases into a new directory beside this file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    folder = HERE / parser.parse_args().directory
    folder.mkdir()
    os.environ.update(AWS_ACCESS_KEY_ID="testing", AWS_SECRET_ACCESS_KEY="testing")
    with moto() as endpoint:
        for name, (prepare, *_) in CASES.items():
            case = record(Kept(endpoint, versioned=prepare is jobs.replacing), name)
            text = VALUE.sub(r"{\1}", json.dumps(case, indent=1))
            (folder / f"{name}.json").write_text(text + "\n")
            print(f"recorded {name}")


if __name__ == "__main__":
    main()
