"""The truth table of a job: record by ``_commits/`` by result by request.

The first row that fits says what is true, and how the job's files are to be judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final

from s3commit.core.fsck.words import (
    Action,
    Commits,
    Level,
    Record,
    Request,
    Result,
    Standing,
    Verdict,
)

JobCombination = tuple[Record, Commits, Result, Request]


@dataclass(frozen=True, slots=True)
class JobRow:
    """One row. ``standing`` None: the files are judged by the ledger's state, or the result."""

    verdict: Verdict
    record: frozenset[Record] = frozenset(Record)
    commits: frozenset[Commits] = frozenset(Commits)
    result: frozenset[Result] = frozenset(Result)
    request: frozenset[Request] = frozenset(Request)
    standing: Standing | None = None

    def fits(self, combination: JobCombination) -> bool:
        """Whether the row is about the combination."""
        record, commits, result, request = combination
        return (
            record in self.record
            and commits in self.commits
            and result in self.result
            and request in self.request
        )


_START: Final = (Action.START_EXECUTION,)
_GO_ON: Final = "Start an execution: the same as `s3commit commit JOBDIR`"

_NO_RECORD: Final = frozenset({Record.ABSENT})
_UNDONE: Final = frozenset({Record.ABORTED, Record.ROLLED_BACK})
_ENDED: Final = _UNDONE | {Record.COMMITTED}
_AT_WORK: Final = frozenset(
    {Record.SEALED, Record.COMMITTING, Record.PUBLISHING, Record.ABORTING, Record.ROLLING_BACK}
)
_NO_COMMITS: Final = frozenset({Commits.ABSENT})
_COMMITS: Final = frozenset({Commits.THERE})
_NO_RESULT: Final = frozenset({Result.ABSENT})
_RESULT: Final = frozenset(Result) - _NO_RESULT
_RESULT_UNDONE: Final = frozenset({Result.ABORTED, Result.ROLLED_BACK})
_NO_REQUEST: Final = frozenset({Request.ABSENT})
_REQUEST: Final = frozenset({Request.THERE})


def _contradicts(record: Record) -> JobRow:
    others = _RESULT - {Result(record.value)}
    return JobRow(
        _RESULT_CONTRADICTS, frozenset({record}), result=others, standing=Standing.IN_DOUBT
    )


UNREADABLE: Final = Verdict(
    "UNREADABLE",
    Level.FINDING,
    "`result.json`, or the job's list in `_commits/`, can't be read, is another job's, or counts"
    " other files than the ledger or the result",
    "Nothing by itself: find out who wrote it, and bring back what was there",
)
_FORGOTTEN: Final = Verdict(
    "FORGOTTEN",
    Level.FINE,
    "The job has ended; the ledger has forgotten it, as it forgets all ended jobs",
    "Nothing",
)
_REQUEST_UNHEARD: Final = Verdict(
    "REQUEST_UNHEARD",
    Level.FINDING,
    "The request stands, and nobody has heard it: its event was lost or the ledger was",
    _GO_ON,
    _START,
)
_RESULT_CONTRADICTS: Final = Verdict(
    "RESULT_CONTRADICTS",
    Level.FINDING,
    "`result.json` has another outcome than the ledger",
    "Nothing by itself: nobody can tell which one its client was told. Look at the files",
)
LIST_CONTRADICTS: Final = Verdict(
    "LIST_CONTRADICTS",
    Level.FINDING,
    "`_commits/` lists the files of a job that by the ledger or its result is not committed,"
    " or that nobody has asked to commit",
    "Nothing by itself: find out who wrote the list, or who changed the ledger",
)
RETIRED: Final = Verdict(
    "RETIRED",
    Level.FINE,
    "The job is committed; ledger and job directory have been cleared since",
    "Nothing",
)
_LEDGER_SET_BACK: Final = Verdict(
    "LEDGER_SET_BACK",
    Level.FINDING,
    "S3 says that the job has ended, or is being published, and the ledger has it at an earlier"
    " state: the table was restored to a moment of before",
    "Nothing by itself. Stop the pipeline, and make the ledger anew in an empty table:"
    " `--rebuild-ledger`",
)
_LIST_MISSING: Final = Verdict(
    "LIST_MISSING",
    Level.FINDING,
    "The job is committed and its list in `_commits/` is gone: which files it has nobody knows",
    "Nothing by itself. On a versioned bucket bring it back; else readers go by the files' names",
)
NOT_GOING_ON: Final = Verdict(
    "NOT_GOING_ON",
    Level.FINDING,
    "The job was asked for and has not ended, and no execution works on it",
    f"{_GO_ON}. Where that fails as well, bring back what is named as gone or changed;"
    " `s3commit show JOB` says what the execution failed with, and what to do",
    _START,
)

JOB_TABLE: Final[tuple[JobRow, ...]] = (
    JobRow(
        UNREADABLE,
        result=frozenset({Result.UNREADABLE}),
        standing=Standing.IN_DOUBT,
    ),
    JobRow(
        UNREADABLE,
        commits=frozenset({Commits.UNREADABLE}),
        standing=Standing.IN_DOUBT,
    ),
    *(_contradicts(record) for record in (Record.COMMITTED, Record.ABORTED, Record.ROLLED_BACK)),
    JobRow(
        _LEDGER_SET_BACK,
        _AT_WORK | {Record.OPEN},
        result=_RESULT,
        standing=Standing.IN_DOUBT,
    ),
    JobRow(
        _LEDGER_SET_BACK,
        (_AT_WORK | {Record.OPEN}) - {Record.PUBLISHING},
        _COMMITS,
        standing=Standing.IN_DOUBT,
    ),
    JobRow(
        LIST_CONTRADICTS,
        frozenset(Record) - {Record.ABSENT, Record.PUBLISHING, Record.COMMITTED},
        _COMMITS,
        standing=Standing.IN_DOUBT,
    ),
    JobRow(
        LIST_CONTRADICTS,
        _NO_RECORD,
        _COMMITS,
        _RESULT_UNDONE,
        standing=Standing.IN_DOUBT,
    ),
    JobRow(_LIST_MISSING, frozenset({Record.COMMITTED}), _NO_COMMITS, standing=Standing.IN_DOUBT),
    JobRow(
        _LIST_MISSING,
        _NO_RECORD,
        _NO_COMMITS,
        frozenset({Result.COMMITTED}),
        standing=Standing.IN_DOUBT,
    ),
    JobRow(
        Verdict(
            "RESULT_MISSING",
            Level.FINDING,
            "The job has ended, and its client waits for a result that nobody wrote",
            "Start an execution, which writes it",
            _START,
        ),
        _ENDED,
        result=_NO_RESULT,
        request=_REQUEST,
    ),
    JobRow(
        Verdict("ENDED", Level.FINE, "The job has ended, and ledger and S3 agree", "Nothing"),
        _ENDED,
    ),
    JobRow(
        NOT_GOING_ON,
        _AT_WORK,
    ),
    JobRow(
        _REQUEST_UNHEARD,
        frozenset({Record.OPEN}),
        request=_REQUEST,
    ),
    JobRow(
        Verdict("WRITING", Level.FINE, "Its tasks are writing, or its driver has died", "Nothing"),
        frozenset({Record.OPEN}),
    ),
    JobRow(
        _FORGOTTEN,
        result=frozenset({Result.COMMITTED}),
    ),
    JobRow(
        _FORGOTTEN,
        result=_RESULT_UNDONE,
    ),
    JobRow(
        Verdict(
            "PUBLISHING_UNRECORDED",
            Level.FINDING,
            "All files are visible and listed, but the ledger does not know the job, and its client"
            " waits for a result",
            _GO_ON,
            _START,
        ),
        commits=_COMMITS,
        request=_REQUEST,
        standing=Standing.UNRECORDED,
    ),
    JobRow(
        RETIRED,
        commits=_COMMITS,
        standing=Standing.COMMITTED,
    ),
    JobRow(
        _REQUEST_UNHEARD,
        request=_REQUEST,
        standing=Standing.UNRECORDED,
    ),
    JobRow(
        Verdict(
            "UNRECORDED",
            Level.FINE,
            "A job directory and no record: its tasks are writing their first files, or the ledger"
            " was lost",
            "Nothing",
        ),
        standing=Standing.UNRECORDED,
    ),
)


def judge_job(
    record: Record, commits: Commits, result: Result, request: Request
) -> tuple[Verdict, Standing]:
    """What is true of a job, and how its files are to be judged."""
    combination = (record, commits, result, request)
    row = next(row for row in JOB_TABLE if row.fits(combination))
    if row.standing is not None:
        return row.verdict, row.standing
    return row.verdict, Standing(result if record is Record.ABSENT else record)


def job_combinations() -> list[JobCombination]:
    """All combinations, in the order of the words."""
    return list(product(Record, Commits, Result, Request))
