"""Each role may do what this table says, and nothing else."""

from collections import defaultdict
from fnmatch import fnmatchcase
from typing import Any

import pytest

from s3commit.aws import env
from s3commit.core.calls.routes import STEPS
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.destination import Destination
from stacks.access import ACCESS, DATA, REQUEST, RESULT, protected, protection
from stacks.definition import MAP_FUNCTION
from stacks.functions import FUNCTIONS
from tests.stacks.synthesized import (
    JOB_KEYS,
    KEY_ARN,
    Assembly,
    functions,
    properties,
    shown_policies,
    state_machine,
)

# What is granted where a queue or the state machine is connected; the rest is in `ACCESS`.
TELLS = {"glue:GetTable", "glue:BatchCreatePartition"}
DROPS = {"glue:GetPartitions", "glue:BatchDeletePartition"}
RECEIVES = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}
CONNECTED = {
    "ingest": {"IngestQueue": RECEIVES, "CommitJobMachine": {"states:StartExecution"}},
    "dispatch": {"RequestQueue": RECEIVES, "CommitJobMachine": {"states:StartExecution"}},
    "decide": {"execution:*": {"states:DescribeExecution"}},
    "catalog": {
        "CatalogsQueue": RECEIVES,
        "bucket/sales/*_commits/*": {"s3:GetObject"},
        "bucket/orders/eu/*_commits/*": {"s3:GetObject"},
        "catalog": {*TELLS, *DROPS},
        **{key: {*TELLS, *DROPS} for key in ("database/analytics", "table/analytics/sales")},
        **{key: {*TELLS} for key in ("database/other", "table/other/orders")},
    },
    "sweep": {
        **{f"{inbox}Queue": {"sqs:GetQueueUrl"} for inbox in env.PAUSED},
        "CommitJobMachine": {"states:StartExecution"},
        "execution:*": {"states:DescribeExecution"},
    },
}
EVERY_FUNCTION = {
    "*": {"xray:PutTraceSegments", "xray:PutTelemetryRecords"},
    "Logs": {"logs:CreateLogStream", "logs:PutLogEvents"},
}
LOGGED_AND_TRACED = {
    "*": {
        "xray:PutTraceSegments",
        "xray:PutTelemetryRecords",
        "xray:GetSamplingRules",
        "xray:GetSamplingTargets",
        "logs:CreateLogDelivery",
        "logs:GetLogDelivery",
        "logs:UpdateLogDelivery",
        "logs:DeleteLogDelivery",
        "logs:ListLogDeliveries",
        "logs:PutResourcePolicy",
        "logs:DescribeResourcePolicies",
        "logs:DescribeLogGroups",
    }
}
STATE_MACHINE = {
    **{name: {"lambda:InvokeFunction"} for name in {*STEPS.values(), MAP_FUNCTION}},
    "bucket/_s3commit/*/_index-*.json": {"s3:GetObject"},
    "event-bus/default": {"events:PutEvents"},
    "CommitJobMachine": {"states:StartExecution"},
    "execution:*": {"states:DescribeExecution", "states:StopExecution"},
    "execution/*": {"states:DescribeExecution", "states:StopExecution"},
    **LOGGED_AND_TRACED,
}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_may_do_its_own_work_and_nothing_else(telling: Assembly, name: str) -> None:
    """That it needs all of `ACCESS`, and no more, is the matter of test_rights_in_use.py."""
    access = ACCESS[name]
    granted = {
        "bucket": {f"s3:{action}" for action in access.bucket},
        "table": {f"dynamodb:{action}" for action in access.ledger},
        "table/index/by-state": {f"dynamodb:{action}" for action in access.index},
        **{f"bucket/{key}": {f"s3:{one}" for one in acts} for key, acts in access.objects.items()},
        **CONNECTED.get(name, {}),
        **EVERY_FUNCTION,
    }
    found = _rights(telling.pipeline, functions(telling.pipeline)[name].role)
    assert found == {resource: actions for resource, actions in granted.items() if actions}


def test_the_sweep_may_look_at_the_rules_by_which_the_deployment_listens(bridged: Assembly) -> None:
    rights = _rights(bridged.pipeline, functions(bridged.pipeline)["sweep"].role)
    seen = {resource for resource, actions in rights.items() if actions == {"events:DescribeRule"}}
    rules = properties(bridged.storage, "AWS::Events::Rule")
    assert seen == {f"rule/{rule['Name']}" for rule in rules}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_i12_a_function_is_denied_the_names_that_it_never_writes(
    telling: Assembly, name: str
) -> None:
    """Which these are is the matter of test_rights_in_use.py."""
    denied: dict[str, set[str]] = defaultdict(set)
    for action, patterns in ACCESS[name].denied.items():
        for pattern in patterns:
            denied[f"bucket/{pattern}"].add(f"s3:{action}")
    role = functions(telling.pipeline)[name].role
    assert _rights(telling.pipeline, role, "Deny") == denied


def test_the_state_machine_invokes_its_steps_and_reads_plans(assembly: Assembly) -> None:
    role = state_machine(assembly)["RoleArn"]["Fn::GetAtt"][0]
    assert _rights(assembly.pipeline, role) == STATE_MACHINE


def test_the_keys_are_used_by_who_needs_them(encrypted: Assembly, imported: Assembly) -> None:
    reads, writes = {"kms:Decrypt"}, {"kms:Decrypt", "kms:GenerateDataKey"}
    using = dict.fromkeys(("decide", "complete", "end", "sweep"), writes)
    assert _users(encrypted, KEY_ARN) == {**using, "ingest": reads}
    for key in JOB_KEYS:
        using = _users(imported, key)
        assert using.pop("complete") == {"kms:Decrypt", "kms:GenerateDataKey"}
        assert using == {name: {"kms:Decrypt"} for name in ("ingest", "decide", "end", "sweep")}


def _users(assembly: Assembly, key: str) -> dict[str, set[str]]:
    template = assembly.pipeline
    rights = {name: _rights(template, one.role) for name, one in functions(template).items()}
    return {name: found[key] for name, found in rights.items() if key in found}


JOB_ID = "0b6f6f0e-0000-4000-8000-000000000001"
DIRECTORY = JobDirectory(Destination("lake", "tenants/a/sales/"), JOB_ID)
SHA256 = "5" * 64
OF_THE_PIPELINE = [
    *(DIRECTORY.result, DIRECTORY.index(SHA256), DIRECTORY.page(SHA256)),
    *(DIRECTORY.commits, DIRECTORY.once(SHA256), DIRECTORY.decision),
]
OF_CLIENTS = [
    DIRECTORY.job,
    DIRECTORY.request,
    DIRECTORY.manifest("t0", "a0"),
    f"{DIRECTORY.destination.prefix}dt=1/part-0-{JOB_ID}.parquet",
    f"{DIRECTORY.destination.prefix}_temporary/0/part-0.parquet",
    f"{DIRECTORY.destination.prefix}_result.json",
]


def test_i1_one_role_completes_uploads_and_it_may_delete_nothing() -> None:
    """And who decides may neither complete nor delete."""
    completing = [
        name for name, access in ACCESS.items() if "PutObject" in access.objects.get(DATA, ())
    ]
    assert completing == ["complete"]
    for name in ("complete", "decide"):
        done = {action for actions in ACCESS[name].objects.values() for action in actions}
        assert not {action for action in done if "Delete" in action or "Abort" in action}


@pytest.mark.parametrize("names", ["documents", "all"])
def test_i12_what_the_pipeline_alone_writes_is_protected_and_nothing_else(names: str) -> None:
    held = {
        key
        for key in [*OF_THE_PIPELINE, *OF_CLIENTS, DIRECTORY.success]
        if any(fnmatchcase(key, pattern) for pattern in protected(names))
    }
    # Jobs of Spark's own committers put their marker themselves.
    assert held == {*OF_THE_PIPELINE, *([DIRECTORY.success] if names == "all" else [])}


def test_i12_no_role_writes_an_object_of_the_pipelines_that_is_not_protected() -> None:
    written = {
        pattern
        for access in ACCESS.values()
        for pattern, actions in access.objects.items()
        if "PutObject" in actions
    }
    covered = {one for one in written for wider in protected("all") if fnmatchcase(one, wider)}
    # Data and requests are written by clients as well; the notes of keys lie among the lists.
    assert written - covered == {DATA, REQUEST}


def test_the_guide_shows_the_protection_as_it_is() -> None:
    policy, others = shown_policies()
    roles = "arn:aws:iam::111122223333:role/S3CommitPipeline/*"
    denied = [one for one in policy["Statement"] if one["Effect"] == "Deny"]
    assert protection("arn:aws:s3:::BUCKET", "all", [roles]) == [one | others for one in denied]


def test_i12_below_prefixes_alone_the_protection_leaves_the_names_elsewhere_to_others() -> None:
    others, results = protection("lake", "all", [], ["tenants/a/", "b/"])
    held = [
        f"{place}{name}" for place in ("tenants/a/", "b/c/") for name in ("_SUCCESS", "_commits/x")
    ]
    for key in [*held, "_s3commit/x", "b/_SUCCESS"]:
        assert any(fnmatchcase(f"lake/{key}", one) for one in others["Resource"])
    for key in ("tenants/b/_SUCCESS", "tenants/a-2/_commits/x", "x/b/_SUCCESS", "b/part-0"):
        assert not any(fnmatchcase(f"lake/{key}", one) for one in others["Resource"])
    assert results["Resource"] == f"lake/{RESULT}"  # the pipeline puts it wherever a job is refused


def test_i12_a_writer_is_denied_what_the_pipeline_writes_and_deletes_documents_alone() -> None:
    allowed: dict[str, set[str]] = defaultdict(set)
    denied: dict[str, set[str]] = defaultdict(set)
    policy, _ = shown_policies()
    for statement in policy["Statement"]:
        for resource in _many(statement["Resource"]):
            found = allowed if statement["Effect"] == "Allow" else denied
            found[resource.removeprefix("arn:aws:s3:::")] |= set(_many(statement["Action"]))
    assert dict(allowed) == {
        "BUCKET/PREFIX/*": {
            *("s3:PutObject", "s3:GetObject"),
            *("s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"),
        },
        "BUCKET/PREFIX/*__magic_job-*": {"s3:DeleteObject"},
        "BUCKET": {"s3:ListBucket", "s3:GetBucketNotification"},
    }
    changing = {"s3:PutObject", "s3:AbortMultipartUpload", "s3:DeleteObjectVersion"}
    assert dict(denied) == {
        f"BUCKET/{name}": changing | (set() if name == RESULT else {"s3:DeleteObject"})
        for name in protected("all")
    }


def _rights(template: dict[str, Any], role: str, effect: str = "Allow") -> dict[str, set[str]]:
    """Actions by resource, the resources by short names."""
    rights: dict[str, set[str]] = defaultdict(set)
    policies = properties(template, "AWS::IAM::Policy")
    of_role = [policy for policy in policies if {"Ref": role} in policy["Roles"]]
    for statement in (one for policy in of_role for one in policy["PolicyDocument"]["Statement"]):
        if statement["Effect"] != effect:
            continue
        assert effect == "Allow" or "Condition" not in statement
        for resource in _many(statement["Resource"]):
            rights[_short(template, resource)] |= set(_many(statement["Action"]))
    return dict(rights)


def _many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _short(template: dict[str, Any], resource: Any) -> str:
    by_logical_id = {one.logical_id: name for name, one in functions(template).items()}
    match resource:
        case str():
            return resource
        case {"Fn::Join": ["", [{"Fn::ImportValue": _} as bucket, str(keys)]]}:
            return _short(template, bucket) + keys
        case {"Fn::Join": ["", [*_, str(tail)]]}:
            return "execution" + tail if tail in {":*", "/*"} else tail.lstrip(":")
        case {"Fn::ImportValue": str(export)}:
            if export.startswith(env.BUCKET_EXPORT):
                return "bucket"
            names = {"Ledger": "table", "Ingest": "IngestQueue", "Request": "RequestQueue"}
            return next(short for part, short in names.items() if f"Att{part}" in export)
        case {"Fn::GetAtt": [str(logical_id), "Arn"]} | {"Ref": str(logical_id)}:
            if logical_id in by_logical_id:
                return by_logical_id[logical_id]
            parts = ("Logs", "CommitJobMachine", "CatalogsQueue")
            return next(part for part in parts if part in logical_id)
    raise AssertionError(resource)
