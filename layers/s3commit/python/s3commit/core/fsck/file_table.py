"""The truth table of a file: record by where it is named by open upload by object.

The first row that fits says what is true. Every combination has one; a test looks at each.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final

from s3commit.core.fsck.words import Action, Level, Named, Standing, Thing, Upload, Verdict

Combination = tuple[Standing, Named, Upload, Thing]

_ANY_STANDING: Final = frozenset(Standing)
_ANY_NAMED: Final = frozenset(Named)
_ANY_UPLOAD: Final = frozenset(Upload)
_ANY_THING: Final = frozenset(Thing)

_LISTED: Final = frozenset({Named.LISTED})
_UNLISTED: Final = _ANY_NAMED - _LISTED
_VISIBLE: Final = frozenset({Standing.UNRECORDED, Standing.PUBLISHING, Standing.COMMITTED})
_UNDONE: Final = frozenset({Standing.ABORTED, Standing.ROLLED_BACK})
_ENDED: Final = _UNDONE | {Standing.COMMITTED}

_ABORT, _DELETE = Action.ABORT_UPLOAD, Action.DELETE_OBJECT


@dataclass(frozen=True, slots=True)
class FileRow:
    """One row: the combinations that it is about, and what it says of them."""

    verdict: Verdict
    standing: frozenset[Standing] = _ANY_STANDING
    named: frozenset[Named] = _ANY_NAMED
    upload: frozenset[Upload] = _ANY_UPLOAD
    thing: frozenset[Thing] = _ANY_THING

    def fits(self, combination: Combination) -> bool:
        """Whether the row is about the combination."""
        standing, named, upload, thing = combination
        return (
            standing in self.standing
            and named in self.named
            and upload in self.upload
            and thing in self.thing
        )


def _one(standing: Standing) -> frozenset[Standing]:
    return frozenset({standing})


_OPEN: Final = frozenset({Upload.OPEN})
_NONE: Final = frozenset({Upload.NONE})
_OURS: Final = frozenset({Thing.OURS})
_NOTHING: Final = frozenset({Thing.ABSENT, Thing.REPLACED})

FILE_TABLE: Final[tuple[FileRow, ...]] = (
    FileRow(
        Verdict(
            "LEFT_ALONE",
            Level.FINE,
            "The job's documents contradict each other, which is a finding of its own",
            "Nothing until the job is clear",
        ),
        _one(Standing.IN_DOUBT),
    ),
    FileRow(
        Verdict(
            "UPLOAD_OF_NOBODY",
            Level.NOTE,
            "An open upload whose name carries the id of a job of which nothing is known",
            "`s3commit uploads DESTINATION --abort`, once it is old enough",
        ),
        _one(Standing.UNKNOWN),
        upload=_OPEN,
    ),
    FileRow(
        Verdict(
            "NOT_OURS",
            Level.FINE,
            "Another program's file, or one of a job that has been forgotten",
            "Nothing",
        ),
        _one(Standing.UNKNOWN),
    ),
    FileRow(
        Verdict(
            "MISSING_BUT_UPLOADED",
            Level.FINDING,
            "A committed file is gone, and an upload at its key is open: perhaps a losing"
            " attempt's, and the last copy",
            "Nothing by itself. Look at the upload before anybody aborts it",
        ),
        _VISIBLE,
        _LISTED,
        _OPEN,
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
        _VISIBLE,
        _LISTED,
        thing=frozenset({Thing.ABSENT}),
    ),
    FileRow(
        Verdict(
            "CHANGED",
            Level.FINDING,
            "A committed file has other bytes than the job wrote",
            "Can't be repaired. On a versioned bucket the version to restore is named",
        ),
        _VISIBLE,
        _LISTED,
        thing=frozenset({Thing.OTHER}),
    ),
    FileRow(
        Verdict(
            "UPLOAD_LEFT",
            Level.FINDING,
            "An open upload of a job that has ended: it can never be completed, and is paid for",
            "Abort it",
            (_ABORT,),
        ),
        _one(Standing.COMMITTED),
        _LISTED,
        _OPEN,
    ),
    FileRow(
        Verdict(
            "REPLACED",
            Level.FINE,
            "A committed file is gone, and a job that was decided later has removed files here",
            "Nothing",
        ),
        _VISIBLE,
        _LISTED,
        thing=frozenset({Thing.REPLACED}),
    ),
    FileRow(
        Verdict(
            "COVERED",
            Level.FINE,
            "Another job has written the file anew, as jobs with exact names may",
            "Nothing",
        ),
        _VISIBLE,
        _LISTED,
        thing=frozenset({Thing.ANOTHERS}),
    ),
    FileRow(
        Verdict(
            "UNSURE",
            Level.NOTE,
            "A committed file has the length and the parts that the job wrote, no metadata of ours,"
            " and another etag: as behind KMS, where etags can't be foretold",
            "Nothing by itself: behind KMS all is well",
        ),
        _VISIBLE,
        _LISTED,
        thing=frozenset({Thing.ALIKE}),
    ),
    FileRow(
        Verdict("WHOLE", Level.FINE, "A committed file is there, as it was written", "Nothing"),
        _VISIBLE,
        _LISTED,
    ),
    FileRow(
        Verdict(
            "LISTED_TOO_EARLY",
            Level.FINDING,
            "The file is listed in `_commits/` of a job that is not committed",
            "Nothing by itself: find out who wrote the list",
        ),
        named=_LISTED,
    ),
    FileRow(
        Verdict(
            "HALF_VISIBLE",
            Level.NOTE,
            "A file is visible of a job that the ledger does not know and that has no outcome: the"
            " ledger was lost after the decision, or an S3A driver died in its own commit",
            "What the job's own finding says; where it has none: `s3commit commit JOBDIR`, or"
            " `s3commit rescue JOBDIR`",
        ),
        _one(Standing.UNRECORDED),
        thing=_OURS,
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
        thing=_OURS,
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
        _NONE,
        _NOTHING,
    ),
    FileRow(
        Verdict(
            "UNCOUNTED_AND_UPLOAD",
            Level.FINDING,
            "A dead attempt's file of a committed job is visible, and an upload is open beside it",
            "Abort the upload; delete the object, as it was seen",
            (_ABORT, _DELETE),
        ),
        _one(Standing.COMMITTED),
        _UNLISTED,
        _OPEN,
        _OURS,
    ),
    FileRow(
        Verdict(
            "UNCOUNTED",
            Level.FINDING,
            "A committed job's file that its list does not have is visible: a dead attempt's",
            "Delete the object, as it was seen",
            (_DELETE,),
        ),
        _one(Standing.COMMITTED),
        _UNLISTED,
        _NONE,
        _OURS,
    ),
    FileRow(
        Verdict(
            "LEFT_VISIBLE_AND_UPLOAD",
            Level.FINDING,
            "A file of a job that was not committed is visible, and an upload is open beside it",
            "Abort the upload; delete the object, as it was seen",
            (_ABORT, _DELETE),
        ),
        _UNDONE,
        _UNLISTED,
        _OPEN,
        _OURS,
    ),
    FileRow(
        Verdict(
            "LEFT_VISIBLE",
            Level.FINDING,
            "A file of a job that was not committed is visible",
            "Delete the object, as it was seen; by version on a versioned bucket, so that what it"
            " covered comes back",
            (_DELETE,),
        ),
        _UNDONE,
        _UNLISTED,
        _NONE,
        _OURS,
    ),
    FileRow(
        Verdict(
            "UPLOAD_LEFT",
            Level.FINDING,
            "An open upload of a job that has ended: it can never be completed, and is paid for",
            "Abort it",
            (_ABORT,),
        ),
        _ENDED,
        _UNLISTED,
        _OPEN,
    ),
    FileRow(
        Verdict(
            "UNPROVEN",
            Level.NOTE,
            "An object lies where the job wrote, and nothing proves that the job made it",
            "Nothing by itself: look at it",
        ),
        _ENDED,
        _UNLISTED,
        thing=frozenset({Thing.OTHER, Thing.ALIKE}),
    ),
    FileRow(
        Verdict("NOTHING_LEFT", Level.FINE, "Nothing is left of the file", "Nothing"),
        _ENDED,
        _UNLISTED,
    ),
    FileRow(
        Verdict("UNDER_WAY", Level.FINE, "The job has not ended: its own execution's", "Nothing"),
    ),
)


def judge_file(standing: Standing, named: Named, upload: Upload, thing: Thing) -> Verdict:
    """What is true of a file."""
    combination = (standing, named, upload, thing)
    return next(row for row in FILE_TABLE if row.fits(combination)).verdict


def thing_matters(standing: Standing, named: Named, upload: Upload) -> bool:
    """Whether what lies at the key makes a difference: if not, nobody has to look at it."""
    verdicts = {
        judge_file(standing, named, upload, thing) for thing in Thing if thing not in _NOTHING
    }
    return len(verdicts) > 1


def file_combinations() -> list[Combination]:
    """All combinations, in the order of the words."""
    return list(product(Standing, Named, Upload, Thing))
