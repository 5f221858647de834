"""The decision table of a job: record by commit manifest by result by request.

A row also says by which state of the job its files are judged.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import partial
from typing import Final

from s3commit.core.fsck.verdict import Action, DecisionTable, Row, Verdict, finding, fine
from s3commit.core.job.stored_job import Presence
from s3commit.core.model.job import Outcome
from s3commit.core.model.states import ENDED, JobState


class WithoutState(StrEnum):
    """Why the ledger's state does not count for the files of a job."""

    UNRECORDED = "unrecorded"  # no record and no result, but something of the job is there
    IN_DOUBT = "in doubt"  # its documents contradict each other, or can't be read


JobPhase = JobState | WithoutState
JobRow = Row[JobPhase | None]

ABSENT: Final = frozenset({Presence.ABSENT})
THERE: Final = frozenset({Presence.THERE})
UNREADABLE_ONE: Final = frozenset({Presence.UNREADABLE})
UNDONE: Final = frozenset({JobState.ABORTED, JobState.ROLLED_BACK})

_RECORDS: Final = (Presence.ABSENT, *JobState)
_RESULTS: Final = (Presence.ABSENT, *Outcome, Presence.UNREADABLE)
_REQUESTS: Final = (Presence.ABSENT, Presence.THERE)
_COLUMNS: Final[dict[str, tuple[StrEnum, ...]]] = {
    "record": _RECORDS,
    "`_commits/`": tuple(Presence),
    "result": _RESULTS,
    "request": _REQUESTS,
}
_AT_WORK: Final = frozenset(JobState) - ENDED - {JobState.OPEN}
_RESULT: Final = frozenset(_RESULTS) - ABSENT
_RESULT_UNDONE: Final = frozenset({Outcome.ABORTED, Outcome.ROLLED_BACK})
_GO_ON: Final = "Start an execution: the same as `s3commit commit JOBDIR`"


def _row(
    verdict: Verdict,
    *,
    record: Iterable[StrEnum] = _RECORDS,
    commits: Iterable[StrEnum] = Presence,
    result: Iterable[StrEnum] = _RESULTS,
    request: Iterable[StrEnum] = _REQUESTS,
    phase: JobPhase | None = None,
) -> JobRow:
    """One row. ``phase`` None: files are judged by the ledger's state, or by the result."""
    columns = (record, commits, result, request)
    return Row(verdict, tuple(frozenset(values) for values in columns), phase)


_doubt = partial(_row, phase=WithoutState.IN_DOUBT)

UNREADABLE: Final = finding(
    "UNREADABLE",
    "`result.json` or the commit manifest can't be read, is another job's, or counts other files"
    " than the ledger or the result",
    "Nothing by itself. Find out who wrote it, and restore what was there",
)
_FORGOTTEN: Final = fine(
    "FORGOTTEN", "The job has ended, and the ledger has forgotten it, as it forgets all ended jobs"
)
_REQUEST_UNHEARD: Final = finding(
    "REQUEST_UNHEARD",
    "The job was requested, and the pipeline does not know: the event or the ledger was lost",
    _GO_ON,
    Action.START_EXECUTION,
)
_RESULT_CONTRADICTS: Final = finding(
    "RESULT_CONTRADICTS",
    "`result.json` has another outcome than the ledger",
    "Nothing by itself: nobody can tell which outcome the client saw. Look at the files",
)
LIST_CONTRADICTS: Final = finding(
    "LIST_CONTRADICTS",
    "The job has a commit manifest, but by the ledger or its result it is not committed, or it was"
    " never requested",
    "Nothing by itself. Find out who wrote the commit manifest, or who changed the ledger",
)
RETIRED: Final = fine(
    "RETIRED", "The job is committed, and its record and job directory were deleted since"
)
_LEDGER_SET_BACK: Final = finding(
    "LEDGER_SET_BACK",
    "By S3 the job has ended or is being published, and the ledger has it in an earlier state: the"
    " table was restored to an earlier point in time",
    "Nothing by itself. Stop the pipeline, and rebuild the ledger in an empty table:"
    " `--rebuild-ledger`",
)
_LIST_MISSING: Final = finding(
    "LIST_MISSING",
    "The job is committed and its commit manifest is gone: nobody knows which files it has",
    "Nothing by itself. Restore it on a versioned bucket; otherwise readers go by the file names",
)
NOT_GOING_ON: Final = finding(
    "NOT_GOING_ON",
    "The job was requested and has not ended, and no execution works on it",
    f"{_GO_ON}. If that fails too, restore what is named as gone or changed; `s3commit show JOB`"
    " says why the execution failed, and what to do",
    Action.START_EXECUTION,
)

JOB_TABLE: Final[DecisionTable[JobPhase | None]] = DecisionTable(
    _COLUMNS,
    (
        _doubt(UNREADABLE, result=UNREADABLE_ONE),
        _doubt(UNREADABLE, commits=UNREADABLE_ONE),
        *(
            _doubt(_RESULT_CONTRADICTS, record={state}, result=_RESULT - {Outcome(state.value)})
            for state in (JobState.COMMITTED, JobState.ABORTED, JobState.ROLLED_BACK)
        ),
        _doubt(_LEDGER_SET_BACK, record=_AT_WORK | {JobState.OPEN}, result=_RESULT),
        _doubt(
            _LEDGER_SET_BACK,
            record=(_AT_WORK | {JobState.OPEN}) - {JobState.PUBLISHING},
            commits=THERE,
        ),
        _doubt(LIST_CONTRADICTS, record=UNDONE, commits=THERE),
        _doubt(LIST_CONTRADICTS, record=ABSENT, commits=THERE, result=_RESULT_UNDONE),
        _doubt(_LIST_MISSING, record={JobState.COMMITTED}, commits=ABSENT),
        _doubt(_LIST_MISSING, record=ABSENT, commits=ABSENT, result={Outcome.COMMITTED}),
        _row(
            finding(
                "RESULT_MISSING",
                "The job has ended, and its client waits for a result that was never written",
                "Start an execution, which writes it",
                Action.START_EXECUTION,
            ),
            record=ENDED,
            result=ABSENT,
            request=THERE,
        ),
        _row(
            fine("ENDED", "The job has ended, and ledger and S3 agree"),
            record=ENDED,
        ),
        _row(NOT_GOING_ON, record=_AT_WORK),
        _row(_REQUEST_UNHEARD, record={JobState.OPEN}, request=THERE),
        _row(
            fine("WRITING", "Tasks are writing, or the driver has died"),
            record={JobState.OPEN},
        ),
        _row(_FORGOTTEN, result=Outcome),
        _row(
            finding(
                "PUBLISHING_UNRECORDED",
                "All files are visible and listed, but the ledger does not know the job, and its"
                " client waits for a result",
                _GO_ON,
                Action.START_EXECUTION,
            ),
            commits=THERE,
            request=THERE,
            phase=WithoutState.UNRECORDED,
        ),
        _row(RETIRED, commits=THERE, phase=JobState.COMMITTED),
        _row(_REQUEST_UNHEARD, request=THERE, phase=WithoutState.UNRECORDED),
        _row(
            fine(
                "UNRECORDED",
                "The job has a directory and no record: its tasks are writing their first files, or"
                " the ledger was lost",
            ),
            phase=WithoutState.UNRECORDED,
        ),
    ),
)


def judge_job(
    record: JobState | None, commits: Presence, result: Outcome | Presence, request: Presence
) -> tuple[Verdict, JobPhase]:
    """What is true of a job, and how its files are to be judged."""
    row = JOB_TABLE.row(record or Presence.ABSENT, commits, result, request)
    return row.verdict, row.answer or record or JobState(result.value)
