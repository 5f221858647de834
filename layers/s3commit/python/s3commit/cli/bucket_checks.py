"""The checks by `doctor` of the data bucket, before a deployment and after it."""

from functools import partial
from typing import Any

from s3commit.aws import env
from s3commit.aws.clients import is_aws
from s3commit.aws.failures import NO_BUCKET, answered
from s3commit.aws.notifications import SUFFIXES, suffix_of, told, unheard
from s3commit.aws.s3 import S3ObjectStore
from s3commit.aws.s3_requests import keeps_changed
from s3commit.cli.deployment import Deployment, Finding, ok, skipped, to_do
from s3commit.core.documents.bucket_owner import read_owner
from s3commit.core.documents.key_note import MAX_NOTE_BYTES
from s3commit.core.formats.layout import PIPELINE
from s3commit.core.model.errors import AccessError, NotFoundError, S3CommitError

LEAST_DAYS = 2  # that an upload may wait, as of the deployment's parameter abortIncompleteDays
ARCHIVES = ("GLACIER", "DEEP_ARCHIVE")
KINDS = ("Queue", "Topic", "LambdaFunction")  # of notifications, as S3 names their settings
LACKING = ("NotImplemented", "501", "MethodNotAllowed", "405")  # as stores of others answer
HAND_OVER = "docs/operations.md, Hand a bucket over"


def notifications(around: Deployment) -> Finding:
    """Events of jobs, requests and manifests reach the deployment; before it, they could."""
    bucket = around.data_bucket
    try:
        if around.parameters is None:
            return _importable(around)
        ears = around.ears
    except AccessError:  # as on a cluster: what can be seen there is what its writers see
        ears = None
    if found := unheard(around.notifications, ears):
        return to_do(
            f"bucket {bucket}: {told(found)}. Deploy again with this bucket; until then its jobs"
            " are not committed"
        )
    if ears is None:
        seen = "sends events of jobs; whether they reach this deployment was not looked at"
        return skipped(f"bucket {bucket} {seen}: its stack can't be read, or is an earlier one")
    unseen = "; ".join(filter(None, (one.unseen for one in ears.values())))
    reach = f"events of bucket {bucket} reach the deployment: of jobs, requests and manifests"
    return ok(f"{reach}; not looked at: {unseen}" if unseen else reach)


def owner(around: Deployment) -> Finding:
    """The bucket is this deployment's, by the object that says whose it is."""
    bucket = around.data_bucket
    found, _etag = read_owner(S3ObjectStore(around.connect("s3")), bucket)
    table = around.storage.get(env.TABLE_OUTPUT)
    where = f"{around.region}:{around.identity['Account']}"
    ledger = f"arn:{around.partition}:dynamodb:{where}:table/{table}"
    if found is None:
        return ok(f"bucket {bucket} has no owner yet: the first sweep, or job, notes it")
    if found.ledger == ledger:
        return ok(f"bucket {bucket} belongs to this deployment")
    return to_do(
        f"bucket {bucket} belongs to the deployment with the ledger {found.ledger}, and a bucket"
        f" has one: use that one, or take the bucket over ({HAND_OVER})"
    )


def _importable(around: Deployment) -> Finding:
    """Check that a deployment could add its notifications: S3 refuses filters that overlap.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-how-to-filtering.html
    """
    bucket = around.data_bucket
    overlapping = sorted(
        each[f"{kind}Arn"]
        for kind in KINDS
        for each in around.notifications.get(f"{kind}Configurations", [])
        if any(event.startswith("s3:ObjectCreated:") for event in each["Events"])
        and any(suffix_of(each).endswith(one) or one.endswith(suffix_of(each)) for one in SUFFIXES)
    )
    if set(map(suffix_of, around.notifications.get("QueueConfigurations", ()))) >= set(SUFFIXES):
        return to_do(
            f"bucket {bucket} notifies {', '.join(dict.fromkeys(overlapping))} as a deployment of"
            " s3commit does, and a bucket has one: name it with --name, or take the bucket over"
            f" ({HAND_OVER})"
        )
    if overlapping:
        return to_do(
            f"bucket {bucket} has notifications to {', '.join(overlapping)} that overlap with"
            " ours, so S3 would refuse ours: deploy with -c s3commit:events=eventbridge"
        )
    return ok(f"bucket {bucket} can be imported: deploy with -c s3commit:importBucket={bucket}")


def setting(around: Deployment, what: str, unset: dict[str, Any]) -> Any:
    """A setting of the data bucket; ``unset`` where nothing is. Raises if there is no bucket."""
    bucket = around.data_bucket
    doing = f"reading the {what.removeprefix('bucket_').replace('_', ' ')} of bucket {bucket}"
    try:
        return around.ask(doing, "s3", f"get_{what}", Bucket=bucket)
    except S3CommitError as error:
        is_unset = isinstance(error, NotFoundError) and error.code != NO_BUCKET
        # AWS itself answers 405 to another account: there it does not mean that nothing is set.
        is_lacking = answered(error) in LACKING and not is_aws(around.connect("s3"))
        if not (is_unset or is_lacking):
            raise
        return unset


def supported(around: Deployment) -> Finding:
    """The bucket is of this account and region, and lets objects go: docs/deploy.md."""
    bucket, account = around.data_bucket, around.identity["Account"]
    look = partial(around.ask, f"looking at bucket {bucket}", "s3", "head_bucket", Bucket=bucket)
    region = look().get("BucketRegion") or around.region  # a store of others may leave it empty
    if region != around.region:
        return to_do(
            f"bucket {bucket} is in {region}, and S3 notifies queues of its own region alone: set"
            f" AWS_REGION={region} and deploy there, or use a bucket in {around.region}"
        )
    try:
        look(ExpectedBucketOwner=account)
    except AccessError:
        return to_do(
            f"bucket {bucket} is not of account {account}, which is not supported: deploy in the"
            " bucket's account, or use another bucket"
        )
    lock = setting(around, "object_lock_configuration", {})
    if "DefaultRetention" in lock.get("ObjectLockConfiguration", {}).get("Rule", {}):
        return to_do(
            f"bucket {bucket} has Object Lock with a default retention, which is not supported:"
            " use another bucket"
        )
    return ok(f"bucket {bucket} is in {region}, of this account, and has no default retention")


def encryption(around: Deployment) -> Finding:
    """The pipeline has rights to the key that new objects get.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html
    """
    bucket, given = around.data_bucket, around.parameters or {}
    unset: dict[str, Any] = {"ServerSideEncryptionConfiguration": {"Rules": [{}]}}
    found = setting(around, "bucket_encryption", unset)["ServerSideEncryptionConfiguration"]
    default = found["Rules"][0].get("ApplyServerSideEncryptionByDefault", {})
    key = default.get("KMSMasterKeyID", "")
    # To a job's key only the completion of uploads has the right; documents go by the header.
    of_jobs = given.get("jobKeyArns", ()) if given.get("encryption") else ()
    known = [given.get("kmsKeyArn", ""), *of_jobs]
    if not key or key.endswith("alias/aws/s3") or any(one.endswith(key) for one in known):
        return ok(f"bucket {bucket} encrypts with {key or 'a key of S3'}, as the pipeline may")
    if "alias/" in key:
        return skipped(f"bucket {bucket} encrypts with {key}: see that kmsKeyArn is that key's ARN")
    return to_do(
        f"bucket {bucket} encrypts with {key}, and the pipeline has no right to put documents with"
        " that key, so no job ends: deploy with its ARN as -c s3commit:kmsKeyArn=…"
    )


def deletes(around: Deployment) -> Finding:
    """A store that is not AWS's deletes an object only if it has the etag that is named."""
    bucket = around.data_bucket
    if keeps_changed(around.connect("s3"), bucket, around.prefix):
        return ok(f"bucket {bucket} deletes an object only if it has the etag that is named")
    return to_do(
        f"the store of bucket {bucket} ignores the etag of a conditional delete, so a job that"
        " replaces would delete what changed after it was listed. Such jobs are refused"
        " (REPLACE_NOT_ALLOWED): append, or use another store"
    )


def prefixes(around: Deployment) -> Finding:
    """The pipeline has rights where jobs write."""
    given: list[str] = (around.parameters or {}).get("prefixes", [""])
    if not around.prefix.startswith(tuple(given)) and around.prefix:
        return to_do(
            f"the pipeline serves {', '.join(given)} alone, so a job at {around.prefix} would be"
            " refused (OUTSIDE_PREFIXES): write below one of these, or add the prefix to the"
            " deployment's parameter prefixes"
        )
    return ok(f"the pipeline serves {', '.join(filter(None, given)) or 'the whole bucket'}")


def lifecycle(around: Deployment) -> Finding:
    """A lifecycle rule aborts forgotten uploads; none aborts too early, or takes documents.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpu-abort-incomplete-mpu-lifecycle-config.html
    """
    bucket, served = around.data_bucket, served_by(around)
    found = setting(around, "bucket_lifecycle_configuration", {"Rules": []})["Rules"]
    rules = [(rule, _place(rule)) for rule in found if rule["Status"] == "Enabled"]
    if said := _taking(around, rules):
        return to_do(said)
    aborting = [
        (int(rule["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"]), place)
        for rule, place in rules
        if "AbortIncompleteMultipartUpload" in rule
    ]
    near = [
        days
        for days, place in aborting
        if any(one.startswith(place) or place.startswith(one) for one in served)
    ]
    least = min(near, default=LEAST_DAYS)
    if least < LEAST_DAYS:
        return to_do(
            f"a lifecycle rule of bucket {bucket} aborts uploads after {least} day: a job that"
            f" runs longer loses its data. Set it to {LEAST_DAYS} days or more"
        )
    here = [days for days, place in aborting if any(one.startswith(place) for one in served)]
    if not all(any(one.startswith(place) for _, place in aborting) for one in served):
        return to_do(
            f"bucket {bucket} has no lifecycle rule for all keys that aborts incomplete uploads:"
            " add one, with more days than your longest job runs, for uploads whose job left no"
            " trace (if there is one for your tables, name them with --prefix)"
        )
    return ok(f"bucket {bucket} aborts incomplete uploads after {min(here)} days")


def served_by(around: Deployment) -> list[str]:
    """The prefixes that are looked at: the one that was given, else all that are served."""
    served: list[str] = (around.parameters or {}).get("prefixes", [""])
    return [around.prefix] if around.prefix else served


def _taking(around: Deployment, rules: list[tuple[dict[str, Any], str]]) -> str | None:
    """The cure of the first rule that deletes or archives documents that jobs need; None if none.

    An archived object can be read once it is restored:
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/archived-objects.html
    """
    given, bucket = around.parameters or {}, around.data_bucket
    places = [*served_by(around), PIPELINE]
    kept = int(given.get("retentionDays", env.SWEEP_LIMITS["retentionDays"]))
    for rule, place in rules:
        if _needs_tag(rule):
            continue
        expires, name = rule.get("Expiration", {}), rule.get("ID", "without an ID")
        deletes = [("deletes", expires)] if expires.keys() & {"Days", "Date"} else []
        # Notes of keys, which are small, stay; the other documents there go with their jobs.
        takes_notes = _filter(rule).get("ObjectSizeGreaterThan", 0) < MAX_NOTE_BYTES
        if deletes and takes_notes and PIPELINE.startswith(place):
            return (
                f"lifecycle rule {name} of bucket {bucket} deletes {PIPELINE} too: a program with"
                " an old idempotency key would add its data twice. Give it the prefix of a table"
            )
        moves = [one for one in rule.get("Transitions", ()) if one["StorageClass"] in ARCHIVES]
        acts = [*deletes, *(("archives", one) for one in moves)]
        does = next((act for act, one in acts if one.get("Days", 0) <= kept), None)
        if does and any(one.startswith(place) for one in places):
            return (
                f"lifecycle rule {name} of bucket {bucket} {does} what has {kept} days or less:"
                f" also the documents of jobs there. Set more than retentionDays, {kept}"
            )
    return None


def _place(rule: dict[str, Any]) -> str:
    """The prefix that a lifecycle rule is for; one from before filters has it itself."""
    return str(_filter(rule).get("Prefix", ""))


def _needs_tag(rule: dict[str, Any]) -> bool:
    """True if a lifecycle rule is for objects with a tag alone; documents have none."""
    return not _filter(rule).keys().isdisjoint({"Tag", "Tags"})


def _filter(rule: dict[str, Any]) -> dict[str, Any]:
    return {**rule, **rule.get("Filter", {}), **rule.get("Filter", {}).get("And", {})}
