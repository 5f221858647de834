"""The rights of each role: one table, one role for each function, nothing by default.

Keys are patterns below the data bucket. A job's own directory is ``*/__magic_job-*/``; data is
anywhere in the bucket, because destinations are the client's choice. `s3:ListBucket` is also what
makes S3 answer 404 and not 403 to a HEAD of a key that is not there:
https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

JOB_DIRECTORY = "*/__magic_job-*/*"
INDEX = "_s3commit/*/_index-*.json"
PAGES = "_s3commit/*/_pages/_*.jsonl"
RESULT = "*/__magic_job-*/_result.json"
REQUEST = "*/__magic_job-*/_request.json"
JOB = "*/__magic_job-*/_job.json"
COMMITS = "*/_commits/*"
KEYS = "_s3commit/_keys/*/_*.json"
SUCCESS = "*/_SUCCESS"
DECISION = "_s3commit/*/_decision.json"
CATALOG = "_s3commit/*/_catalog.json"
OWNER = "_s3commit/_owner.json"
OWN = "_s3commit/*"
DATA = "*"


@dataclass(frozen=True, slots=True)
class Access:
    """The actions of one role.

    ``objects`` maps a key pattern to S3 actions on the objects it matches; ``bucket`` are actions
    on the bucket itself, ``ledger`` on the table (a transaction needs the actions of its parts),
    ``index`` on its index of jobs by state. ``denied`` are patterns by actions: names of the
    protocol that a wider pattern of ``objects`` has, and the role leaves alone. No data has such a
    name (`bad_element`), so no job can make the role need it. Rights to a queue or the state
    machine are granted where they are connected.
    """

    objects: dict[str, tuple[str, ...]] = field(default_factory=dict)
    denied: dict[str, tuple[str, ...]] = field(default_factory=dict)
    bucket: tuple[str, ...] = ()
    ledger: tuple[str, ...] = ()
    index: tuple[str, ...] = ()

    def of_key(self, *, of_jobs: bool) -> list[str]:
        """Its rights to the bucket's key, or to one that jobs name.

        To complete uploads of a job needs both:
        https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuAndPermissions.html
        """
        done = {action for actions in self.objects.values() for action in actions}
        written = self.objects.get(DATA, ()) if of_jobs else done
        rights = {"kms:Decrypt": "GetObject" in done, "kms:GenerateDataKey": "PutObject" in written}
        return [right for right, is_needed in rights.items() if is_needed]


def narrowed(pattern: str, prefixes: Sequence[str]) -> list[str]:
    """The patterns of the same keys below the prefixes, and of the pipeline's own; ``""`` is all.

    A result can be put anywhere: else a job that is refused elsewhere would wait for it.
    """
    if "" in prefixes or pattern == RESULT or pattern.startswith(OWN[:-1]):
        return [pattern]
    if pattern == DATA:
        return [*(f"{prefix}*" for prefix in prefixes), OWN]
    name = pattern.removeprefix("*/")
    return [f"{prefix}{below}{name}" for prefix in prefixes for below in ("", "*/")]


def listing(prefixes: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """The condition that what is listed begins with one of the prefixes; ``""`` is all.

    IfExists, because the right makes S3 answer 404 to a HEAD as well, which names no prefix; so a
    listing without one is allowed. Listings of uploads do not know the key:
    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html
    """
    below = [*(f"{prefix}*" for prefix in prefixes), OWN]
    return {} if "" in prefixes else {"StringLikeIfExists": {"s3:prefix": below}}


def protected(names: str) -> tuple[str, ...]:
    """The patterns of the keys that the pipeline alone writes: ``documents``, or ``all`` of them.

    The marker is among ``all`` only: Spark's and Hadoop's own committers put theirs themselves. In
    a policy ``*`` matches any characters, ``/`` among them:
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_resource.html
    """
    documents = (OWN, COMMITS, RESULT)
    return documents if names == "documents" else (*documents, SUCCESS)


def protection(
    bucket_arn: str, names: str, exempt: Sequence[str], prefixes: Sequence[str] = ("",)
) -> list[dict[str, Any]]:
    """The statements of a bucket's policy by which all but ``exempt`` leave these keys alone.

    Those below ``prefixes``; elsewhere they are names of other programs.

    They deny to change what the pipeline writes; also to abort its uploads, as long lists are. A
    result may be deleted: the jar does so with all documents of a job that it knows to be undone.

    ``exempt`` are patterns of ARNs. AWS advises the condition instead of NotPrincipal, and for a
    role its value is the role's ARN, whatever the session; a request without it, an anonymous one,
    is denied as well:
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_notprincipal.html
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html
    """
    actions = ["s3:PutObject", "s3:DeleteObjectVersion", "s3:AbortMultipartUpload"]
    patterns = [one for name in protected(names) for one in narrowed(name, prefixes)]
    others = [f"{bucket_arn}/{name}" for name in patterns if name != RESULT]
    denied: dict[str, Any] = {
        "Effect": "Deny",
        "Principal": {"AWS": "*"},
        "Condition": {"ArnNotLike": {"aws:PrincipalArn": list(exempt)}},
    }
    return [
        {
            "Sid": "ProtectPipelineObjects",
            "Action": [*actions, "s3:DeleteObject"],
            "Resource": others,
            **denied,
        },
        {
            "Sid": "ProtectResults",
            "Action": actions,
            "Resource": f"{bucket_arn}/{RESULT}",
            **denied,
        },
    ]


ACCESS: dict[str, Access] = {
    "ingest": Access(
        objects=dict.fromkeys((JOB_DIRECTORY, DECISION, KEYS, OWNER), ("GetObject",)),
        bucket=("ListBucket",),
        ledger=("DescribeTable", "GetItem", "PutItem"),
    ),
    "dispatch": Access(),
    "decide": Access(
        objects={
            DATA: ("GetObject", "ListMultipartUploadParts"),
            INDEX: ("PutObject",),
            PAGES: ("PutObject",),
            DECISION: ("PutObject",),
            OWNER: ("PutObject",),
        },
        bucket=("ListBucket", "ListBucketMultipartUploads"),
        ledger=(
            *("DescribeTable", "GetItem", "BatchGetItem", "Query"),
            *("PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem"),
        ),
        index=("Query",),
    ),
    "complete": Access(
        objects={DATA: ("GetObject", "PutObject")},
        # Not all that begins with ``_``: a partition may be ``_day=1/``.
        denied={"PutObject": (OWN, COMMITS, SUCCESS, JOB_DIRECTORY)},
        bucket=("ListBucket",),
        ledger=("GetItem",),
    ),
    # It deletes what a roll back, a replace list or the end of a job names, which may be any data;
    # so a statement for the job's documents would add nothing. It completes no upload.
    "end": Access(
        objects={
            DATA: (
                "GetObject",  # S3 requires it where a delete is conditional on an etag
                "AbortMultipartUpload",
                "ListMultipartUploadParts",
                "DeleteObject",
            ),
            COMMITS: ("PutObject",),
            KEYS: ("PutObject",),
            SUCCESS: ("PutObject",),
            RESULT: ("PutObject",),
            DECISION: ("PutObject",),
        },
        denied={"DeleteObject": (COMMITS, KEYS, OWNER, DECISION, JOB, REQUEST)},
        bucket=("ListBucket", "ListBucketMultipartUploads"),
        ledger=("GetItem", "PutItem", "UpdateItem", "DeleteItem"),
        index=("Query",),
    ),
    # The right to read its tables is granted in `stacks.pipeline`; by GetObject it has Decrypt.
    "catalog": Access(
        objects={CATALOG: ("GetObject", "PutObject", "DeleteObject")}, bucket=("ListBucket",)
    ),
    "sweep": Access(
        objects={
            JOB_DIRECTORY: ("GetObject", "DeleteObject"),
            OWN: ("GetObject", "DeleteObject"),
            REQUEST: ("PutObject",),
            OWNER: ("PutObject",),
        },
        denied={"DeleteObject": (KEYS, OWNER)},
        bucket=("ListBucket", "ListBucketMultipartUploads", "GetBucketNotification"),
        ledger=("DescribeTable", "GetItem", "PutItem", "UpdateItem"),
        index=("Query",),
    ),
}


def why_wide(pattern: str) -> str:
    """The reason for the ``*`` in a pattern, which an auditor can check."""
    if pattern in {INDEX, PAGES, KEYS, DECISION, CATALOG, OWNER, OWN}:
        return "The pipeline's own objects of jobs, at the bucket's root; no data is there."
    if pattern in {JOB_DIRECTORY, RESULT, REQUEST, JOB, COMMITS, SUCCESS}:
        return "The protocol's own objects, and no data, below destinations of the clients' choice."
    assert pattern == DATA, f"why is {pattern} allowed?"  # noqa: S101 - ends a synth
    return (
        "The data files of a job are below a destination of the client's choice, so no narrower"
        " key is known at deploy time. Which keys one invocation may touch is checked on load:"
        " only those below the directory that the manifest is in (invariant I7, with tests)."
    )
