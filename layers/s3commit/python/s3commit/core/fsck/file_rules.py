"""The decision table of a file: phase of its job by where its name is known from by its object."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from s3commit.core.fsck.job_rules import JobPhase, WithoutState
from s3commit.core.fsck.verdict import Action, DecisionTable, Row, Verdict, finding, fine, note
from s3commit.core.model.states import ENDED, JobState


class KnownFrom(StrEnum):
    """What names a file as one of the job's."""

    COMMIT_MANIFEST = "commit manifest"
    MANIFEST = "manifest"  # of a task attempt
    NAME = "name"  # its own name carries the job's id, that is all


class ObjectState(StrEnum):
    """What lies at the file's key."""

    ABSENT = "absent"
    UPLOADING = "upload"  # not the file's bytes, but an upload of the job is open at the key
    REPLACED = "replaced"  # absent, and a later job has removed files here
    OURS = "ours"  # by metadata, or by length and etag
    FOREIGN = "another's"  # its metadata names another job
    ALIKE = "alike"  # the length and parts of a listed file; its etag tells nothing, as behind KMS
    OTHER = "other"  # other bytes, or nobody can tell whose


_PHASES: Final = (*WithoutState, *JobState)
_COLUMNS: Final[dict[str, tuple[StrEnum, ...]]] = {
    "record": _PHASES,
    "known from": tuple(KnownFrom),
    "object": tuple(ObjectState),
}
_LISTED: Final = frozenset({KnownFrom.COMMIT_MANIFEST})
_VISIBLE: Final = frozenset({WithoutState.UNRECORDED, JobState.PUBLISHING, JobState.COMMITTED})


def _row(
    verdict: Verdict,
    *,
    phase: Iterable[StrEnum] = _PHASES,
    known: Iterable[StrEnum] = KnownFrom,
    found: Iterable[StrEnum] = ObjectState,
) -> Row[None]:
    return Row(verdict, (frozenset(phase), frozenset(known), frozenset(found)), None)


def _committed(verdict: Verdict, *found: ObjectState) -> Row[None]:
    """A row of the files that the commit manifest of a visible job has."""
    return _row(verdict, phase=_VISIBLE, known=_LISTED, found=found or ObjectState)


FILE_TABLE: Final[DecisionTable[None]] = DecisionTable(
    _COLUMNS,
    (
        _row(
            fine(
                "LEFT_ALONE",
                "The documents of the job contradict each other, which is a finding of its own",
                "Nothing until that is settled",
            ),
            phase={WithoutState.IN_DOUBT},
        ),
        # Files that the commit manifest has.
        _committed(
            finding(
                "MISSING_BUT_UPLOADED",
                "A committed file is gone, and an upload is open at its key: perhaps an uncounted"
                " attempt's, and the last copy",
                "Nothing by itself. Look at the upload before anybody aborts it",
            ),
            ObjectState.UPLOADING,
        ),
        _committed(
            finding(
                "MISSING",
                "A committed file is gone, and no later job has removed files here",
                "Can't be repaired. On a versioned bucket the version to restore is named;"
                " otherwise write the data again",
            ),
            ObjectState.ABSENT,
        ),
        _committed(
            finding(
                "CHANGED",
                "A committed file has other bytes than the job wrote",
                "Can't be repaired. On a versioned bucket the version to restore is named",
            ),
            ObjectState.OTHER,
        ),
        _committed(
            fine("REPLACED", "A committed file is gone, and a later job has removed files here"),
            ObjectState.REPLACED,
        ),
        _committed(
            fine("COVERED", "Another job has overwritten the file, as jobs with exact names may"),
            ObjectState.FOREIGN,
        ),
        _committed(
            note(
                "UNSURE",
                "A committed file has the length and the parts that the job wrote, no metadata of"
                " ours, and another etag, as behind KMS, where etags can't be foretold",
                "Nothing by itself: behind KMS all is well",
            ),
            ObjectState.ALIKE,
        ),
        _committed(
            fine("WHOLE", "A committed file is there, as it was written"),
        ),
        _row(
            finding(
                "LISTED_TOO_EARLY",
                "A commit manifest has the file, and its job is not committed",
                "Nothing by itself. Find out who wrote the commit manifest",
            ),
            known=_LISTED,
        ),
        # Other files, of jobs that have not ended.
        _row(
            note(
                "HALF_VISIBLE",
                "The file is visible, and the ledger does not know its job, which has no outcome:"
                " the ledger was lost after the decision, or an S3A driver died in its own commit",
                "What the finding of the job says; if there is none: `s3commit commit JOBDIR`, or"
                " `s3commit rescue JOBDIR`",
            ),
            phase={WithoutState.UNRECORDED},
            found={ObjectState.OURS},
        ),
        _row(
            note(
                "EARLY",
                "The file is visible, and its job is not decided: the ledger was lost after an"
                " earlier decision, or an S3A driver died in its own commit",
                "The job's execution makes the other files visible too, or removes this one",
            ),
            phase={JobState.OPEN, JobState.SEALED, JobState.ABORTING},
            found={ObjectState.OURS},
        ),
        _row(
            note(
                "UPLOAD_LOST",
                "A manifest names an upload that is neither open nor completed: someone aborted it,"
                " or its attempt was given up",
                "If its attempt counts, the job's execution refuses the job or rolls it back",
            ),
            phase={JobState.SEALED, JobState.COMMITTING},
            known={KnownFrom.MANIFEST},
            found={ObjectState.ABSENT, ObjectState.REPLACED},
        ),
        # Other files, of jobs that have ended.
        _row(
            finding(
                "UNCOUNTED",
                "The file of a committed job is visible, and its commit manifest does not have it",
                "Nothing by itself. The pipeline completes counted files alone: find out who made"
                " it visible, and delete it by hand if it does not belong there",
            ),
            phase={JobState.COMMITTED},
            found={ObjectState.OURS},
        ),
        _row(
            finding(
                "VISIBLE_UNDECIDED",
                "The file of an aborted job is visible. The job was never decided, so the pipeline"
                " has completed nothing of it",
                "Nothing by itself. Find out who made it visible, and delete it by hand if it does"
                " not belong there",
            ),
            phase={JobState.ABORTED},
            found={ObjectState.OURS},
        ),
        _row(
            finding(
                "LEFT_VISIBLE",
                "The file of a rolled back job is visible",
                "If the ledger has the job, delete the object as it was seen; by version on a"
                " versioned bucket, so that what it covered comes back",
                Action.DELETE_OBJECT,
            ),
            phase={JobState.ROLLED_BACK},
            found={ObjectState.OURS},
        ),
        _row(
            note(
                "UNPROVEN",
                "An object lies where the job wrote, and nothing proves that the job made it",
                "Nothing by itself: look at it",
            ),
            phase=ENDED,
            found={ObjectState.OTHER, ObjectState.ALIKE},
        ),
        _row(
            fine("NOTHING_LEFT", "Nothing is left of the file"),
            phase=ENDED,
        ),
        _row(
            fine("UNDER_WAY", "The job has not ended: its execution sees to it"),
        ),
    ),
)

# The findings of a committed file that is not there, or not as it was written.
INCOMPLETE: Final = frozenset({"MISSING", "MISSING_BUT_UPLOADED", "CHANGED"})


def judge_file(phase: JobPhase, known: KnownFrom, found: ObjectState) -> Verdict:
    """What is true of a file."""
    return FILE_TABLE.row(phase, known, found).verdict


def object_matters(phase: JobPhase, known: KnownFrom) -> bool:
    """Whether it matters what object lies at the key: if not, nobody has to look at it."""
    gone = {ObjectState.ABSENT, ObjectState.UPLOADING, ObjectState.REPLACED}
    return len({judge_file(phase, known, one) for one in ObjectState if one not in gone}) > 1
