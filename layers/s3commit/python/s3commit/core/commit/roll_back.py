"""RollBack: a decided job of which a file is lost is undone."""

from __future__ import annotations

from functools import cached_property
from itertools import chain

from s3commit.core.ending.objects import (
    decided_plan,
    delete_objects,
    listed_objects,
    planned_portions,
)
from s3commit.core.ending.result import conclude
from s3commit.core.ending.uploads import abort_planned, abort_uploads, own_uploads
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.plan import Unit
from s3commit.core.formats.ticket import Ticket
from s3commit.core.job.record import coming_again, moved, own_record, unless_overtaken
from s3commit.core.model.errors import JobRefusedError, NotFoundError
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
    comes again. Raises `AccessError` where a file may not be deleted: the step continues there when
    that is mended.
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

    def run(self, page: int) -> bool:
        """Go on from ``page``; False if something is left, now or again."""
        pages = 1 + (self._record.plan.units if self._record.plan else 0)
        first, unit = divmod(page, pages)
        stages = (self._fence, self._abort, self._delete, self._is_undone)
        for stage, ended in list(enumerate(stages))[first:]:
            self.page = stage * pages + unit
            if not ended(unit):
                return False
            unit = 0
        return True

    # Each stage begins with a unit of the plan, and says whether it has ended.

    def _fence(self, first: int) -> bool:
        """By the ids in the manifests: a listing may lack an upload (docs/adr/0022)."""
        for number, files in planned_portions(
            self._ports, self._directory, self._record, self._units, first
        ):
            self.page += number - first
            if number > first and self.time.is_over():
                self.time.is_cut = True
                return False
            if not abort_planned(self._ports, self._directory, files):
                return False
            first = number
        return True

    def _abort(self, _unit: int) -> bool:
        return abort_uploads(self._ports, self._directory, self.time)

    def _delete(self, _unit: int) -> bool:
        listed = listed_objects(self._ports, self._directory, self._record)
        delete_objects(self._ports, self._directory, self.time.take(listed))
        return not self.time.is_cut

    def _is_undone(self, _unit: int) -> bool:
        """Whether nothing is visible, or open: a worker may have completed a file meanwhile."""
        visible = listed_objects(self._ports, self._directory, self._record)
        left = chain(visible, own_uploads(self._ports, self._directory))
        if next(iter(left), None) is None:
            return True
        self.page = 0
        return False

    @cached_property
    def _units(self) -> list[Unit]:
        try:
            return decided_plan(self._ports, self._directory, self._record)
        except (JobRefusedError, NotFoundError):
            return []  # names and metadata say what is the job's
