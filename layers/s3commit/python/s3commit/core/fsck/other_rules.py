"""What can be true of uploads, job directories, `_SUCCESS` and key records."""

from __future__ import annotations

from typing import Final

from s3commit.core.fsck.verdict import Action, Verdict, finding, fine, note

UPLOAD_LEFT: Final = finding(
    "UPLOAD_LEFT",
    "The upload is open and its job has ended: it can never be completed, and its parts are billed",
    "Abort it, unless it may be the last copy of a file (`MISSING_BUT_UPLOADED`)",
    Action.ABORT_UPLOAD,
)
UPLOAD_OF_NOBODY: Final = note(
    "UPLOAD_OF_NOBODY",
    "The name of an open upload carries the id of a job of which nothing is known, or not when it"
    " began",
    "`s3commit uploads DESTINATION --abort`, once it is old enough",
)
CLAIMED: Final = note(
    "CLAIMED",
    "The ledger does not know the job of the upload, and its id has a directory or a commit"
    " manifest at another place above, so that nobody can tell whose it is",
    "Nothing by itself: find out which of the two wrote it",
)
COPY: Final = fine(
    "COPY",
    "The job directory or commit manifest names another place: it belongs to a copied table",
    "Nothing: nothing of a copy is ever touched",
)
SPEC_UNREADABLE: Final = note(
    "SPEC_UNREADABLE",
    "`job.json` can't be read",
    "Nothing by itself: a request of the job is refused for it",
)
S3A_LEFTOVER: Final = note(
    "S3A_LEFTOVER",
    "A job of Hadoop's S3A committer has not ended: its driver writes, or has died",
    "`s3commit rescue DESTINATION` says more",
)
GOING_ON: Final = fine("GOING_ON", "An execution works on the job and writes what is missing")
SCRATCH_LEFT: Final = finding(
    "SCRATCH_LEFT",
    "The job has ended, and its manifests are still there",
    "Delete them, each as it was seen, when the uploads of the job are aborted",
    Action.DELETE_OBJECT,
)
MARKER_OF_UNDONE: Final = finding(
    "MARKER_OF_UNDONE",
    "`_SUCCESS` names a job that was aborted or rolled back",
    "Delete it, as it was seen",
    Action.DELETE_OBJECT,
)
MARKER_WITHOUT_LIST: Final = finding(
    "MARKER_WITHOUT_LIST",
    "`_SUCCESS` names a job that has no commit manifest",
    "Nothing by itself: nobody can tell whether the job's data is complete",
)
MARKER_OF_INCOMPLETE: Final = finding(
    "MARKER_OF_INCOMPLETE",
    "`_SUCCESS` names a job of which committed files are missing or changed",
    "Nothing by itself: see the findings of its files",
)
ONCE_LEFT: Final = finding(
    "ONCE_LEFT",
    "A key record names a job that was aborted or rolled back; it keeps nobody out",
    "Delete it, as it was seen",
    Action.DELETE_OBJECT,
)
ONCE_OF_NOBODY: Final = note(
    "ONCE_OF_NOBODY",
    "A key record names a job of which nothing is known; it keeps nobody out",
    "Nothing: the next job with the key overwrites it",
)
ONCE_UNREADABLE: Final = finding(
    "ONCE_UNREADABLE",
    "A key record can't be read: each job with the key is refused",
    "Nothing by itself: delete it if `s3commit ls` shows no job with the key",
)

OTHER_RULES: Final[dict[str, tuple[Verdict, ...]]] = {
    "open upload": (UPLOAD_LEFT, UPLOAD_OF_NOBODY, CLAIMED),
    "job directory": (COPY, SPEC_UNREADABLE, S3A_LEFTOVER, GOING_ON, SCRATCH_LEFT),
    "`_SUCCESS`": (MARKER_OF_UNDONE, MARKER_WITHOUT_LIST, MARKER_OF_INCOMPLETE),
    "`_commits/once/`": (ONCE_LEFT, ONCE_OF_NOBODY, ONCE_UNREADABLE),
}
