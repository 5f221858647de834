"""What can be true of all that is neither a job's file nor its record: the third table."""

from __future__ import annotations

from typing import Final

from s3commit.core.fsck.words import Action, Level, Verdict

_DELETE: Final = (Action.DELETE_OBJECT,)

GOING_ON: Final = Verdict(
    "GOING_ON", Level.FINE, "An execution works on the job: what it lacks is on its way", "Nothing"
)
COPY: Final = Verdict(
    "COPY",
    Level.FINE,
    "A job directory, or a list in `_commits/`, that says it is of another place: a copied table's",
    "Nothing: nothing of a copy is ever touched",
)
LOCATION: Final = Verdict(
    "LOCATION",
    Level.FINE,
    "The directory of a job whose destination is elsewhere, and which has a partition here",
    "`s3commit fsck` of the job's own destination",
)
SPEC_UNREADABLE: Final = Verdict(
    "SPEC_UNREADABLE",
    Level.NOTE,
    "`job.json` can't be read",
    "Nothing by itself: a request of the job is refused for it",
)
S3A_LEFTOVER: Final = Verdict(
    "S3A_LEFTOVER",
    Level.NOTE,
    "A job of Hadoop's S3A committer that nobody has ended: its driver writes, or died",
    "`s3commit rescue DESTINATION` says more",
)
CLAIMED: Final = Verdict(
    "CLAIMED",
    Level.NOTE,
    "A file or upload of a job that the ledger does not know; its id has a directory or a list at"
    " another place above the file, too, so that nobody can tell whose it is",
    "Nothing by itself: look which of the two wrote it",
)
SCRATCH_LEFT: Final = Verdict(
    "SCRATCH_LEFT",
    Level.FINDING,
    "Manifests, plans or replace lists of a job that has ended",
    "Delete them, each as it was seen, when its uploads are aborted",
    _DELETE,
)
MARKER_OF_UNDONE: Final = Verdict(
    "MARKER_OF_UNDONE",
    Level.FINDING,
    "`_SUCCESS` names a job that was aborted or rolled back",
    "Delete it, as it was seen",
    _DELETE,
)
MARKER_WITHOUT_LIST: Final = Verdict(
    "MARKER_WITHOUT_LIST",
    Level.FINDING,
    "`_SUCCESS` names a job of which there is no list in `_commits/`",
    "Nothing by itself: nobody can tell whether the job's data is whole",
)
MARKER_OF_INCOMPLETE: Final = Verdict(
    "MARKER_OF_INCOMPLETE",
    Level.FINDING,
    "`_SUCCESS` names a job of which committed files are missing or changed",
    "Nothing by itself: see the files' findings",
)
MARKER_HONEST: Final = Verdict(
    "MARKER_HONEST",
    Level.FINE,
    "There is no `_SUCCESS`, or it is another program's, or names a job that is whole",
    "Nothing",
)
ONCE_LEFT: Final = Verdict(
    "ONCE_LEFT",
    Level.FINDING,
    "An idempotency key's note names a job that was aborted or rolled back; it keeps nobody out",
    "Delete it, as it was seen",
    _DELETE,
)
ONCE_OF_NOBODY: Final = Verdict(
    "ONCE_OF_NOBODY",
    Level.NOTE,
    "An idempotency key's note names a job of which nothing is known; it keeps nobody out",
    "Nothing: the next job with the key puts its own over it",
)
ONCE_UNREADABLE: Final = Verdict(
    "ONCE_UNREADABLE",
    Level.FINDING,
    "An idempotency key's note can't be read: each job with the key is refused",
    "Nothing by itself: delete it if `s3commit ls` shows no job with the key",
)
ONCE_HONEST: Final = Verdict(
    "ONCE_HONEST", Level.FINE, "The note names a job that has the key, or may get it", "Nothing"
)

OTHER_TABLE: Final[tuple[tuple[str, tuple[Verdict, ...]], ...]] = (
    ("file", (CLAIMED,)),
    ("job directory", (COPY, LOCATION, SPEC_UNREADABLE, S3A_LEFTOVER, GOING_ON, SCRATCH_LEFT)),
    (
        "`_SUCCESS`",
        (MARKER_OF_UNDONE, MARKER_WITHOUT_LIST, MARKER_OF_INCOMPLETE, MARKER_HONEST),
    ),
    ("`_commits/once/`", (ONCE_LEFT, ONCE_OF_NOBODY, ONCE_UNREADABLE, ONCE_HONEST)),
)
