"""All that a run makes, by kind: how it is found by the run's name, and removed.

Each thing has the run's name in its own name, so that a later run finds what a killed one has left.
Nothing else is touched.
"""

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
    """Things that botocore's paginator of ``listing`` finds, as names or as objects.

    An object has its name in ``name``, and what ``remove`` takes in ``handle``, if not the name.
    """

    service: str
    listing: str
    name: str
    remove: Callable[[Any, str], object]
    handle: str = ""

    def listed(self, client: Any) -> Iterator[tuple[str, str]]:
        """The name and the handle of each thing."""
        pages = client.get_paginator(self.listing).paginate()
        for one in filter(None, pages.search(f"{pages.result_keys[0].expression}[]")):
            is_name = isinstance(one, str)
            yield (one, one) if is_name else (one[self.name], one[self.handle or self.name])


def _by(operation: str, parameter: str) -> Callable[[Any, str], object]:
    """A removal by one call that takes the handle."""
    return lambda client, handle: getattr(client, operation)(**{parameter: handle})


def _remove_alarm(alarms: Any, name: str) -> None:
    alarms.delete_alarms(AlarmNames=[name])


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


def _remove_layer(functions: Any, name: str) -> None:
    for one in functions.list_layer_versions(LayerName=name)["LayerVersions"]:
        functions.delete_layer_version(LayerName=name, VersionNumber=one["Version"])


def _remove_table(tables: Any, name: str) -> None:
    """The ledger is protected from deletion, and its stack leaves it where it is."""
    table = tables.describe_table(TableName=name)["Table"]
    if table["TableStatus"] != "DELETING":
        tables.get_waiter("table_exists").wait(TableName=name)
        if table.get("DeletionProtectionEnabled"):
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
    "alarm": Kind("cloudwatch", "describe_alarms", "AlarmName", _remove_alarm),
    "event source": Kind(
        "lambda",
        "list_event_source_mappings",
        "FunctionArn",
        _by("delete_event_source_mapping", "UUID"),
        "UUID",
    ),
    "rule": Kind("events", "list_rules", "Name", _remove_rule),
    "state machine": Kind(
        "stepfunctions", "list_state_machines", "name", _remove_machine, "stateMachineArn"
    ),
    "function": Kind(
        "lambda", "list_functions", "FunctionName", _by("delete_function", "FunctionName")
    ),
    "layer": Kind("lambda", "list_layers", "LayerName", _remove_layer),
    "queue": Kind("sqs", "list_queues", "", _by("delete_queue", "QueueUrl")),
    "log group": Kind(
        "logs", "describe_log_groups", "logGroupName", _by("delete_log_group", "logGroupName")
    ),
    "stack": Kind(
        "cloudformation", "describe_stacks", "StackName", _by("delete_stack", "StackName")
    ),
    "table": Kind("dynamodb", "list_tables", "", _remove_table),
    "bucket": Kind("s3", "list_buckets", "Name", _remove_bucket),
    "role": Kind("iam", "list_roles", "RoleName", _remove_role),
}
OWN: Final = ("state machine", "function", "table", "bucket", "role")


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
