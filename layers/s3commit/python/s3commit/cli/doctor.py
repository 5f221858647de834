"""What `s3commit doctor` checks: one function for each thing that a deployer can act on."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any

from s3commit.aws import env
from s3commit.aws.concurrency import FULL, LEAST
from s3commit.aws.failures import NO_BUCKET, translated
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    NotFoundError,
    S3CommitError,
)
from s3commit.version import __version__
from s3commit.writer.bucket import MANIFEST_SUFFIX, REQUEST_SUFFIX, queues_by_suffix

CONSOLE = "https://console.aws.amazon.com/servicequotas/"
LEAST_DAYS = 2  # that an upload may wait, as of the deployment's parameter abortIncompleteDays
# What docs/deploy.md gives a writer, on the objects and on the bucket.
ON_OBJECTS = (
    "s3:PutObject",
    "s3:AbortMultipartUpload",
    "s3:ListMultipartUploadParts",
    "s3:GetObject",
)
ON_BUCKET = ("s3:GetBucketNotification", "s3:ListBucket")


class Verdict(StrEnum):
    """``SKIPPED``: it could not be looked at, or nothing is there; that is no failure."""

    OK = "ok"
    DO = "do"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """A check's answer in one line: what is so, or what to do."""

    verdict: Verdict
    text: str


ok = partial(Finding, Verdict.OK)  # all is well
to_do = partial(Finding, Verdict.DO)  # something has to be done, and the text says what
skipped = partial(Finding, Verdict.SKIPPED)  # it was not looked at, and the text says why


class NoBucketError(NotFoundError):
    """Neither an option nor a stack names the data bucket, so nothing of it is checked."""


@dataclass
class Surroundings:
    """Account, region and deployment. ``connect`` gives a boto3 client; tests give their own.

    ``name`` is the deployment's parameter of that name, ``bucket`` the data bucket if no stack is
    to be asked for it; ``role`` is the ARN of a Spark role that writes below ``prefix``. With a
    prefix alone it is the caller who writes there.
    """

    region: str | None
    connect: Callable[[str], Any]
    name: str | None = None
    bucket: str | None = None
    role: str | None = None
    prefix: str = ""
    _outputs: dict[str, dict[str, str] | None] = field(default_factory=dict)
    _notified: dict[str, list[str]] | None = None

    def stack(self, stack: str) -> str:
        """The stack's name in this deployment."""
        return f"{stack}-{self.name}" if self.name else stack

    def outputs(self, stack: str) -> dict[str, str] | None:
        """The stack's outputs by name; None if it is not deployed.

        Raises `AccessError` if the caller may not read it.
        """
        if stack not in self._outputs:
            self._outputs[stack] = self._read(self.stack(stack))
        return self._outputs[stack]

    def data_bucket(self) -> str:
        """The name that was given, or the one that the storage stack says.

        Raises `NoBucketError` if neither does.
        """
        found = self.bucket or (self.outputs(env.STORAGE_STACK) or {}).get(env.BUCKET_OUTPUT)
        if found is None:
            raise NoBucketError("no stack says which bucket: name it with --bucket")
        return found

    def notified(self) -> dict[str, list[str]]:
        """The ARNs of the queues that the bucket notifies, by the suffix of the keys."""
        if self._notified is None:
            bucket, what = self.data_bucket(), "get_bucket_notification_configuration"
            doing = f"reading the notifications of bucket {bucket}"
            self._notified = queues_by_suffix(self.ask(doing, "s3", what, Bucket=bucket))
        return self._notified

    def ask(self, doing: str, service: str, operation: str, **parameters: Any) -> Any:
        """What AWS answers; its errors are this package's, with what was being done."""
        with translated(doing):
            return getattr(self.connect(service), operation)(**parameters)

    def _read(self, name: str) -> dict[str, str] | None:
        doing = f"reading stack {name}"
        try:
            (stack,) = self.ask(doing, "cloudformation", "describe_stacks", StackName=name)[
                "Stacks"
            ]
        except NotFoundError:
            return None
        except InvalidInputError as error:
            # CloudFormation says ValidationError of a stack that is not there.
            if "does not exist" not in error.message:
                raise
            return None
        return {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", [])}


def account(around: Surroundings) -> Finding:
    """Which credentials are used, and in which region."""
    if around.region is None:
        return to_do("no region: set AWS_REGION, or region in the profile")
    try:
        found = around.ask("asking STS who this is", "sts", "get_caller_identity")
    except AccessError as error:
        return to_do(error.message)
    return ok(f"{found['Arn']} in account {found['Account']}, region {around.region}")


def functions_at_once(around: Surroundings) -> Finding:
    """Lambda's concurrency, which new accounts have little of, and the parameter to set.

    https://docs.aws.amazon.com/lambda/latest/api/API_GetAccountSettings.html
    """
    doing = "reading Lambda's account settings"
    limit = around.ask(doing, "lambda", "get_account_settings")["AccountLimit"]
    free, quota = limit["UnreservedConcurrentExecutions"], limit["ConcurrentExecutions"]
    there_are = f"{free} functions at once are not reserved (the quota is {quota})"
    wanted = _deployed(around)
    if free >= wanted:
        return ok(f"{there_are}; the deployment uses {wanted} at most")
    if free < LEAST:
        return to_do(
            f"{there_are}, and the pipeline needs {LEAST}: request an increase of Lambda's quota"
            f" Concurrent executions at {CONSOLE}"
        )
    return to_do(
        f"{there_are}, and the deployment may use {wanted}: deploy with -c"
        f" s3commit:lambdaConcurrency={free} (it then works, slower), or request an increase at"
        f" {CONSOLE}"
    )


def _deployed(around: Surroundings) -> int:
    """How many functions the deployment may use at once; without one, by default."""
    try:
        outputs = around.outputs(env.PIPELINE_STACK) or {}
    except AccessError:
        outputs = {}
    return min(FULL, int(outputs.get(env.CONCURRENCY_OUTPUT, FULL)))


def pipeline(around: Surroundings) -> Finding:
    """Pipeline and package are of one version; an older one refuses a newer one's documents."""
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
    """The bucket announces requests and manifests to the pipeline."""
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


def lifecycle(around: Surroundings) -> Finding:
    """A lifecycle rule aborts forgotten uploads, and none does so too early.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpu-abort-incomplete-mpu-lifecycle-config.html
    """
    bucket = around.data_bucket()
    doing, what = f"reading the lifecycle of bucket {bucket}", "get_bucket_lifecycle_configuration"
    try:
        rules = around.ask(doing, "s3", what, Bucket=bucket)["Rules"]
    except NotFoundError:
        rules = []
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

    To a caller who has the right S3 answers that there is no such upload, or object; of an object
    it says so only to one who may list the bucket:
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


Check = Callable[[Surroundings], Finding]
CHECKS: dict[str, Check] = {
    "functions at once": functions_at_once,
    "pipeline": pipeline,
    "notifications": notifications,
    "lifecycle": lifecycle,
    "rights": rights,
}


def examine(around: Surroundings) -> Iterator[tuple[str, Finding]]:
    """Run each check; without region or credentials only the first one, the account."""
    who = _ask(account, around)
    yield "account", who
    for name, check in CHECKS.items():
        if who.verdict is Verdict.OK:
            yield name, _ask(check, around)
        else:
            yield name, skipped("not without region and credentials")


def _ask(check: Check, around: Surroundings) -> Finding:
    """Run a check; one that may not read what it needs is skipped, and names the right it lacks."""
    try:
        return check(around)
    except NoBucketError as error:
        return skipped(error.message)
    except AccessError as error:
        return to_do(error.message) if error.code == "NO_CREDENTIALS" else skipped(error.message)
    except S3CommitError as error:
        return to_do(error.message)
