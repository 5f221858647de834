"""Rows of the files that no list in ``_commits/`` has: of jobs under way, then of ended ones."""

from __future__ import annotations

from typing import Final

from s3commit.core.fsck.file_row import (
    ENDED,
    NONE,
    NOTHING,
    OPEN,
    OURS,
    UNLISTED,
    FileRow,
    one,
)
from s3commit.core.fsck.words import Action, Level, Named, Standing, Thing, Verdict

UNLISTED_ROWS: Final[tuple[FileRow, ...]] = (
    FileRow(
        Verdict(
            "HALF_VISIBLE",
            Level.NOTE,
            "A file is visible of a job that the ledger does not know and that has no outcome: the"
            " ledger was lost after the decision, or an S3A driver died in its own commit",
            "What the job's own finding says; where it has none: `s3commit commit JOBDIR`, or"
            " `s3commit rescue JOBDIR`",
        ),
        one(Standing.UNRECORDED),
        thing=OURS,
    ),
    FileRow(
        Verdict(
            "EARLY",
            Level.NOTE,
            "A file is visible of a job that is not decided: the ledger was lost after an earlier"
            " decision, or an S3A driver died in its own commit",
            "The job's execution makes the rest visible too, or removes it",
        ),
        frozenset({Standing.OPEN, Standing.SEALED, Standing.ABORTING}),
        thing=OURS,
    ),
    FileRow(
        Verdict(
            "UPLOAD_LOST",
            Level.NOTE,
            "A manifest names an upload that is neither open nor completed: someone aborted it, or"
            " its attempt was given up",
            "If its attempt counts, the job's execution refuses the job or rolls it back",
        ),
        frozenset({Standing.SEALED, Standing.COMMITTING}),
        frozenset({Named.PENDING}),
        NONE,
        NOTHING,
    ),
    FileRow(
        Verdict(
            "UNCOUNTED_AND_UPLOAD",
            Level.FINDING,
            "A committed job's file that its list does not have is visible, and an upload is open"
            " beside it",
            "Abort the upload. The pipeline completes counted files alone: find out who made the"
            " object visible, and delete it by hand if it does not belong there",
            (Action.ABORT_UPLOAD,),
        ),
        one(Standing.COMMITTED),
        UNLISTED,
        OPEN,
        OURS,
    ),
    FileRow(
        Verdict(
            "UNCOUNTED",
            Level.FINDING,
            "A committed job's file that its list does not have is visible",
            "Nothing by itself. The pipeline completes counted files alone: find out who made it"
            " visible, and delete it by hand if it does not belong there",
        ),
        one(Standing.COMMITTED),
        UNLISTED,
        NONE,
        OURS,
    ),
    FileRow(
        Verdict(
            "VISIBLE_UNDECIDED",
            Level.FINDING,
            "A file of a job that was aborted is visible. It was never decided, so the pipeline has"
            " completed nothing of it",
            "An upload beside it is aborted. Find out who made the file visible, and delete it by"
            " hand if it does not belong there",
            (Action.ABORT_UPLOAD,),
        ),
        one(Standing.ABORTED),
        UNLISTED,
        thing=OURS,
    ),
    FileRow(
        Verdict(
            "LEFT_VISIBLE",
            Level.FINDING,
            "A file of a job that was rolled back is visible",
            "If the ledger has the job: abort an upload beside it, and delete the object, as it was"
            " seen; by version on a versioned bucket, so that what it covered comes back",
            (Action.ABORT_UPLOAD, Action.DELETE_OBJECT),
        ),
        one(Standing.ROLLED_BACK),
        UNLISTED,
        thing=OURS,
    ),
    FileRow(
        Verdict(
            "UPLOAD_LEFT",
            Level.FINDING,
            "An open upload of a job that has ended: it can never be completed, and is paid for",
            "Abort it",
            (Action.ABORT_UPLOAD,),
        ),
        ENDED,
        UNLISTED,
        OPEN,
    ),
    FileRow(
        Verdict(
            "UNPROVEN",
            Level.NOTE,
            "An object lies where the job wrote, and nothing proves that the job made it",
            "Nothing by itself: look at it",
        ),
        ENDED,
        UNLISTED,
        thing=frozenset({Thing.OTHER, Thing.ALIKE}),
    ),
    FileRow(
        Verdict("NOTHING_LEFT", Level.FINE, "Nothing is left of the file", "Nothing"),
        ENDED,
        UNLISTED,
    ),
    FileRow(
        Verdict("UNDER_WAY", Level.FINE, "The job has not ended: its own execution's", "Nothing"),
    ),
)
