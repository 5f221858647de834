"""Whether a Spark job may do what it needs: by IAM's own simulation, or by trying."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from s3commit.aws.failures import NO_BUCKET, translated
from s3commit.cli.doctor.surroundings import Finding, Surroundings, ok, skipped, to_do
from s3commit.core.model.errors import AccessError, NotFoundError

# What docs/deploy.md gives a writer, on the objects and on the bucket.
ON_OBJECTS = (
    "s3:PutObject",
    "s3:AbortMultipartUpload",
    "s3:ListMultipartUploadParts",
    "s3:GetObject",
)
ON_BUCKET = ("s3:GetBucketNotification", "s3:ListBucket")


def rights(around: Surroundings) -> Finding:
    """The rights of ``--role`` below ``--prefix``; without a role those of the caller."""
    who = around.role or "the caller"
    if around.role is None and not around.prefix:
        return skipped("name the role of your Spark jobs with --role; on a cluster --prefix alone")
    where = f"s3://{around.data_bucket()}/{around.prefix}"
    try:
        lacking = _simulated(around, around.role) if around.role else _tried(around)
    except NotFoundError as error:
        return to_do(f"{error.message}: correct --role or --bucket")
    except AccessError as error:
        return skipped(f"{error.message}; on the cluster give --prefix alone, and it is tried")
    if lacking:
        return to_do(
            f"{who} lacks {', '.join(lacking)} at {where}: docs/deploy.md has the policy of"
            " a Spark role"
        )
    return ok(f"{who} may do what a writer needs at {where}")


def _simulated(around: Surroundings, role: str) -> list[str]:
    """What the role lacks by its own policies; the bucket's policy is not asked.

    https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html
    """
    arn = f"arn:{role.split(':')[1]}:s3:::{around.data_bucket()}"
    client = around.connect("iam")
    lacking: list[str] = []
    for actions, resource in ((ON_OBJECTS, f"{arn}/{around.prefix}x"), (ON_BUCKET, arn)):
        with translated(f"simulating the rights of {role}"):
            answer = client.simulate_principal_policy(
                PolicySourceArn=role, ActionNames=list(actions), ResourceArns=[resource]
            )
        lacking += [
            one["EvalActionName"]
            for one in answer["EvaluationResults"]
            if one["EvalDecision"] != "allowed"
        ]
    return lacking


def _tried(around: Surroundings) -> list[str]:
    """What the caller lacks, by all policies: calls that can only fail, for an upload of no one.

    Whoever has the right is told that there is no such upload, or object; but of an object S3 says
    so to those alone who may list the bucket:
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuAndPermissions.html
    https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
    """
    s3, bucket = around.connect("s3"), around.data_bucket()
    nothing = {"Bucket": bucket, "Key": f"{around.prefix}s3commit-doctor-{uuid.uuid4()}"}
    upload = {**nothing, "UploadId": uuid.uuid4().hex}
    calls: dict[str, Callable[[], object]] = {
        "s3:PutObject": lambda: s3.upload_part(**upload, PartNumber=1, Body=b""),
        "s3:AbortMultipartUpload": lambda: s3.abort_multipart_upload(**upload),
        "s3:ListMultipartUploadParts": lambda: s3.list_parts(**upload),
        "s3:GetObject": lambda: s3.get_object(**nothing),
        "s3:GetBucketNotification": around.notified,
        "s3:ListBucket": lambda: s3.list_objects_v2(Bucket=bucket, Prefix=around.prefix, MaxKeys=1),
    }
    return [right for right, call in calls.items() if not _may(right, call)]


def _may(right: str, call: Callable[[], object]) -> bool:
    try:
        with translated(f"trying {right}"):
            call()
    except AccessError:
        return False
    except NotFoundError as error:
        if error.code == NO_BUCKET:
            raise
    return True
