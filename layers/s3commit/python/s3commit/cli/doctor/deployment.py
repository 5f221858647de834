"""The deployment, if there is one, and the settings of its bucket, which may stop all jobs."""

from __future__ import annotations

import json
from typing import Any

from s3commit.aws import env
from s3commit.aws.failures import translated
from s3commit.cli.doctor.surroundings import Finding, Surroundings, ok, skipped, to_do
from s3commit.core.model.errors import NotFoundError
from s3commit.version import __version__
from s3commit.writer.bucket import MANIFEST_SUFFIX, REQUEST_SUFFIX

LEAST_DAYS = 2  # that an upload may wait, as of the deployment's parameter abortIncompleteDays
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes-enforce.html
_CONDITIONS = {"s3:if-none-match", "s3:if-match"}


def bucket_policy(around: Surroundings) -> Finding:
    """Whether the bucket's policy demands conditions that the pipeline's requests do not have."""
    bucket, answer = around.data_bucket(), around.bucket_setting("policy", "get_bucket_policy")
    if answer is None:
        return ok(f"bucket {bucket} has no policy")
    found = [
        str(statement.get("Sid", "without a Sid"))
        for statement in _statements(answer["Policy"])
        if statement.get("Effect") == "Deny"
        and any(
            _CONDITIONS & set(map(str.lower, one))
            for one in statement.get("Condition", {}).values()
        )
    ]
    if found:
        return to_do(
            f"the policy of bucket {bucket} demands If-None-Match or If-Match (statement"
            f" {', '.join(found)}). The pipeline replaces _SUCCESS, and completes uploads without"
            " either: let the statement exempt the pipeline's and the writers' roles"
        )
    return ok(f"the policy of bucket {bucket} demands no conditional writes")


def lifecycle(around: Surroundings) -> Finding:
    """Whether a lifecycle rule aborts forgotten uploads, and none too early.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpu-abort-incomplete-mpu-lifecycle-config.html
    """
    bucket = around.data_bucket()
    answer = around.bucket_setting("lifecycle", "get_bucket_lifecycle_configuration")
    rules = answer["Rules"] if answer else []
    days = [
        int(rule["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"])
        for rule in rules
        if rule["Status"] == "Enabled" and "AbortIncompleteMultipartUpload" in rule
    ]
    if not days:
        return to_do(
            f"no lifecycle rule of bucket {bucket} aborts incomplete uploads: add one, of more days"
            " than your longest job takes, for uploads whose job left no trace"
        )
    if min(days) < LEAST_DAYS:
        return to_do(
            f"a lifecycle rule of bucket {bucket} aborts uploads after {min(days)} day: a job that"
            f" takes longer loses its data. Set it to {LEAST_DAYS} days or more"
        )
    return ok(f"bucket {bucket} aborts incomplete uploads after {min(days)} days")


def encryption(around: Surroundings) -> Finding:
    """Whether the key of the bucket's default encryption can be used."""
    bucket = around.data_bucket()
    answer = around.bucket_setting("encryption", "get_bucket_encryption")
    if answer is None:
        return ok(f"bucket {bucket} encrypts with S3's own keys")
    (rule,) = answer["ServerSideEncryptionConfiguration"]["Rules"]
    default = rule["ApplyServerSideEncryptionByDefault"]
    key = default.get("KMSMasterKeyID")
    if default["SSEAlgorithm"] == "AES256" or key is None:
        return ok(f"bucket {bucket} encrypts with {default['SSEAlgorithm']}, a key of AWS's")
    described = around.ask(f"looking at key {key}", "kms", "describe_key", KeyId=key)
    state = described["KeyMetadata"]["KeyState"]
    if state != "Enabled":
        return to_do(
            f"key {key} of bucket {bucket} is {state}: enable it; until then nothing can be written"
        )
    return ok(f"bucket {bucket} encrypts with key {key}, which is enabled")


def queues(around: Surroundings) -> Finding:
    """Whether S3 may send to the queues that the bucket notifies, and how much waits in them."""
    bucket = around.data_bucket()
    found = around.notified()
    arns = {arn for each in (REQUEST_SUFFIX, MANIFEST_SUFFIX) for arn in found.get(each, [])}
    if not arns:
        return skipped("the bucket notifies no queue")
    waiting, client = 0, around.connect("sqs")
    for arn in sorted(arns):
        account, name = arn.split(":")[4:6]
        with translated(f"looking at queue {name}"):
            url = client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)["QueueUrl"]
            attributes = client.get_queue_attributes(
                QueueUrl=url, AttributeNames=["Policy", "ApproximateNumberOfMessages"]
            )["Attributes"]
        if not any(map(_lets_s3_send, _statements(attributes.get("Policy", "{}")))):
            return to_do(
                f"the policy of queue {name} does not let S3 send to it: deploy again; until then"
                f" no job in bucket {bucket} is committed"
            )
        waiting += int(attributes["ApproximateNumberOfMessages"])
    return ok(f"S3 may send to the pipeline's queues; {waiting} messages wait in them")


def _lets_s3_send(statement: dict[str, Any]) -> bool:
    actions = statement.get("Action", [])
    principal = statement.get("Principal")
    services = principal.get("Service", []) if isinstance(principal, dict) else []
    return (
        statement.get("Effect") == "Allow"
        and "sqs:sendmessage" in {one.lower() for one in _listed(actions)}
        and "s3.amazonaws.com" in _listed(services)
    )


def _statements(policy: str) -> list[dict[str, Any]]:
    found = json.loads(policy).get("Statement", [])
    return [found] if isinstance(found, dict) else found


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def pipeline(around: Surroundings) -> Finding:
    """Whether pipeline and package are of one version: a newer document is refused by the older."""
    name = around.stack(env.PIPELINE_STACK)
    outputs = around.outputs(env.PIPELINE_STACK)
    if outputs is None:
        return skipped(f"no stack {name} in {around.region}: not deployed, or name it with --name")
    deployed = outputs.get(env.VERSION_OUTPUT)
    if deployed is None:
        return to_do(f"{name} does not say its version: deploy it again from this checkout")
    if deployed != __version__:
        return to_do(
            f"{name} is {deployed} and this package {__version__}: install {deployed} here, or"
            f" deploy {__version__}"
        )
    return ok(f"{name} is {deployed}, as this package")


def notifications(around: Surroundings) -> Finding:
    """Whether the bucket tells the pipeline of requests and manifests."""
    bucket = around.data_bucket()
    try:
        found = around.notified()
    except NotFoundError:
        return to_do(f"bucket {bucket} does not exist: correct --bucket, or deploy")
    lacking = [each for each in (REQUEST_SUFFIX, MANIFEST_SUFFIX) if not found.get(each)]
    if lacking:
        return to_do(
            f"bucket {bucket} notifies no queue of keys that end in {' and '.join(lacking)}: deploy"
            " again with this bucket; until then no job there is committed"
        )
    return ok(f"bucket {bucket} notifies of requests and manifests")
