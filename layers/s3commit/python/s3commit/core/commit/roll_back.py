"""RollBack: a decided job of which a file is lost is undone."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from s3commit.core.ending.objects import (
    decided_plan,
    delete_objects,
    listed_objects,
    planned_objects,
    planned_portions,
    stop_in_doubt,
)
from s3commit.core.ending.result import conclude
from s3commit.core.ending.uploads import abort_planned, abort_uploads, own_uploads
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.plan import Unit
from s3commit.core.formats.ticket import Ticket
from s3commit.core.job.record import coming_again, moved, own_record, unless_overtaken
from s3commit.core.model.errors import JobRefusedError, NotFoundError
from s3commit.core.model.job import Names
from s3commit.core.model.pending import PendingFile
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.clock import CallTime
from s3commit.core.recovery.lost_record import stop_if_published


def roll_back(ports: Ports, ticket: Ticket) -> Ticket:
    """Undo a decided job of which a file is lost: afterwards none of its files is visible (I2).

    First every upload is aborted, which fences off workers that still complete; then what is
    visible and provably ours is deleted; then both are looked at once more. While uploads are
    still being opened, or a call has no time for all, the job stays ROLLING_BACK, and the caller
    comes again. Raises `IdentityUnknownError` before it touches anything where nobody can tell
    whose a file is; `AccessError` where a file may not be deleted: it goes on there when that is
    mended.
    """
    record = own_record(ports, ticket, JobState.ROLLING_BACK, JobState.ROLLED_BACK)
    if record.state is JobState.ROLLING_BACK:
        with unless_overtaken(ports, ticket, JobState.ROLLING_BACK):
            stop_if_published(ports, ticket.directory)
            undoing = _Undoing(ports, ticket.directory, record)
            if not undoing.run(ticket.page):
                return coming_again(ports, ticket, record, undoing.time, undoing.page)
        record = moved(ports, record, JobState.ROLLED_BACK)
    return conclude(ports, ticket, record)


class _Undoing:
    """One call: ``page`` says how far it is, by stage, and by unit where a stage has the plan's."""

    def __init__(self, ports: Ports, directory: JobDirectory, record: JobRecord) -> None:
        self.page = 0
        self.time = CallTime(ports.clock)
        self._ports = ports
        self._directory = directory
        self._record = record
        self._is_exact = record.names is Names.EXACT

    def run(self, page: int) -> bool:
        """Go on from ``page``; False if something is left, now or again."""
        pages = 1 + (self._record.plan.units if self._record.plan else 0)
        first, unit = divmod(page, pages)
        stages = (self._judge, self._fence, self._abort, self._delete, self._is_undone)
        for stage, ended in list(enumerate(stages))[first:]:
            self.page = stage * pages + unit
            if not ended(unit):
                return False
            unit = 0
        return True

    # Each stage begins with a unit of the plan, and says whether it has ended.

    def _judge(self, unit: int) -> bool:
        if not self._is_exact:
            return True
        return self._each_portion(unit, self._stop_in_doubt)

    def _fence(self, unit: int) -> bool:
        """By the ids in the manifests: a listing may lack an upload (docs/adr/0022)."""
        return self._each_portion(
            unit, lambda files: abort_planned(self._ports, self._directory, files)
        )

    def _abort(self, _unit: int) -> bool:
        return abort_uploads(self._ports, self._directory, self.time)

    def _delete(self, unit: int) -> bool:
        def delete(files: list[PendingFile]) -> bool:
            found = planned_objects(self._ports, self._record, files)
            delete_objects(self._ports, self._directory, found)
            return True

        if self._is_exact:
            return self._each_portion(unit, delete)
        listed = listed_objects(self._ports, self._directory, self._record)
        delete_objects(self._ports, self._directory, self.time.take(listed))
        return not self.time.is_cut

    def _is_undone(self, unit: int) -> bool:
        """Whether nothing is visible, or open: a worker may have completed a file meanwhile."""
        if self._finds_nothing(unit):
            return True
        if not self.time.is_cut:
            self.page = 0
        return False

    def _finds_nothing(self, unit: int) -> bool:
        def none_visible(files: list[PendingFile]) -> bool:
            self._stop_in_doubt(files)
            return next(planned_objects(self._ports, self._record, files), None) is None

        if self._is_exact:
            if not self._each_portion(unit, none_visible):
                return False
        elif next(listed_objects(self._ports, self._directory, self._record), None) is not None:
            return False
        return next(own_uploads(self._ports, self._directory), None) is None

    def _stop_in_doubt(self, files: list[PendingFile]) -> bool:
        stop_in_doubt(self._ports, self._directory.job_id, files)
        return True

    def _each_portion(self, first: int, act: Callable[[list[PendingFile]], bool]) -> bool:
        """Act on the files of the plan while there is time; a call does one portion at least."""
        for number, files in planned_portions(
            self._ports, self._directory, self._record, self._units, first
        ):
            self.page += number - first
            if number > first and self.time.is_over():
                self.time.is_cut = True
                return False
            if not act(files):
                return False
            first = number
        return True

    @cached_property
    def _units(self) -> list[Unit]:
        try:
            return decided_plan(self._ports, self._directory, self._record)
        except (JobRefusedError, NotFoundError):
            if self._is_exact:
                raise
            return []  # names and metadata say what is the job's
