"""Rows of unknown jobs, of jobs in doubt, and of the files that a list in ``_commits/`` has."""

from __future__ import annotations

from typing import Final

from s3commit.core.fsck.file_row import LISTED, OPEN, VISIBLE, FileRow, one
from s3commit.core.fsck.words import Action, Level, Standing, Thing, Verdict

LISTED_ROWS: Final[tuple[FileRow, ...]] = (
    FileRow(
        Verdict(
            "LEFT_ALONE",
            Level.FINE,
            "The job's documents contradict each other, which is a finding of its own",
            "Nothing until the job is clear",
        ),
        one(Standing.IN_DOUBT),
    ),
    FileRow(
        Verdict(
            "UPLOAD_OF_NOBODY",
            Level.NOTE,
            "An open upload whose name carries the id of a job of which nothing is known",
            "`s3commit uploads DESTINATION --abort`, once it is old enough",
        ),
        one(Standing.UNKNOWN),
        upload=OPEN,
    ),
    FileRow(
        Verdict(
            "NOT_OURS",
            Level.FINE,
            "Another program's file, or one of a job that has been forgotten",
            "Nothing",
        ),
        one(Standing.UNKNOWN),
    ),
    FileRow(
        Verdict(
            "MISSING_BUT_UPLOADED",
            Level.FINDING,
            "A committed file is gone, and an upload at its key is open: perhaps a losing"
            " attempt's, and the last copy",
            "Nothing by itself. Look at the upload before anybody aborts it",
        ),
        VISIBLE,
        LISTED,
        OPEN,
        frozenset({Thing.ABSENT, Thing.OTHER}),
    ),
    FileRow(
        Verdict(
            "MISSING",
            Level.FINDING,
            "A committed file is not there, and no later job has removed files here",
            "Can't be repaired. On a versioned bucket the version to restore is named; else write"
            " the data again",
        ),
        VISIBLE,
        LISTED,
        thing=frozenset({Thing.ABSENT}),
    ),
    FileRow(
        Verdict(
            "CHANGED",
            Level.FINDING,
            "A committed file has other bytes than the job wrote",
            "Can't be repaired. On a versioned bucket the version to restore is named",
        ),
        VISIBLE,
        LISTED,
        thing=frozenset({Thing.OTHER}),
    ),
    FileRow(
        Verdict(
            "UPLOAD_LEFT",
            Level.FINDING,
            "An open upload of a job that has ended: it can never be completed, and is paid for",
            "Abort it",
            (Action.ABORT_UPLOAD,),
        ),
        one(Standing.COMMITTED),
        LISTED,
        OPEN,
    ),
    FileRow(
        Verdict(
            "REPLACED",
            Level.FINE,
            "A committed file is gone, and a job that came later has removed files here",
            "Nothing",
        ),
        VISIBLE,
        LISTED,
        thing=frozenset({Thing.REPLACED}),
    ),
    FileRow(
        Verdict(
            "COVERED",
            Level.FINE,
            "Another job has written the file anew, as jobs with exact names may",
            "Nothing",
        ),
        VISIBLE,
        LISTED,
        thing=frozenset({Thing.FOREIGN}),
    ),
    FileRow(
        Verdict(
            "UNSURE",
            Level.NOTE,
            "A committed file has the length and the parts that the job wrote, no metadata of ours,"
            " and another etag: as behind KMS, where etags can't be foretold",
            "Nothing by itself: behind KMS all is well",
        ),
        VISIBLE,
        LISTED,
        thing=frozenset({Thing.ALIKE}),
    ),
    FileRow(
        Verdict("WHOLE", Level.FINE, "A committed file is there, as it was written", "Nothing"),
        VISIBLE,
        LISTED,
    ),
    FileRow(
        Verdict(
            "LISTED_TOO_EARLY",
            Level.FINDING,
            "The file is listed in `_commits/` of a job that is not committed",
            "Nothing by itself: find out who wrote the list",
        ),
        named=LISTED,
    ),
)
