"""``s3commit doctor``: one function for each thing that a deployer can act on."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import click

from s3commit.aws import env
from s3commit.aws.catalog import GlueTable, full
from s3commit.aws.clients import is_aws
from s3commit.aws.env import DEFAULT, LEAST, Catalog
from s3commit.aws.failures import NO_BUCKET, translated
from s3commit.aws.s3 import S3ObjectStore
from s3commit.cli.alarms import alarms, letters, sources
from s3commit.cli.bucket_checks import (
    deletes,
    encryption,
    lifecycle,
    notifications,
    owner,
    prefixes,
    supported,
)
from s3commit.cli.deployment import NOT_NAMED, Deployment, Finding, ok, skipped, to_do
from s3commit.cli.options import name_option, with_session
from s3commit.cli.policy_check import policy
from s3commit.cli.render import CommandError
from s3commit.cli.session import Session
from s3commit.core.formats.layout import MAGIC_PREFIX, parse_destination
from s3commit.core.jobs.healing import doubt_about
from s3commit.core.model.amounts import many
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    NotFoundError,
    PreconditionError,
    S3CommitError,
)
from s3commit.version import __version__

# A writer's rights in docs/deploy.md, on the objects and on the bucket.
ON_OBJECTS = (
    "s3:PutObject",
    "s3:AbortMultipartUpload",
    "s3:ListMultipartUploadParts",
    "s3:GetObject",
)
ON_JOBS = ("s3:DeleteObject",)  # of the jar: on objects in job directories, and nothing else
ON_BUCKET = ("s3:GetBucketNotification", "s3:ListBucket")


@click.command()
@name_option
@click.option("--bucket", metavar="BUCKET", help="Data bucket to check [default: from the stack]")
@click.option("--role", metavar="ARN", help="Role of your Spark jobs, whose rights are simulated.")
@click.option(
    "--prefix", metavar="PREFIX", default="", help="Prefix, or URI, that the role or you write to."
)
@with_session
def doctor(session: Session, *, prefix: str, **options: Any) -> None:
    """Check the account and the deployment.

    Run it before the first deployment (with --bucket for a bucket that exists), after it, and on a
    cluster. It changes nothing. One line a check: ok, what to do, or why it was skipped. On a store
    that is not AWS's it puts an object below --prefix and deletes it. It reads
    sts:GetCallerIdentity, lambda:GetAccountSettings, cloudformation:DescribeStacks, the ledger
    (dynamodb:Query, dynamodb:DescribeTable), the bucket's notifications, lifecycle, policy, lock
    and encryption, its object _s3commit/_owner.json, events:DescribeRule,
    lambda:GetEventSourceMapping, cloudwatch:DescribeAlarms, sqs:GetQueueAttributes and GetQueueUrl,
    of each table in the parameter catalogs glue:GetTable and a listing, and asks
    iam:SimulatePrincipalPolicy; checks that the caller has no right to are skipped. With --prefix
    and no --role the caller's own rights there are tried, by calls for an upload that does not
    exist. Exit code 1 if there is something to fix.
    """
    if options["bucket"]:
        _check("--bucket", f"s3://{options['bucket']}/x/")
    found = examine(_below(replace(session.deployment, **options), prefix), session)
    checks = [{"check": check, **finding._asdict()} for check, finding in found]
    wrong = [one["check"] for one in checks if one["verdict"] == "fix"]
    document = {"ok": not wrong, "checks": checks}
    session.out.table(document, "checks", "verdict, check, text as DETAIL")
    if wrong:
        count = many(len(wrong), "check")
        raise CommandError(f"{count} of {len(checks)} failed: {', '.join(wrong)}", 1)


def _check(option: str, uri: str) -> Destination:
    try:
        return parse_destination(uri)
    except InvalidInputError as error:
        raise click.UsageError(f"{option}: {error.message}") from error


def _below(around: Deployment, prefix: str) -> Deployment:
    """The same for this prefix, also as a URI of the data bucket, which is its if none is known."""
    if "://" not in prefix:
        return replace(around, prefix=prefix)
    place = _check("--prefix", prefix)
    bucket = place.bucket
    with suppress(S3CommitError):
        bucket = around.data_bucket
    if bucket != place.bucket:
        raise click.UsageError(
            f"--prefix {prefix} is not in the data bucket, {bucket}: name the other with --bucket"
        )
    return replace(around, bucket=bucket, prefix=place.prefix)


def account(around: Deployment) -> Finding:
    """Which credentials are used, and in which region."""
    if around.region is None:
        return to_do("no region: set AWS_REGION, or region in the profile")
    try:
        found = around.identity
    except AccessError as error:
        return to_do(error.message)
    return ok(f"{found['Arn']} in account {found['Account']}, region {around.region}")


def functions_at_once(around: Deployment) -> Finding:
    """Lambda's concurrency, which new accounts have little of, and the parameter to set.

    https://docs.aws.amazon.com/lambda/latest/api/API_GetAccountSettings.html
    """
    doing = "reading Lambda's account settings"
    try:
        limit = around.ask(doing, "lambda", "get_account_settings")["AccountLimit"]
    except NotFoundError:
        return skipped("not available: the endpoint has no such settings, so it is not AWS")
    free, quota = limit["UnreservedConcurrentExecutions"], limit["ConcurrentExecutions"]
    there_are = f"{free} concurrent executions are unreserved (the quota is {quota})"
    wanted = int(around.pipeline.get(env.CONCURRENCY_OUTPUT, DEFAULT))
    if free >= wanted:
        return ok(f"{there_are}; the deployment uses {wanted} at most")
    more = "request an increase of Lambda's quota Concurrent executions in Service Quotas"
    if free < LEAST:
        return to_do(f"{there_are}, and the pipeline needs {LEAST}: {more}")
    return to_do(
        f"{there_are}, and the deployment may use {wanted}: deploy with -c"
        f" s3commit:lambdaConcurrency={free} (it then works, slower), or {more}"
    )


def pipeline(around: Deployment) -> Finding:
    """Pipeline and package are of one version; an older one refuses a newer one's documents."""
    name = around.stack(env.PIPELINE_STACK)
    if not around.pipeline:
        return skipped(f"no stack {name} in {around.region}: not deployed, or name it with --name")
    deployed = around.pipeline.get(env.VERSION_OUTPUT, "of an unknown version")
    if deployed != __version__:
        return to_do(
            f"{name} is {deployed} and this package {__version__}: install {deployed} here, or"
            f" deploy {__version__}"
        )
    return ok(f"{name} is {deployed}, as this package")


def ledger(session: Session, around: Deployment) -> Finding:
    """The ledger's table knows all jobs that were decided, or is going to."""
    table = around.storage.get(env.TABLE_OUTPUT)
    if table is None:
        return skipped("no stack names the ledger's table: not deployed, or name it with --name")
    return ok(doubt_about(session.ledger(table)) or f"table {table} knows all decided jobs")


def catalogs(around: Deployment) -> Finding:
    """Each table is where the parameter says, has the paths' columns, and can be notified."""
    told = [Catalog.of(one) for one in (around.parameters or {}).get("catalogs", ())]
    if wrong := [each for one in told for each in _wrong_with(around, one)]:
        return to_do("; ".join(wrong))
    return ok(f"{many(len(told), 'table')} of the Glue Data Catalog can be notified of commits")


def _wrong_with(around: Deployment, catalog: Catalog) -> Iterator[str]:
    try:
        table = GlueTable(around.connect("glue"), catalog, around.data_bucket)
        there = full(S3ObjectStore(around.connect("s3")), around.data_bucket, catalog, "")
        if path := next((one for one in there if "=" in one), ""):
            table.values(path)
    except NotFoundError as error:
        yield f"{error.message}: create it, or correct the parameter catalogs"
    except InvalidInputError as error:
        yield error.message
    role = around.pipeline.get(env.CATALOG_ROLE_OUTPUT)
    if role is None:
        yield f"no function notifies table {catalog.table}: deploy again"
        return
    _, partition, _, _, account, *_ = role.split(":")
    rights = catalog.rights(f"arn:{partition}:glue:{around.region}:{account}")
    if lacking := around.lacking(role, *rights):
        yield f"{role} lacks {', '.join(lacking)}: deploy again, or find the policy that denies it"


def rights(around: Deployment) -> Finding:
    """The rights of ``--role`` below ``--prefix``; without a role those of the caller."""
    who = around.role or "the caller"
    if around.role is None and not around.prefix:
        return skipped("name the role of your Spark jobs with --role; on a cluster --prefix alone")
    if around.role and around.role.split(":")[2:3] != ["iam"]:
        return to_do(f"--role {who} is not the ARN of a role: give arn:aws:iam::ACCOUNT:role/NAME")
    if around.role and not is_aws(around.connect("iam")):
        return skipped("not available: the endpoint is not AWS, and checks no role's rights")
    where = f"s3://{around.data_bucket}/{around.prefix}"
    try:
        lacking = _simulated(around, around.role) if around.role else _tried(around)
    except AccessError as error:
        return skipped(f"{error.message}; on the cluster give --prefix alone, and it is tried")
    if lacking:
        return to_do(
            f"{who} lacks {', '.join(lacking)} at {where}: docs/deploy.md has the policy of"
            " a Spark role"
        )
    return ok(f"{who} has all rights of a writer at {where}")


def _simulated(around: Deployment, role: str) -> list[str]:
    """The rights that the role lacks by its own policies; the bucket's policy is not checked."""
    arn = f"arn:{role.split(':')[1]}:s3:::{around.data_bucket}"
    below = f"{arn}/{around.prefix}"
    return [
        *around.lacking(role, ON_OBJECTS, [f"{below}x"]),
        *around.lacking(role, ON_JOBS, [f"{below}{MAGIC_PREFIX}x/_job.json"]),
        *around.lacking(role, ON_BUCKET, [arn]),
    ]


def _tried(around: Deployment) -> list[str]:
    """The rights that the caller lacks, by all policies: calls for an upload that does not exist.

    To a caller who has the right S3 answers that there is no such upload, or object; of an object
    it says so only to one who may list the bucket. A delete on a condition makes no delete marker:
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuAndPermissions.html
    https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-deletes.html
    """
    s3, bucket = around.connect("s3"), around.data_bucket
    nothing = {"Bucket": bucket, "Key": f"{around.prefix}s3commit-doctor-{uuid.uuid4()}"}
    document = {**nothing, "Key": f"{around.prefix}{MAGIC_PREFIX}{uuid.uuid4()}/_job.json"}
    upload = {**nothing, "UploadId": uuid.uuid4().hex}
    calls: dict[str, Callable[[], object]] = {
        "s3:PutObject": lambda: s3.upload_part(**upload, PartNumber=1, Body=b""),
        "s3:AbortMultipartUpload": lambda: s3.abort_multipart_upload(**upload),
        "s3:ListMultipartUploadParts": lambda: s3.list_parts(**upload),
        "s3:GetObject": lambda: s3.get_object(**nothing),
        "s3:DeleteObject": lambda: s3.delete_object(**document, IfMatch=f'"{uuid.uuid4().hex}"'),
        "s3:GetBucketNotification": lambda: around.notifications,
        "s3:ListBucket": lambda: s3.list_objects_v2(Bucket=bucket, Prefix=around.prefix, MaxKeys=1),
    }
    return [right for right, call in calls.items() if not _may(right, call)]


def _may(right: str, call: Callable[[], object]) -> bool:
    try:
        with translated(f"trying {right}"):
            call()
    except AccessError:
        return False
    except PreconditionError:
        return True
    except NotFoundError as error:
        if error.code == NO_BUCKET:
            raise
    return True


Check = Callable[[Deployment], Finding]
CHECKS: dict[str, Check] = {
    "concurrency": functions_at_once,
    "pipeline": pipeline,
    "prefixes": prefixes,
    "bucket": supported,
    "encryption": encryption,
    "notifications": notifications,
    "owner": owner,
    "deletes": deletes,
    "lifecycle": lifecycle,
    "bucket policy": policy,
    "catalogs": catalogs,
    "event sources": sources,
    "alarms": alarms,
    "dead letters": letters,
    "rights": rights,
}


def examine(around: Deployment, session: Session) -> Iterator[tuple[str, Finding]]:
    """Run each check; without region or credentials only the first one, the account."""
    who = _ask(account, around)
    yield "account", who
    if who.verdict == "ok":
        checks: dict[str, Check] = {"ledger": partial(ledger, session), **CHECKS}
        yield from ((name, _ask(check, around)) for name, check in checks.items())


def _ask(check: Check, around: Deployment) -> Finding:
    """Run a check; one without the right to read what it needs is skipped, and names that right."""
    try:
        return check(around)
    except S3CommitError as error:
        unread = isinstance(error, AccessError) and error.code != "NO_CREDENTIALS"
        return (skipped if unread or error.code == NOT_NAMED else to_do)(error.message)
