"""All that a run makes, by kind: how it is found by the run's name, and removed.

Each thing has the run's name in its own name, so that a later run finds what a killed one has left.
Nothing else is touched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError, WaiterError

Clients = Callable[[str], Any]  # a boto3 client by the name of the service
NAME: Final = re.compile(r"accept-[0-9a-f]{6}")
DELETED_AT_ONCE: Final = 1_000


@dataclass(frozen=True, slots=True)
class Kind:
    """``listed`` gives the name and the handle of each thing; ``remove`` takes its handle."""

    service: str
    listed: Callable[[Any], Iterator[tuple[str, str]]]
    remove: Callable[[Any, str], object]


def _pages(operation: str, member: str, name: str, handle: str = "") -> Any:
    """A listing by botocore's paginator."""

    def listed(client: Any) -> Iterator[tuple[str, str]]:
        for page in client.get_paginator(operation).paginate():
            for one in page.get(member, ()):
                yield (one, one) if isinstance(one, str) else (one[name], one[handle or name])

    return listed


def _rules(events: Any) -> Iterator[tuple[str, str]]:
    yield from ((one["Name"], one["Name"]) for one in events.list_rules()["Rules"])


def _buckets(s3: Any) -> Iterator[tuple[str, str]]:
    yield from ((one["Name"], one["Name"]) for one in s3.list_buckets()["Buckets"])


def _layers(functions: Any) -> Iterator[tuple[str, str]]:
    for one in functions.list_layers()["Layers"]:
        for version in functions.list_layer_versions(LayerName=one["LayerName"])["LayerVersions"]:
            yield one["LayerName"], f"{one['LayerName']}:{version['Version']}"


def _remove_rule(events: Any, name: str) -> None:
    targets = [one["Id"] for one in events.list_targets_by_rule(Rule=name)["Targets"]]
    if targets:
        events.remove_targets(Rule=name, Ids=targets)
    events.delete_rule(Name=name)


def _remove_machine(states: Any, arn: str) -> None:
    running = states.list_executions(stateMachineArn=arn, statusFilter="RUNNING")["executions"]
    for one in running:
        with suppress(ClientError):  # it has ended
            states.stop_execution(executionArn=one["executionArn"])
    states.delete_state_machine(stateMachineArn=arn)


def _remove_layer(functions: Any, handle: str) -> None:
    name, _, version = handle.rpartition(":")
    functions.delete_layer_version(LayerName=name, VersionNumber=int(version))


def _remove_table(tables: Any, name: str) -> None:
    """The ledger is protected from deletion, and its stack leaves it where it is."""
    if tables.describe_table(TableName=name)["Table"]["TableStatus"] != "DELETING":
        tables.get_waiter("table_exists").wait(TableName=name)
        tables.update_table(TableName=name, DeletionProtectionEnabled=False)
        tables.get_waiter("table_exists").wait(TableName=name)
        tables.delete_table(TableName=name)
    tables.get_waiter("table_not_exists").wait(TableName=name)


def _remove_bucket(s3: Any, name: str) -> None:
    """Abort each upload, delete each version, then the bucket."""
    for page in s3.get_paginator("list_multipart_uploads").paginate(Bucket=name):
        for one in page.get("Uploads", ()):
            s3.abort_multipart_upload(Bucket=name, Key=one["Key"], UploadId=one["UploadId"])
    # The first page again and again: a listing must not go on from what is deleted.
    while named := _versions(s3, name):
        answer = s3.delete_objects(Bucket=name, Delete={"Objects": named, "Quiet": True})
        if answer.get("Errors"):
            break  # S3 says why, when the bucket is deleted
    s3.delete_bucket(Bucket=name)


def _versions(s3: Any, bucket: str) -> list[dict[str, str]]:
    """As many versions as one request may delete."""
    page = s3.list_object_versions(Bucket=bucket, MaxKeys=DELETED_AT_ONCE)
    found = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
    return [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in found]


def _remove_role(iam: Any, name: str) -> None:
    for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]:
        iam.delete_role_policy(RoleName=name, PolicyName=policy)
    iam.delete_role(RoleName=name)


# In the order in which they are removed. The run itself makes those of `OWN`, and so do its checks;
# all others are made by CloudFormation, or by what stands in for it.
KINDS: Final = {
    "alarm": Kind(
        "cloudwatch",
        _pages("describe_alarms", "MetricAlarms", "AlarmName"),
        lambda client, handle: client.delete_alarms(AlarmNames=[handle]),
    ),
    "event source": Kind(
        "lambda",
        _pages("list_event_source_mappings", "EventSourceMappings", "FunctionArn", "UUID"),
        lambda client, handle: client.delete_event_source_mapping(UUID=handle),
    ),
    "rule": Kind("events", _rules, _remove_rule),
    "state machine": Kind(
        "stepfunctions",
        _pages("list_state_machines", "stateMachines", "name", "stateMachineArn"),
        _remove_machine,
    ),
    "function": Kind(
        "lambda",
        _pages("list_functions", "Functions", "FunctionName"),
        lambda client, handle: client.delete_function(FunctionName=handle),
    ),
    "layer": Kind("lambda", _layers, _remove_layer),
    "queue": Kind(
        "sqs",
        _pages("list_queues", "QueueUrls", ""),
        lambda client, handle: client.delete_queue(QueueUrl=handle),
    ),
    "log group": Kind(
        "logs",
        _pages("describe_log_groups", "logGroups", "logGroupName"),
        lambda client, handle: client.delete_log_group(logGroupName=handle),
    ),
    "stack": Kind(
        "cloudformation",
        _pages("describe_stacks", "Stacks", "StackName"),
        lambda client, handle: client.delete_stack(StackName=handle),
    ),
    "table": Kind("dynamodb", _pages("list_tables", "TableNames", ""), _remove_table),
    "bucket": Kind("s3", _buckets, _remove_bucket),
    "role": Kind("iam", _pages("list_roles", "Roles", "RoleName"), _remove_role),
}
OWN: Final = ("state machine", "table", "bucket", "role")


def found(clients: Clients, name: str, *kinds: str) -> list[tuple[str, str, str]]:
    """Kind, name and handle of each thing that has ``name`` in its own; of all kinds by default."""
    return [
        (kind, thing, handle)
        for kind in kinds or KINDS
        for thing, handle in KINDS[kind].listed(clients(KINDS[kind].service))
        if name in thing
    ]


def remove(clients: Clients, name: str, *kinds: str) -> list[str]:
    """Remove them; the errors, each in a line. What one leaves, another call removes."""
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a run")
    errors: list[str] = []
    for kind, thing, handle in found(clients, name, *kinds):
        try:
            KINDS[kind].remove(clients(KINDS[kind].service), handle)
        except (ClientError, WaiterError) as error:
            errors.append(f"{kind} {thing}: {error}")
    return errors
