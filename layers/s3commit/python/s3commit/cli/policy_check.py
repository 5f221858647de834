"""The check by `doctor` of the data bucket's policy: a Deny that meets the pipeline's requests."""

import json
import re
from fnmatch import fnmatchcase
from typing import Any

from s3commit.aws import env
from s3commit.cli.bucket_checks import served_by, setting
from s3commit.cli.deployment import Deployment, Finding, ok, to_do
from s3commit.core.formats.layout import PIPELINE

IMPORT = "s3:putbucketnotification"  # a deployment with importBucket alone needs it
# The rights of the functions (`stacks.access`), and of a deployment's own handler.
NEEDED = (
    *("s3:putobject", "s3:getobject", "s3:deleteobject", "s3:abortmultipartupload"),
    *("s3:listbucket", "s3:listbucketmultipartuploads", "s3:listmultipartuploadparts"),
    *("s3:getbucketnotification", IMPORT),
)
HEADER = "s3:x-amz-server-side-encryption"  # of its puts, with the parameter encryption


def policy(around: Deployment) -> Finding:
    """The bucket's policy does not have a Deny that may be meant for the pipeline too.

    Policies of the organization are not looked at: the account can't read them.
    """
    bucket, none = around.data_bucket, {"Policy": '{"Statement": []}'}
    text = setting(around, "bucket_policy", none)["Policy"]
    denying = [
        f"{statement.get('Sid', 'one without a Sid')} ({', '.join(keys) or 'no condition'})"
        for statement in _many(json.loads(text)["Statement"])
        if (keys := _unknown(around, statement)) is not None
    ]
    if denying:
        return to_do(
            f"the policy of bucket {bucket} denies requests that jobs need by {'; '.join(denying)}:"
            f" check that it allows them to the roles below {_role(around, '')}; see"
            ' "Policies of companies" in docs/deploy.md'
        )
    return ok(f"the policy of bucket {bucket} denies the pipeline nothing")


def _unknown(around: Deployment, statement: dict[str, Any]) -> list[str] | None:
    """The conditions of a Deny that may apply to the pipeline; None if it does not."""
    principal = statement.get("Principal", "*")
    named = _many(principal.get("AWS", []) if isinstance(principal, dict) else principal)
    account = around.identity["Account"]
    everyone = {"*", account, f"arn:{around.partition}:iam::{account}:root"}
    meant = any(one in everyone or one.startswith(_role(around, "")) for one in named)
    conditions = [
        (operator, key, [json.dumps(value).strip('"') for value in _many(values)])
        for operator, keys in statement.get("Condition", {}).items()
        for key, values in keys.items()
    ]
    denied = statement["Effect"] == "Deny" and meant
    if denied and any(
        _named(statement, action)
        and (action != IMPORT or around.parameters is None)
        and _reaches(around, statement, action)
        and all(_may_hold(_facts(around, action), *one) for one in conditions)
        for action in NEEDED
    ):
        return sorted({key for _, key, _ in conditions})
    return None


def _named(statement: dict[str, Any], action: str) -> bool:
    """True if the statement is for the action."""
    patterns = _many(statement.get("Action", statement.get("NotAction", "*")))
    is_named = any(fnmatchcase(action, str(pattern).lower()) for pattern in patterns)
    return is_named is ("NotAction" not in statement)


def _reaches(around: Deployment, statement: dict[str, Any], action: str) -> bool:
    """False if the statement is for resources with which the pipeline does not need the action."""
    bucket = f"arn:{around.partition}:s3:::{around.data_bucket}"
    patterns = _many(statement.get("Resource", statement.get("NotResource", "*")))
    if "bucket" in action:
        is_named = any(fnmatchcase(bucket, one) for one in patterns)
        return is_named is ("NotResource" not in statement)
    places = [f"{bucket}/{place}" for place in (*served_by(around), PIPELINE)]
    if "NotResource" in statement:
        return not all(any(fnmatchcase(f"{place}*", one) for one in patterns) for place in places)
    return any(_overlaps(one, place) for one in patterns for place in places)


def _overlaps(pattern: str, place: str) -> bool:
    """True if the pattern may match what begins with ``place``, by its own beginning."""
    head, *more = re.split(r"[*?$]", pattern, maxsplit=1)  # $ begins a variable
    return head.startswith(place) or (more != [] and place.startswith(head))


def _facts(around: Deployment, action: str) -> dict[str, str | None]:
    """The values of conditions' keys in the pipeline's requests; None: the request has none."""
    given = around.parameters or {}
    with_header = action == "s3:putobject" and given.get("encryption")
    return {
        "aws:securetransport": "true",
        "s3:tlsversion": "a current one",
        "aws:principalarn": _role(around, "x"),
        HEADER: given["encryption"] if with_header else None,
        f"{HEADER}-aws-kms-key-id": given.get("kmsKeyArn") if with_header == "aws:kms" else None,
    }


def _may_hold(facts: dict[str, str | None], operator: str, key: str, values: list[str]) -> bool:
    """False if the condition is known not to hold for the pipeline.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-single-vs-multi-valued-context-keys.html
    """
    if key.lower() not in facts:
        return True
    fact = facts[key.lower()]
    if "Null" in operator:
        return (fact is None) == ("true" in values)
    if fact is None:
        return any(one in operator for one in ("Not", "IfExists", "ForAllValues"))
    if "IgnoreCase" in operator:
        fact, values = fact.lower(), [value.lower() for value in values]
    with_wildcards = "Like" in operator or "Arn" in operator
    found = fnmatchcase if with_wildcards else str.__eq__
    return any(found(fact, value) for value in values) is ("Not" not in operator)


def _role(around: Deployment, name: str) -> str:
    """The ARN of a role of the deployment."""
    path = around.stack(env.PIPELINE_STACK)
    return f"arn:{around.partition}:iam::{around.identity['Account']}:role/{path}/{name}"


def _many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
