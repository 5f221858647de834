"""Whether a role may do what a Spark job needs, by IAM's own simulation."""

from __future__ import annotations

from s3commit.aws.failures import translated
from s3commit.cli.doctor.finding import Finding, ok, skipped, to_do
from s3commit.cli.doctor.surroundings import Surroundings
from s3commit.core.model.errors import NotFoundError

# What docs/deploy.md gives a writer, on the objects and on the bucket.
ON_OBJECTS = (
    "s3:PutObject",
    "s3:AbortMultipartUpload",
    "s3:ListMultipartUploadParts",
    "s3:GetObject",
)
ON_BUCKET = ("s3:GetBucketNotification", "s3:ListBucket")


def rights(around: Surroundings) -> Finding:
    """The rights of ``--role`` below ``--prefix`` of the bucket; the bucket's policy is not asked.

    https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html
    """
    if around.role is None:
        return skipped("name the role of your Spark jobs with --role")
    bucket = around.data_bucket()
    arn = f"arn:{around.role.split(':')[1]}:s3:::{bucket}"
    client = around.connect("iam")
    lacking: list[str] = []
    for actions, resource in ((ON_OBJECTS, f"{arn}/{around.prefix}x"), (ON_BUCKET, arn)):
        try:
            with translated(f"simulating the rights of {around.role}"):
                answer = client.simulate_principal_policy(
                    PolicySourceArn=around.role,
                    ActionNames=list(actions),
                    ResourceArns=[resource],
                )
        except NotFoundError:
            return to_do(f"role {around.role} does not exist: correct --role")
        lacking += [
            one["EvalActionName"]
            for one in answer["EvaluationResults"]
            if one["EvalDecision"] != "allowed"
        ]
    where = f"s3://{bucket}/{around.prefix}"
    if lacking:
        return to_do(
            f"{around.role} lacks {', '.join(lacking)} at {where}: docs/deploy.md has the policy of"
            " a Spark role"
        )
    return ok(f"{around.role} may do what a writer needs at {where}")
