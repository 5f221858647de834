"""Every code with which a job may be refused, or its execution fail: what is true, what to do.

A job that has ended with a code shows none of its files; that goes without saying in each line. An
execution that failed has not ended its job: once what is said is done, another one goes on with it.
`docs/operations.md` has the same two tables, and a test compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from s3commit.core.model.job import ALREADY_COMMITTED


@dataclass(frozen=True, slots=True)
class Advice:
    """``means`` is what is true, ``do`` is what to do about it: a sentence or two each.

    ``stops``: no job ends with the code; its execution fails, and it stays where it is.
    """

    means: str
    do: str
    stops: bool = False


_WRITE_AGAIN = "Run the job again"
_OTHER_WRITER = "Find out who wrote it; a writer of this package never does. Then run the job again"

CODES: Final[dict[str, Advice]] = {
    "ACCESS_DENIED": Advice(
        "The pipeline may not do what the message names: its role's rights, a policy of the bucket"
        " or key, Object Lock, MFA Delete",
        "Let it; or, if it is a file that may not be deleted, delete it yourself, on a versioned"
        " bucket that version",
        stops=True,
    ),
    "ABANDONED": Advice(
        "The job was never asked for, and showed no sign of life for `abandonedHours`; the message"
        " says since when",
        "Find out what became of its program; run the job again. If it was alive and writes so"
        " seldom, raise the parameter first",
    ),
    "ABORTED_BY_CLIENT": Advice(
        "The job's own program asked for the abort, since it failed or was stopped, or a person did"
        " (`s3commit abort`)",
        "Look into the program's log; run the job again once that is mended",
    ),
    ALREADY_COMMITTED: Advice(
        "Another job with the same idempotency key was committed; this one adds nothing",
        "Nothing, if it wrote the same data: its program counts this as success. Other data needs"
        " another key",
    ),
    "ARCHIVED": Advice(
        "An object that the job needs is in an archive (GLACIER, DEEP_ARCHIVE): it is there, and"
        " can't be read",
        "Restore the object that is named, and keep lifecycle rules away from `__magic_job-` and"
        " `_commits/`; run the job again",
    ),
    "BAD_CONDITION": Advice(
        "A condition in `job.json` is not one that there is, or has an impossible value",
        "Correct it in the program; run the job again",
    ),
    "BAD_FIELD": Advice("A document's field has a value that it can't have", _OTHER_WRITER),
    "BAD_ID": Advice("An id in a document is not of the form that ids have", _OTHER_WRITER),
    "BAD_JSON": Advice("A document is not the strict JSON that is read here", _OTHER_WRITER),
    "BAD_KEY": Advice("An object lies where none of the protocol does", _OTHER_WRITER),
    "BAD_LOCATION": Advice(
        "A partition's location is one that it can't have, or a job lies in another one's location",
        "Correct the location; run the job again",
    ),
    "BAD_ONCE_NOTE": Advice(
        "The note of the idempotency key can't be read, so nobody knows whether the key is taken",
        "Look at the object that is named; delete it if `s3commit ls` shows no job with the key,"
        " then run the job again",
    ),
    "BAD_PATH": Advice("A path is one that no destination may have", "Correct the path"),
    "BAD_VERSION": Advice(
        "A document is of a version that this pipeline does not read",
        "Use the package of the deployment's own version, or deploy the newer one",
    ),
    "CONDITION_FAILED": Advice(
        "The job's data does not meet a condition that its program set; the figure is named",
        "Look at the data, not at the pipeline. Mend it or the condition; run the job again",
    ),
    "COUNTS_DIFFER": Advice(
        "A manifest has other numbers than the request says of it",
        "Find out what changed the manifest or the request; run the job again",
    ),
    "DESTINATION_BUSY": Advice(
        "Other jobs held the destination for the whole hour that a job waits for it, or a hundred"
        " waited for it already",
        "`s3commit show` the job that is named: if its execution died, `s3commit commit` goes on"
        " with it. Then run this one again",
    ),
    "DESTINATION_NOT_EMPTY": Advice(
        "Conflict `fail`: there is data already where the job writes",
        "If it should stay, write elsewhere or append; if not, use conflict `replace`",
    ),
    "DUPLICATE_KEY": Advice(
        "One key is written twice, in a task or by two",
        "Give each file of the job a name of its own; run the job again",
    ),
    "IDENTITY_UNKNOWN": Advice(
        "Nobody can tell whether a file that is there is the job's, so nothing was aborted, deleted"
        " or undone; what is visible stays so",
        "`s3commit show JOB --in-doubt` lists all such files; say of each whose it is"
        " (docs/operations.md, Whose is this file?)",
        stops=True,
    ),
    "INVALID_INPUT": Advice(
        "S3 or the ledger called a request of the pipeline wrong",
        "Look into the log of the step that is named by the execution; report it with the message",
    ),
    "KEY_EXISTS": Advice(
        "A file with an exact name would cover one that is there and could not be brought back",
        "Use names that are unique to the job, or conflict `replace` on a versioned bucket",
    ),
    "JOB_CHANGED": Advice(
        "`job.json` was deleted or replaced after the job had begun",
        "Look for whoever deletes below `__magic_job-`. Then run the job again",
    ),
    "JOB_ID_TAKEN": Advice(
        "A directory above the destination has, or had, a job with the same id",
        "Give each job an id of its own, or none",
    ),
    "JOB_ENDED": Advice(
        "A job of the same id has ended at the destination before",
        "Give each run an id of its own, or none. If nobody has used one twice, find out who put"
        " the list in `_commits/` that is named",
    ),
    "KEY_IN_DOUBT": Advice(
        "A job with the same idempotency key may be committed, and has not ended",
        "`s3commit commit` the one that is named, so that it ends; then run this one again",
    ),
    "LEDGER_SET_BACK": Advice(
        "The job was committed, and the ledger would undo it: the table was restored to a moment of"
        " before. No file was deleted",
        "Stop the queues and the sweep, and make the ledger again in an empty table:"
        " `s3commit fsck --rebuild-ledger` (docs/fsck.md)",
        stops=True,
    ),
    "LIST_CHANGED": Advice(
        "All new files are visible, and so are old ones: the list of what to delete is gone or"
        " changed, and nothing is deleted by another",
        "Bring `replaced-….json` and `replaced/` back, or move away what others have put there, or"
        " remove the old files by hand",
        stops=True,
    ),
    "LOCATION_NOT_AGREED": Advice(
        "The `job.json` at a partition's location does not say that the job may write there",
        "Find out who removed or replaced it; run the job again",
    ),
    "MANIFEST_CHANGED": Advice(
        "A counted manifest has other bytes than its task wrote", _OTHER_WRITER
    ),
    "MANIFEST_MISSING": Advice(
        "A counted manifest is not there",
        "Look for whoever deletes below `__magic_job-`: a cleaner, or a lifecycle rule. Then run"
        " the job again",
    ),
    "NAME_NOT_UNIQUE": Advice(
        "A file's name does not carry the job's id, or is another job's too", _OTHER_WRITER
    ),
    "NOT_CONTAINED": Advice(
        "A manifest names a file outside of the job's destination. Nothing there was touched",
        "Treat it as an attack until you know better: who may write into the job directory?",
    ),
    "NOT_FOUND": Advice(
        "Something that the message names is not there",
        "Look for whoever deletes it, and bring it back",
        stops=True,
    ),
    "PLAN_CHANGED": Advice(
        "What the pipeline noted of the job in S3 is not what the ledger says", _OTHER_WRITER
    ),
    "PLAN_NOT_READ": Advice(
        "Decided; but Step Functions could not read the plan from S3, so nothing was completed",
        "The cause stands at the state `CompleteUploads` in the console: mostly rights on the"
        " bucket or its key. Mend it",
        stops=True,
    ),
    "REFUSED": Advice("A step refused the job; the message says why", _WRITE_AGAIN),
    "REPLACE_NOT_ALLOWED": Advice(
        "Conflict `replace`, at a place where the deployment allows none (`replacePrefixes`)",
        "Append, or write elsewhere; or have the parameter name the place. Run the job again",
    ),
    "REQUEST_CHANGED": Advice(
        "`request.json` was replaced after the pipeline had read it", _OTHER_WRITER
    ),
    "REQUEST_MISSING": Advice(
        "`request.json` was deleted after the pipeline had heard of it",
        "Look for whoever deletes below `__magic_job-`. Then run the job again",
    ),
    "STALLED": Advice(
        "The job held its destination and did not go on for 40 minutes, and another one needed it",
        "Find out why its execution stopped (alarm `JobsFailed`). `s3commit commit` ends it, if it"
        " has no result yet; run the job again",
    ),
    "States.ExceedToleratedFailureThreshold": Advice(
        "Workers that complete the uploads failed, again and again. What they completed counts, the"
        " rest is still there to be completed",
        "The Map Run in the console, and the log of `complete_unit`, say why: mostly rights on the"
        " bucket or its key. Mend it",
        stops=True,
    ),
    "States.Timeout": Advice(
        "A step, or the whole execution (24 hours), took longer than it may",
        "The console says which state it was. An abort that does not end has tasks that still open"
        " uploads: stop them",
        stops=True,
    ),
    "TASKS_MISSING": Advice(
        "Every manifest was to be counted, and there are fewer than they say that the job has"
        " tasks: rows would have been lost in silence",
        "Look for whoever deletes below `__magic_job-`, or for tasks that never ran. Then run the"
        " job again",
    ),
    "TOO_LARGE": Advice("A document is larger than any is read", _OTHER_WRITER),
    "TOO_DEEP": Advice(
        "A job looks at all directories above what it writes to, and these are too many",
        "Write to a destination with fewer directories above it",
    ),
    "TRANSIENT": Advice(
        "S3, DynamoDB or Lambda throttled or did not answer, for longer than a step is repeated",
        "Look whether the region has trouble, or too much is written below one prefix; wait until"
        " it has passed",
        stops=True,
    ),
    "TRUNCATED": Advice("A document is not whole", _OTHER_WRITER),
    "TWO_ATTEMPTS": Advice(
        "Two attempts of one task are counted, or stand where every manifest counts",
        "Commit one attempt of each task; the program alone knows which",
    ),
    "UNSUPPORTED_CHECKSUM": Advice(
        "An upload has checksums of its parts, which S3 wants again and its manifest does not"
        " carry",
        "Write without: S3A's `fs.s3a.create.checksum.algorithm`, the SDKs'"
        " `AWS_REQUEST_CHECKSUM_CALCULATION=when_required`. Run the job again",
    ),
    "UPLOADS_LOST": Advice(
        "After the decision an upload was found aborted by someone else, or expired: rolled back",
        "Look for whoever aborts uploads; a lifecycle rule must leave them longer than the longest"
        " job takes. Then run the job again",
    ),
    "UPLOAD_GONE": Advice(
        "A counted upload was aborted by someone else, or expired, before the decision",
        "As for `UPLOADS_LOST`",
    ),
    "WRONG_JOB": Advice(
        "A document says that it is of another job than the one in whose directory it lies",
        "Don't copy job directories; run the job again",
    ),
}

UNKNOWN: Final = Advice("The message says why", _WRITE_AGAIN)
LATE: Final = "Bring back, as it was, what the message names, or take away what is not the job's"
STOPPED: Final = Advice(
    "A step failed, and no code says why: the message is what is known",
    "Look into the function's log, by `job_id`",
    stops=True,
)


def advice_on(code: str) -> Advice:
    """The advice on a code; on one that a newer pipeline has, what holds of all."""
    return CODES.get(code, UNKNOWN)


def advice_on_execution(code: str) -> Advice:
    """The advice on the code of an execution that failed, whose job has not ended.

    What would have ended the job before its decision stops it after: there is no way back then.
    """
    found = CODES.get(code)
    if found is None:
        return STOPPED
    return found if found.stops else Advice(found.means, LATE, stops=True)
