"""Creates the resources of an assembly, in the order of what they refer to.

Not CloudFormation: there is no update, no rollback and no drift. What is not known is refused
before anything is created.
"""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from s3commit.local.assembly import Assembly, Stack
from s3commit.local.errors import LocalRuntimeError, UnsupportedTemplateError
from s3commit.local.intrinsics import Created, Resolver, references
from s3commit.local.resources import TYPES, Context, Place

_SECTIONS = frozenset(
    {"Description", "Resources", "Outputs"}
    | {"Parameters", "Rules"}  # they ask for the CDK's bootstrap stack, which is not needed here
)
_ATTRIBUTES = frozenset(
    {"Type", "Properties", "DependsOn"}
    | {"DeletionPolicy", "UpdateReplacePolicy"}  # nothing is deleted or replaced here
)
DATA_BUCKET_OUTPUT = "BucketName"


def check(assembly: Assembly) -> None:
    """Raise `UnsupportedTemplateError` that names each resource the loader can not create."""
    problems = [problem for stack in assembly.stacks for problem in _problems(stack)]
    if problems:
        raise UnsupportedTemplateError(
            "the template uses what the embedded runtime does not know: " + "; ".join(problems)
        )


def _problems(stack: Stack) -> Iterable[str]:
    yield from (f"{stack.name}: the section {name}" for name in set(stack.template) - _SECTIONS)
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
            except KeyError as error:
                yield f"{where}: no {error} is given"


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


def load(assembly: Assembly, context: Context) -> dict[str, str]:
    """Publish the assets, create every resource, and return all stacks' outputs by name.

    Raises `UnsupportedTemplateError` (before anything is made) and `LocalRuntimeError` that names
    the resource which could not be made.
    """
    check(assembly)
    outputs: dict[str, str] = {}
    exports: dict[str, str] = {}
    for stack in assembly.stacks:
        resolver = Resolver(stack.name, context.account, context.region, stack.template, exports)
        _publish(stack, resolver, context)
        for logical_id in _order(stack):
            place = Place(stack.name, logical_id)
            resource = stack.resources[logical_id]
            resolver.created[logical_id] = _create(context, resolver, place, resource)
        for name, output in stack.outputs.items():
            outputs[name] = str(resolver.resolve(output["Value"]))
            if "Export" in output:
                exports[output["Export"]["Name"]] = outputs[name]
    return outputs


def _publish(stack: Stack, resolver: Resolver, context: Context) -> None:
    s3 = context.client("s3")
    for asset in stack.assets:
        bucket = resolver.substitute(asset.bucket)
        try:
            s3.head_bucket(Bucket=bucket)
        except ClientError:
            s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket=bucket, Key=asset.key, Body=asset.read())


def _order(stack: Stack) -> list[str]:
    graph: dict[str, set[str]] = {}
    for logical_id, resource in stack.resources.items():
        depends = resource.get("DependsOn", [])
        names = {depends} if isinstance(depends, str) else set(depends)
        names |= set(references(resource.get("Properties", {})))
        graph[logical_id] = names & set(stack.resources)
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise LocalRuntimeError(f"{stack.name}: resources in a circle: {error.args[1]}") from error


def _create(context: Context, resolver: Resolver, place: Place, resource: Any) -> Created:
    kind = TYPES[resource["Type"]]
    given = resource.get("Properties", {})
    properties = resolver.resolve({name: given[name] for name in given if name in kind.applies})
    try:
        return kind.create(context, place, properties)
    except (ClientError, BotoCoreError, KeyError) as error:
        why = f"no {error} is given" if isinstance(error, KeyError) else error
        raise LocalRuntimeError(
            f"{place.stack}/{place.logical_id} ({resource['Type']}) could not be made: {why}"
        ) from error
