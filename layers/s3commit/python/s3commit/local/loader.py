"""Creates the resources of an assembly, in the order of what they refer to.

Not CloudFormation: there is no update, no rollback and no drift. What is not known is refused
before anything is created.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from s3commit.local.assembly import Assembly, Stack
from s3commit.local.errors import LocalRuntimeError, UnsupportedTemplateError
from s3commit.local.intrinsics import Created, Resolver, references
from s3commit.local.resources import TYPES, Context, Place

_ATTRIBUTES = frozenset(
    {"Type", "Properties", "DependsOn", "Condition", "Metadata"}
    | {"DeletionPolicy", "UpdateReplacePolicy"}  # nothing is deleted or replaced here
)
DATA_BUCKET_OUTPUT = "BucketName"


@dataclass(slots=True)
class Loaded:
    """What came of it: output name → value over all stacks, and the resources by place."""

    outputs: dict[str, str] = field(default_factory=dict)
    resources: dict[Place, Created] = field(default_factory=dict)


def check(assembly: Assembly) -> None:
    """Raise `UnsupportedTemplateError` that names each resource the loader can not create."""
    problems = [problem for stack in assembly.stacks for problem in _problems(stack)]
    if problems:
        raise UnsupportedTemplateError(
            "the template uses what the embedded runtime does not know: " + "; ".join(problems)
        )


def _problems(stack: Stack) -> Iterable[str]:
    for logical_id, resource in stack.resources.items():
        kind = resource["Type"]
        where = f"{stack.name}/{logical_id} ({kind})"
        if kind not in TYPES:
            yield f"{where}: the type"
            continue
        properties = resource.get("Properties", {})
        yield from (f"{where}: the property {name}" for name in TYPES[kind].refused(properties))
        yield from (f"{where}: the attribute {name}" for name in set(resource) - _ATTRIBUTES)
        look = TYPES[kind].check
        if look:
            try:
                look(properties)
            except UnsupportedTemplateError as error:
                yield f"{where}: {error.message}"


def data_bucket(assembly: Assembly) -> Place:
    """The bucket resource that the output ``BucketName`` names. Raises `LocalRuntimeError`."""
    for stack in assembly.stacks:
        value: Any = stack.outputs.get(DATA_BUCKET_OUTPUT, {}).get("Value")
        if isinstance(value, dict) and stack.resources.get(str(value.get("Ref")), {}).get(
            "Type"
        ) == ("AWS::S3::Bucket"):
            return Place(stack.name, value["Ref"])
    raise LocalRuntimeError(
        f"no stack has an output {DATA_BUCKET_OUTPUT} of a bucket that it creates: "
        "the bucket can't be renamed"
    )


def load(assembly: Assembly, context: Context) -> Loaded:
    """Publish the assets and create every resource.

    Raises `UnsupportedTemplateError` (before anything is made) and `LocalRuntimeError` that names
    the resource which could not be made.
    """
    check(assembly)
    loaded = Loaded()
    exports: dict[str, str] = {}
    for stack in assembly.stacks:
        resolver = Resolver(stack.name, context.account, context.region, stack.template, exports)
        _publish(stack, resolver, context)
        for logical_id in _order(stack, resolver):
            place = Place(stack.name, logical_id)
            created = _create(context, resolver, place, stack.resources[logical_id])
            resolver.created[logical_id] = loaded.resources[place] = created
        for name, output in stack.outputs.items():
            if "Condition" in output and not resolver.condition(output["Condition"]):
                continue
            value = str(resolver.resolve(output["Value"]))
            loaded.outputs[name] = value
            if "Export" in output:
                exports[str(resolver.resolve(output["Export"]["Name"]))] = value
    return loaded


def _publish(stack: Stack, resolver: Resolver, context: Context) -> None:
    s3 = context.client("s3")
    for asset in stack.assets:
        bucket = resolver.resolve({"Fn::Sub": asset.bucket})
        try:
            s3.head_bucket(Bucket=bucket)
        except ClientError:
            s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket=bucket, Key=asset.key, Body=asset.read())


def _order(stack: Stack, resolver: Resolver) -> list[str]:
    wanted = {
        logical_id: resource
        for logical_id, resource in stack.resources.items()
        if "Condition" not in resource or resolver.condition(resource["Condition"])
    }
    graph: dict[str, set[str]] = {}
    for logical_id, resource in wanted.items():
        depends = resource.get("DependsOn", [])
        names = {depends} if isinstance(depends, str) else set(depends)
        names |= set(references(resource.get("Properties", {})))
        graph[logical_id] = names & set(wanted)
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise LocalRuntimeError(f"{stack.name}: resources in a circle: {error.args[1]}") from error


def _create(context: Context, resolver: Resolver, place: Place, resource: Any) -> Created:
    properties = resolver.resolve(resource.get("Properties", {}))
    try:
        return TYPES[resource["Type"]].create(context, place, properties)
    except (ClientError, BotoCoreError, KeyError) as error:
        raise LocalRuntimeError(
            f"{place.stack}/{place.logical_id} ({resource['Type']}) could not be made: {error}"
        ) from error
