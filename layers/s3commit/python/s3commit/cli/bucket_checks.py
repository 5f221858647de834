"""The checks by `doctor` of the data bucket, before a deployment and after it."""

import json
from fnmatch import fnmatchcase
from typing import Any

from s3commit.aws import env
from s3commit.aws.failures import NO_BUCKET
from s3commit.aws.notifications import EVENT_BRIDGE, SUFFIXES, suffix_of, without_queue
from s3commit.aws.s3_requests import keeps_changed
from s3commit.cli.deployment import Deployment, Finding, ok, to_do
from s3commit.core.model.errors import AccessError, NotFoundError

LEAST_DAYS = 2  # that an upload may wait, as of the deployment's parameter abortIncompleteDays
KINDS = ("Queue", "Topic", "LambdaFunction")  # of notifications, as S3 names their settings
DENIED = ("s3:putobject", "s3:getobject")
# Conditions of a Deny that no request of the pipeline meets: it uses TLS, of a current version.
HARMLESS = {"aws:securetransport", "s3:tlsversion"}
# And with the parameter encryption its puts have these headers.
HEADERS = {"s3:x-amz-server-side-encryption", "s3:x-amz-server-side-encryption-aws-kms-key-id"}


def notifications(around: Deployment) -> Finding:
    """The bucket announces jobs, requests and manifests; before a deployment, it could."""
    bucket = around.data_bucket
    lacking = without_queue(around.notifications)
    if not lacking:
        return ok(f"bucket {bucket} notifies of jobs, requests and manifests")
    try:
        parameters = around.parameters
    except AccessError:  # as on a cluster: what can be seen there is what its writers see
        parameters = {"events": "eventbridge"}
    if parameters is None:
        return _importable(around)
    if parameters.get("events") != "eventbridge":
        lacks = f"for keys that end in {' and '.join(lacking)}"
    elif EVENT_BRIDGE not in around.notifications:
        lacks = "and sends no events to EventBridge"
    else:
        return ok(f"bucket {bucket} sends its events to EventBridge")
    return to_do(
        f"bucket {bucket} sends no event notifications {lacks}: deploy again with this bucket;"
        " until then its jobs are not committed"
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
    if overlapping:
        return to_do(
            f"bucket {bucket} has notifications to {', '.join(overlapping)} that overlap with"
            " ours, so S3 would refuse ours: deploy with -c s3commit:events=eventbridge"
        )
    return ok(f"bucket {bucket} can be imported: deploy with -c s3commit:importBucket={bucket}")


def _set(around: Deployment, what: str, unset: dict[str, Any]) -> Any:
    """A setting of the data bucket; ``unset`` where nothing is. Raises if there is no bucket."""
    bucket = around.data_bucket
    doing = f"reading the {what.replace('_', ' ')} of bucket {bucket}"
    try:
        return around.ask(doing, "s3", f"get_bucket_{what}", Bucket=bucket)
    except NotFoundError as error:
        if error.code == NO_BUCKET:
            raise
        return unset


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
    """A lifecycle rule aborts forgotten uploads, and none does so too early.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpu-abort-incomplete-mpu-lifecycle-config.html
    """
    bucket = around.data_bucket
    rules = _set(around, "lifecycle_configuration", {"Rules": []})["Rules"]
    aborting = [
        (int(rule["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"]), _place(rule))
        for rule in rules
        if rule["Status"] == "Enabled" and "AbortIncompleteMultipartUpload" in rule
    ]
    least = min((days for days, _ in aborting), default=LEAST_DAYS)
    if least < LEAST_DAYS:
        return to_do(
            f"a lifecycle rule of bucket {bucket} aborts uploads after {least} day: a job that"
            f" runs longer loses its data. Set it to {LEAST_DAYS} days or more"
        )
    here = [days for days, place in aborting if around.prefix.startswith(place)]
    if not here:
        return to_do(
            f"bucket {bucket} has no lifecycle rule for all keys that aborts incomplete uploads:"
            " add one, with more days than your longest job runs, for uploads whose job left no"
            " trace (if there is one for your tables, name them with --prefix)"
        )
    return ok(f"bucket {bucket} aborts incomplete uploads after {min(here)} days")


def _place(rule: dict[str, Any]) -> str:
    """The prefix that a lifecycle rule is for; one from before filters has it itself."""
    both = {**rule, **rule.get("Filter", {}), **rule.get("Filter", {}).get("And", {})}
    return str(both.get("Prefix", ""))


def policy(around: Deployment) -> Finding:
    """The bucket's policy has no Deny on objects that may be meant for the pipeline too.

    Policies of the organization are not looked at: the account can't read them.
    """
    bucket, none = around.data_bucket, {"Policy": '{"Statement": []}'}
    text = _set(around, "policy", none)["Policy"]
    denying = [
        f"{statement.get('Sid', 'one without a Sid')} ({', '.join(keys) or 'no condition'})"
        for statement in _many(json.loads(text)["Statement"])
        if (keys := _unknown(around, statement)) is not None
    ]
    if denying:
        return to_do(
            f"the policy of bucket {bucket} denies to put or get objects by {'; '.join(denying)}:"
            f" check that it allows them to the roles below {_role(around, '')}; see"
            ' "Policies of companies" in docs/deploy.md'
        )
    return ok(f"the policy of bucket {bucket} denies the pipeline no object")


def _unknown(around: Deployment, statement: dict[str, Any]) -> list[str] | None:
    """The conditions of a Deny that may apply to the pipeline; None if it does not."""
    principal = statement.get("Principal", "*")
    everyone = "*" in _many(principal.get("AWS", []) if isinstance(principal, dict) else principal)
    actions = [str(action).lower() for action in _many(statement.get("Action", "*"))]
    touched = any(fnmatchcase(denied, action) for denied in DENIED for action in actions)
    if statement["Effect"] != "Deny" or not (everyone and touched):
        return None
    keys: set[str] = set()
    for operator, condition in statement.get("Condition", {}).items():
        for key, values in condition.items():
            role = _role(around, "x")
            exempt = any(fnmatchcase(role, str(value)) for value in _many(values))
            if key.lower() == "aws:principalarn" and "Not" in operator and exempt:
                return None
            keys.add(key)
    known = HARMLESS | (HEADERS if (around.parameters or {}).get("encryption") else set())
    if keys and {key.lower() for key in keys} <= known:
        return None
    return sorted(keys)


def _role(around: Deployment, name: str) -> str:
    """The ARN of a role of the deployment."""
    partition = around.identity["Arn"].split(":")[1]
    path = around.stack(env.PIPELINE_STACK)
    return f"arn:{partition}:iam::{around.identity['Account']}:role/{path}/{name}"


def _many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
