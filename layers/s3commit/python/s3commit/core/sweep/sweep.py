"""The sweep: four questions, one after the other, and the actions that their answers name.

The cost of a job is bounded, and so is that of a destination; each question has its share of the
call's time, and goes through its jobs in another order in each sweep. So a writer below one prefix
can't keep other jobs from their turn for long (I12). All actions are conditional or repeatable: two
sweeps at the same time, or one that dies anywhere, do no harm.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import nsmallest
from itertools import chain
from typing import Final, TypeVar

from s3commit.core.model.errors import PreconditionError, S3CommitError
from s3commit.core.model.limits import CALL_SECONDS
from s3commit.core.model.moments import shifted
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.executions import Executions
from s3commit.core.ports.ledger import LostRaceError
from s3commit.core.sweep.actions import Action, SweepReport

T = TypeVar("T")
HOUR: Final = 3600
DAY: Final = 24 * HOUR
MOST_RECORDS: Final = 50_000  # of a question, in memory


@dataclass(frozen=True, slots=True)
class Limits:
    """When something counts as left behind, in seconds; docs/operations.md says what each means."""

    stuck: int
    abandoned: int
    retention: int

    @classmethod
    def of(cls, parameters: Mapping[str, str | int]) -> Limits:
        """The limits by a deployment's parameters. Raises `KeyError`."""
        return cls(
            stuck=int(parameters["stuckMinutes"]) * 60,
            abandoned=int(parameters["abandonedHours"]) * HOUR,
            retention=int(parameters["retentionDays"]) * DAY,
        )


@dataclass(slots=True)
class Sweep:
    """One sweep. With ``dry_run`` its report says what it would do, and nothing is changed."""

    ports: Ports
    executions: Executions
    limits: Limits
    dry_run: bool = False
    now: str = ""
    list_until: str = field(init=False)  # of the question that is being asked

    def __post_init__(self) -> None:
        self.now = self.now or self.ports.clock.now()
        self.list_until = shifted(self.now, CALL_SECONDS)

    def ago(self, seconds: float) -> str:
        """The moment so long before the sweep began."""
        return shifted(self.now, -seconds)

    def lot(self, name: str) -> str:
        """32 hex digits for a name: others in the next sweep, and no client can choose them."""
        return hashlib.sha256(f"{self.now} {name}".encode()).hexdigest()[:32]

    def jobs_in(self, *states: JobState, before: str, ended_since: str = "") -> Iterator[JobRecord]:
        """The jobs that `Ledger.jobs_in` lists, by lot, and of each what is small.

        `MOST_RECORDS` at most, of those that half of the question's time is enough to list. Each
        listing begins at a moment by lot: just now, some time ago, or long ago.
        """

        def listed(state: JobState) -> Iterator[JobRecord]:
            since = ended_since if state in ENDED else ""
            ago = 10 ** (7 * int(self.lot(state)[:8], 16) / 16**8)  # seconds, up to 115 days
            first = max(since, shifted(before, -ago))
            listing = partial(self.ports.ledger.jobs_in, state)
            return chain(listing(before=before, since=first), listing(before=first, since=since))

        found = chain.from_iterable(map(listed, sorted(states, key=self.lot)))
        in_time = map(_small, _in_time(self, found, self.list_until))
        return iter(nsmallest(MOST_RECORDS, in_time, key=lambda record: self.lot(record.ref)))


def _small(record: JobRecord) -> JobRecord:
    """The jobs that a sweep looks at. A client may make a record of a hundred kilobytes (I12)."""
    return replace(
        record, partition_by=(), locks=(), plan=None, replaced=None, waits=None, failure=None
    )


@dataclass(frozen=True, slots=True)
class Visit:
    """One job or destination that a question asks about; ``what`` names it if that fails."""

    what: str
    find: Callable[[], Iterator[Action]]


Question = Callable[[Sweep], Iterator[Visit]]


def ask(sweep: Sweep, questions: Iterable[Question]) -> SweepReport:
    """Ask each question, and carry out what its answers say."""
    report, planned, questions = SweepReport(), set[Action](), list(questions)
    for number, question in enumerate(questions, start=1):
        share = CALL_SECONDS / len(questions)
        sweep.list_until = shifted(sweep.now, (number - 0.5) * share)
        until = shifted(sweep.now, number * share)
        visits = _in_time(sweep, question(sweep), until)
        try:
            for done, failures in sweep.ports.parallel(partial(_answer, sweep), visits):
                report.visited += 1
                for failure in failures:
                    report.fail(*failure)
                for action in done:
                    if action not in planned:  # a dry run meets it again, a real one does not
                        planned.add(action)
                        report.add(action.counts)
                        report.note(action.line)
        except S3CommitError as error:  # the index can't be read: the next question may be able to
            report.incomplete = True
            report.fail(question.__name__, error)
    return report


def _in_time(sweep: Sweep, items: Iterable[T], until: str) -> Iterator[T]:
    for item in items:
        if sweep.ports.clock.now() > until:
            return  # by lot, it is another one's turn in the next sweep
        yield item


def _answer(sweep: Sweep, visit: Visit) -> tuple[list[Action], list[tuple[str, S3CommitError]]]:
    """Carry out what one visit finds: the actions done, or planned, and what failed, and why.

    If it fails, others still have their turn in this sweep.
    """
    done, failures, actions = list[Action](), list[tuple[str, S3CommitError]](), visit.find()
    while True:
        try:
            action = next(actions, None)
            if action is None:  # also if finding them has failed
                return done, failures
            if sweep.dry_run or action.carry_out():
                done.append(action)
        except (LostRaceError, PreconditionError):
            pass  # the client, an execution or another sweep was faster
        except S3CommitError as error:
            failures.append((visit.what, error))
