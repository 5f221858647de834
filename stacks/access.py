"""Who may do what: one table, one role a function, nothing by default.

Keys are patterns below the data bucket. A job's own directory is ``*/__magic_job-*/``; data lies
anywhere in the bucket, because destinations are the client's choice. `s3:ListBucket` is also what
makes S3 answer 404 and not 403 to a HEAD of a key that is not there:
https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html
"""

from __future__ import annotations

from dataclasses import dataclass, field

JOB_DIRECTORY = "*/__magic_job-*/*"
MANIFESTS = "*/__magic_job-*/*.pendingset"
SHARED = "*/__magic/*"
PLAN = "*/__magic_job-*/plan-*.json"
PARTITIONS = "*/__magic_job-*/partitions-*.json"
REPLACED = "*/__magic_job-*/replaced-*.json"
PAGES = "*/__magic_job-*/replaced/*.jsonl"
RESULT = "*/__magic_job-*/result.json"
REQUEST = "*/__magic_job-*/request.json"
COMMITS = "*/_commits/*"
ONCE = "*/_commits/once/*.json"
SUCCESS = "*/_SUCCESS"
DATA = "*"


@dataclass(frozen=True, slots=True)
class Access:
    """The actions of one role.

    ``objects`` maps a key pattern to S3 actions on the objects it matches; ``bucket`` are actions
    on the bucket itself, ``ledger`` on the table (a transaction needs the actions of its parts),
    ``index`` on its index of jobs by state.
    What concerns a queue or the state machine is granted where they are connected.
    """

    objects: dict[str, tuple[str, ...]] = field(default_factory=dict)
    bucket: tuple[str, ...] = ()
    ledger: tuple[str, ...] = ()
    index: tuple[str, ...] = ()

    @property
    def decrypts(self) -> bool:
        """Whether it reads objects, and so needs kms:Decrypt behind an SSE-KMS bucket."""
        return any("GetObject" in actions for actions in self.objects.values())

    @property
    def encrypts(self) -> bool:
        """Whether it writes objects, and so needs kms:GenerateDataKey there."""
        return any("PutObject" in actions for actions in self.objects.values())


ACCESS: dict[str, Access] = {
    "ingest_pendingsets": Access(
        objects={
            JOB_DIRECTORY: ("GetObject",),
            COMMITS: ("GetObject",),
            MANIFESTS: ("DeleteObject",),
            DATA: ("AbortMultipartUpload",),
        },
        bucket=("ListBucket",),
        ledger=("GetItem", "PutItem"),
    ),
    "dispatch_requests": Access(),
    "decide_job": Access(
        objects={
            DATA: ("GetObject", "ListMultipartUploadParts"),
            PLAN: ("PutObject",),
            PARTITIONS: ("PutObject",),
            REPLACED: ("PutObject",),
            PAGES: ("PutObject",),
            ONCE: ("PutObject",),
        },
        bucket=("ListBucket", "ListBucketMultipartUploads", "GetBucketVersioning"),
        ledger=("GetItem", "PutItem", "UpdateItem", "ConditionCheckItem"),
    ),
    "complete_unit": Access(
        objects={DATA: ("GetObject", "PutObject", "ListMultipartUploadParts")},
        bucket=("ListBucket",),
        ledger=("GetItem", "PutItem"),
    ),
    "publish_job": Access(
        objects={
            # Of the data: a HEAD of the files that a manifest has named which is gone.
            DATA: ("GetObject",),
            COMMITS: ("PutObject",),
            SUCCESS: ("PutObject",),
            RESULT: ("PutObject",),
            PLAN: ("PutObject",),  # one that is gone, again
        },
        bucket=("ListBucket",),
        ledger=("GetItem", "PutItem", "UpdateItem"),
    ),
    "remove_replaced": Access(
        # GetObject on the data as well: S3 asks for it where a delete is conditional on an etag.
        # The manifest of the job is put before the first delete; a list that is gone, again.
        objects={
            DATA: ("GetObject", "DeleteObject"),
            COMMITS: ("PutObject",),
            REPLACED: ("PutObject",),
            PAGES: ("PutObject",),
        },
        bucket=("ListBucket",),
        ledger=("GetItem",),
    ),
    "undo_job": Access(
        objects={
            DATA: (
                "GetObject",
                "AbortMultipartUpload",
                "ListMultipartUploadParts",
                "DeleteObject",
                "DeleteObjectVersion",
            ),
            RESULT: ("PutObject",),
        },
        bucket=("ListBucket", "ListBucketMultipartUploads"),
        ledger=("GetItem", "PutItem", "UpdateItem"),
    ),
    "tidy_job": Access(
        objects={
            JOB_DIRECTORY: ("GetObject", "DeleteObject"),
            DATA: ("AbortMultipartUpload", "ListMultipartUploadParts"),
        },
        bucket=("ListBucket", "ListBucketMultipartUploads"),
        ledger=("GetItem",),
    ),
    "sweep_jobs": Access(
        objects={
            JOB_DIRECTORY: ("GetObject",),
            REQUEST: ("PutObject",),
            DATA: ("ListMultipartUploadParts",),
        },
        bucket=("ListBucket", "ListBucketMultipartUploads"),
        ledger=("DeleteItem",),
        index=("Query",),
    ),
    "sweep_uploads": Access(
        objects={
            JOB_DIRECTORY: ("GetObject",),
            REQUEST: ("PutObject",),
            DATA: ("AbortMultipartUpload", "ListMultipartUploadParts"),
        },
        bucket=("ListBucket", "ListBucketMultipartUploads"),
        ledger=("GetItem",),
    ),
    "sweep_directories": Access(
        objects={
            JOB_DIRECTORY: ("GetObject", "DeleteObject"),
            SHARED: ("GetObject",),
            REQUEST: ("PutObject",),
            DATA: ("AbortMultipartUpload", "ListMultipartUploadParts"),
        },
        bucket=("ListBucket", "ListBucketMultipartUploads"),
        ledger=("GetItem", "PutItem"),
        index=("Query",),
    ),
}

REASONS: dict[str, str] = {
    JOB_DIRECTORY: "A job makes its directory below a destination of the client's choice; the "
    "pattern admits the protocol's own objects in any such directory, and no data.",
    MANIFESTS: "A manifest that came after its job had ended, in the job's directory below a "
    "destination of the client's choice: once its uploads are aborted it is deleted.",
    SHARED: "The manifests of S3A's jobs from before Hadoop 3.4, in the directory that they share "
    "below any destination: read to say how many bytes they hold.",
    PLAN: "The plan of a job, in the job's directory below a destination of the client's choice.",
    PARTITIONS: "The list of the partitions that a job writes, in the job's directory below a "
    "destination of the client's choice.",
    REPLACED: "The index of a job's replace list, in the job's directory below any destination.",
    PAGES: "The pages of a job's replace list, in the job's directory below any destination.",
    ONCE: "The notes of which job has an idempotency key, below a destination of any name; a "
    "role that may write them may not write the manifests of committed jobs beside them.",
    RESULT: "The result of a job, in the job's directory below a destination of any name.",
    REQUEST: "The abort request of an abandoned job, in the job's directory below a destination of "
    "any name; it is put where no request is, and never over one.",
    COMMITS: "The manifests of committed jobs, below a destination of the client's choice.",
    SUCCESS: "The success marker, in a destination of the client's choice.",
    DATA: "The data files of a job lie below a destination of the client's choice, so no narrower "
    "key is known at deploy time. Which keys one invocation may touch is checked on load: only "
    "those below the directory that the manifest lies in (invariant I7, with tests).",
}
