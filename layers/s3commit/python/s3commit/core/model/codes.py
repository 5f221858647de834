"""Every code with which a job may be refused, or its execution fail: what is true, what to do.

A job that has ended with a code shows none of its files, but for ``LISTS_LOST``; the lines do not
repeat that. An execution that failed has not ended its job: once the cause is fixed, another
execution resumes it.
`docs/codes.md` is made from these tables.
"""

from dataclasses import dataclass, replace
from typing import Final

from s3commit.core.model.outcome import ALREADY_COMMITTED


@dataclass(frozen=True, slots=True)
class Advice:
    """``means`` is what is true, ``do`` is what to do about it: a sentence or two each.

    ``stops``: no job ends with the code; its execution fails, and it stays where it is.
    """

    means: str
    do: str
    stops: bool = False


_WRITE_AGAIN = "Run the job again"
_OWN_FILES = "To remove its own files: `s3commit undo JOB --leave-removed`, or `leave_removed=True`"

# Of a document that no writer of this package makes: what is true of it.
_BY_OTHER_WRITERS: Final = {
    "BAD_FIELD": "A field of a document has an invalid value",
    "BAD_JSON": "A document is not valid strict JSON",
    "BAD_KEY": "An object has a key that the protocol does not know",
    "MANIFEST_CHANGED": "A manifest differs from the one that its task wrote",
    "NAME_NOT_UNIQUE": ("A file name lacks the job's id, or contains another job's too"),
    "REQUEST_CHANGED": "`_request.json` was replaced after the pipeline read it",
    "TOO_LARGE": "A document is larger than the limit",
    "TRUNCATED": "A document is incomplete",
}
_OTHER_WRITER = "Find out who wrote it: no writer of this package does. Then run the job again"

# Those that end a job.
_ENDS: Final = {
    "ABANDONED": Advice(
        "No commit or abort was requested, and no sign of life came for `abandonedHours`. The"
        " message says since when",
        "Find out what happened to the program, then run the job again. If it was alive but"
        " writes rarely, raise the parameter first",
    ),
    "ABORTED_BY_CLIENT": Advice(
        "The program requested the abort because it failed or was stopped, or a person did"
        " (`s3commit abort`)",
        "Read the program's log and fix the cause, then run the job again",
    ),
    "ABORTED_BY_OPERATOR": Advice(
        "A person gave the job up after its commit was requested (`s3commit abort`). The message"
        " says who and why",
        "Ask that person. If the data is needed, run the job again",
    ),
    ALREADY_COMMITTED: Advice(
        "Another job with the same idempotency key was committed. This one adds nothing",
        "Nothing, if both wrote the same data (the program counts this as success); otherwise use"
        " another key",
    ),
    "ARCHIVED": Advice(
        "An object that the job needs is in an archive storage class (GLACIER, DEEP_ARCHIVE)",
        "Restore it. Exclude `__magic_job-` and `_commits/` from lifecycle transitions. Then"
        " run the job again",
    ),
    "BAD_CONDITION": Advice(
        "A condition in `_job.json` does not exist or has an impossible value",
        "Correct the condition in the program, then run the job again",
    ),
    "BAD_NAME": Advice("A file to bring back has a name that no job may use", _OWN_FILES),
    "BAD_PATH": Advice("The path is not valid for a destination", "Correct the path"),
    "BAD_VERSION": Advice(
        "This pipeline does not read the version of a document",
        "Use the deployment's package version, or deploy the newer one",
    ),
    "CHECK_FAILED": Advice(
        "A column does not meet a check of the program. The message has column, bound and value",
        "Correct the data or the check, then run the job again",
    ),
    "CONDITION_FAILED": Advice(
        "The job's data does not meet a condition of its program. The message has the value",
        "Correct the data or the condition, then run the job again",
    ),
    "COUNTS_DIFFER": Advice(
        "A manifest and the request give different counts",
        "Find out what changed one of them, then run the job again",
    ),
    "DESTINATION_BUSY": Advice(
        "Other jobs that replace there held the destination for an hour, the longest wait",
        "`s3commit show` the named job; if its execution failed, `s3commit commit` it. Then run"
        " the job again",
    ),
    "DESTINATION_NOT_EMPTY": Advice(
        "Conflict `fail`: there is data where the job writes",
        "To keep that data, write elsewhere or append; to remove it, use conflict `replace`",
    ),
    "DUPLICATE_KEY": Advice(
        "Two files of the job have the same key",
        "Give each file its own name, then run the job again",
    ),
    "INVALID_INPUT": Advice(
        "S3 or the ledger rejected a request of the pipeline as invalid",
        "Read the log of the step that the execution names, and report the message",
    ),
    "FILES_CHANGED": Advice(
        "A file of the job that is to be undone was deleted or replaced, and no job says so; or"
        " the table changed while the undo began",
        "`s3commit fsck` names the file: restore it, or remove the rest by hand. If the line"
        " names a place above, add it to `prefixes`. Otherwise run the undo again",
    ),
    "JOB_CHANGED": Advice(
        "`_job.json` was deleted or replaced after the job began",
        "Find out who deletes or writes below `__magic_job-`, then run the job again",
    ),
    "JOB_ID_TAKEN": Advice(
        "A directory above the destination has, or had, a job with the same id",
        "Use a new id for each job, or none",
    ),
    "KEY_TAKEN": Advice(
        "A job with the same idempotency key was committed. It had other data, or files of it were"
        " deleted, or a stream wrote an older batch, or one batch twice",
        "Use another key, or undo the other job first; restart a stream from its newest checkpoint."
        " If the other job is not yours, find out who may read your keys",
    ),
    "JOB_ENDED": Advice(
        "A job with the same id ended at this destination before",
        "Use a new id for each run, or none. If none was used twice, find out who wrote the"
        " named list in `_commits/`",
    ),
    "LIST_GONE": Advice(
        "The list of what the job replaced is older than `retentionDays`, so nothing can come back",
        _OWN_FILES,
    ),
    "MANIFEST_MISSING": Advice(
        "A manifest that the request counts does not exist",
        "Find out who deletes below `__magic_job-`, then run the job again",
    ),
    "NAME_TAKEN": Advice(
        "Before the decision an object had the name, and so the job id, of a file of the job",
        "Find out who put it, then run the job again",
    ),
    "NAME_TOO_LONG": Advice(
        "The key of a copy that an undo brings back would have more than 1,024 bytes", _OWN_FILES
    ),
    "NOT_COMMITTED": Advice(
        "The job that is to be undone is not committed, is still under way, or the list of its"
        " files in `_commits/` is missing",
        "Check the ID with `s3commit log`. If the job is still under way, wait for its end, then"
        " undo it",
    ),
    "NOTHING_TO_UNDO": Advice(
        "The job is undone already, has no files, or later jobs replaced all of them",
        "Nothing. If the data is still wrong, `s3commit log` shows which job wrote it",
    ),
    "NOT_CONTAINED": Advice(
        "A manifest names a file outside of the job's destination. Nothing was touched there",
        "Treat it as an attack: check who may write to the job directory",
    ),
    "OUTSIDE_PREFIXES": Advice(
        "The deployment serves some prefixes alone (`prefixes`), and the job's is not below one",
        "Write below one that the message names, or add the prefix to the parameter. Then run the"
        " job again",
    ),
    "OVERTAKEN": Advice(
        "A later overwrite was committed first: this job's execution was lost, or its event late."
        " Or its request is over seven days old. Nothing changed",
        "If the later data is right, nothing. Otherwise run the job again",
    ),
    "REFUSED": Advice("A step refused the job. The message has the reason", _WRITE_AGAIN),
    "REPLACE_NOT_ALLOWED": Advice(
        "Conflict `replace` is not allowed at this destination (`replacePrefixes`), or the store"
        " ignores the etag of a conditional delete. Nothing changed",
        "Append, write elsewhere, or add the prefix to the parameter. Then run the job again",
    ),
    "REPLACED_SINCE": Advice(
        "A later job replaced, or undid, data where files would come back; or the way back to a job"
        " is not clear, or leads through one of a table above",
        "Do what the line says: undo the named job first, remove only the"
        " job's own files, or write the data again",
    ),
    "REQUEST_MISSING": Advice(
        "`_request.json` was deleted after the pipeline was notified of it",
        "Find out who deletes below `__magic_job-`, then run the job again",
    ),
    "STALLED": Advice(
        "Without progress for 40 minutes, or with failing executions for three hours, the job"
        " held its destination while another waited",
        "Find out why its execution stopped (alarm `JobsFailed`). Without a result, end it with"
        " `s3commit commit`. Then run the job again",
    ),
    "TOO_DEEP": Advice(
        "The destination has too many directories above it", "Write to one that has fewer"
    ),
    "TWO_ATTEMPTS": Advice(
        "Two attempts of one task are counted",
        "Commit one of each task. Only the program knows which",
    ),
    "UNREADABLE": Advice(
        "The pipeline is not allowed to read a document of the job, such as one under another KMS"
        " key",
        "Use a key that the deployment knows (`kmsKeyArn`, `jobKeyArns`), then run the job again",
    ),
    "UNSUPPORTED_CHECKSUM": Advice(
        "An upload has part checksums, which S3 requires at completion and the manifest lacks",
        "Turn them off (`fs.s3a.create.checksum.algorithm`,"
        " `AWS_REQUEST_CHECKSUM_CALCULATION=when_required`). Run the job again",
    ),
    "UPLOADS_LOST": Advice(
        "After the decision an upload was aborted by someone else, expired, or refused by S3, as"
        " the message says. The job was rolled back",
        "Find out who aborts uploads: a lifecycle rule must keep them as long as a job runs. If"
        " access was denied, check bucket and key policy. Then run the job again",
    ),
    "LISTS_LOST": Advice(
        "After the decision the pipeline's lists of the job were lost below `_s3commit/`, and a"
        " person gave it up. The message says which of its files are visible",
        "Delete those files first, or their rows will be there twice. Find out who deleted the"
        " lists, then run the job again",
    ),
    "UPLOAD_GONE": Advice(
        "Before the decision a counted upload was missing: aborted by someone else, or expired",
        "Find out who aborts uploads: a lifecycle rule must keep them as long as a job runs. Then"
        " run the job again",
    ),
    "VERSIONS_GONE": Advice(
        "The bucket keeps no version of a file that the undone job replaced, or not for so long",
        _OWN_FILES,
    ),
    "WRONG_JOB": Advice(
        "A document names another job than its directory does",
        "Do not copy job directories. Run the job again",
    ),
    **{code: Advice(means, _OTHER_WRITER) for code, means in _BY_OTHER_WRITERS.items()},
}

# No job ends with these: its execution fails, and the job stays where it is.
_STOPS: Final = {
    "ACCESS_DENIED": Advice(
        "The pipeline's role is not allowed to do what the message names: its policy, the"
        " bucket's or the key's denies it",
        "Grant the right. If a file must not be deleted by the role, delete it yourself",
    ),
    "LEDGER_RESTORED": Advice(
        "The ledger's table was restored from a backup, and S3 knows more than it does. Nothing"
        " was decided in it",
        "Deploy with an empty table: it heals itself from S3 (docs/operations.md)",
    ),
    "OTHER_OWNER": Advice(
        "The bucket belongs to another deployment, whose ledger the message names: so says"
        " `_s3commit/_owner.json`. This one did nothing",
        "Remove one of them, or hand the bucket over (docs/operations.md)",
    ),
    "PAGE_CHANGED": Advice(
        "An object that the pipeline keeps below `_s3commit/` is missing or changed. The message"
        " names it. Nothing was undone",
        "Do what the message says; if it says nothing, restore an earlier version of the object."
        " Then find out who may write below `_s3commit/`",
    ),
    "NOT_FOUND": Advice(
        "An object or a resource that the message names does not exist",
        "Find out who deleted it, and restore it",
    ),
    "PLAN_NOT_READ": Advice(
        "The commit was decided, but Step Functions could not read the plan. No upload was"
        " completed",
        "The console has the cause, at `CompleteUploads`: usually missing rights on the bucket"
        " or its key. Grant them",
    ),
    "States.ExceedToleratedFailureThreshold": Advice(
        "Workers failed repeatedly. The uploads that they left can still be completed",
        "See the Map Run in the console and the log of `complete`: usually a missing right to"
        " read below `_s3commit/`. Grant it",
    ),
    "States.Timeout": Advice(
        "A step, or the execution (24 hours), exceeded its time limit",
        "The console shows which state it was. If an abort does not end, tasks still start"
        " uploads: stop them",
    ),
    "TRANSIENT": Advice(
        "S3, DynamoDB or Lambda throttled requests, or did not answer, for longer than a step"
        " retries",
        "Check the region's health, and whether one prefix gets too many requests. Wait until"
        " it is over",
    ),
}

CODES: Final[dict[str, Advice]] = {
    **_ENDS,
    **{code: replace(advice, stops=True) for code, advice in _STOPS.items()},
}

UNKNOWN: Final = Advice("The message has the reason", _WRITE_AGAIN)
LATE: Final = "Restore what the message names as it was, or remove what is not the job's"
STOPPED: Final = Advice(
    "A step failed for an unknown reason. The message is all that is known",
    "Search the function's log for the `job_id`",
    stops=True,
)


def advice_on(code: str) -> Advice:
    """The advice on a code; on one that a newer pipeline has, what holds of all."""
    return CODES.get(code, UNKNOWN)


def advice_on_execution(code: str) -> Advice:
    """The advice on the code of an execution that failed, whose job has not ended.

    A code that would have ended the job before its decision stops it after: it can no longer be
    aborted then.
    """
    found = CODES.get(code)
    if found is None:
        return STOPPED
    return found if found.stops else Advice(found.means, LATE, stops=True)
