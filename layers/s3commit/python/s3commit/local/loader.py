"""Creates the resources of an assembly, in the order of what they refer to.

Not CloudFormation: there is no update, no rollback and no drift. What is not known is refused
before anything is created; so is an intrinsic function that our templates do not use, or use in
another form: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from s3commit.local import LocalRuntimeError, UnsupportedTemplateError
from s3commit.local.assembly import Stack
from s3commit.local.resources import Context, Created, Place, ResourceType, compute, data

# The resource types that are known, by CloudFormation name.
TYPES: dict[str, ResourceType] = {**data.TYPES, **compute.TYPES}
_SECTIONS = frozenset(
    {"Description", "Resources", "Outputs"}
    | {"Parameters", "Rules"}  # they ask for the CDK's bootstrap stack, which is not needed here
)
_ATTRIBUTES = frozenset(
    {"Type", "Properties", "DependsOn"}
    | {"DeletionPolicy", "UpdateReplacePolicy"}  # nothing is deleted or replaced here
)
DATA_BUCKET_OUTPUT = "BucketName"


def check(assembly: tuple[Stack, ...]) -> None:
    """Raise `UnsupportedTemplateError` that names each resource the loader can not create."""
    problems = [problem for stack in assembly for problem in _problems(stack)]
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


def data_bucket(assembly: tuple[Stack, ...]) -> Place:
    """The bucket resource that the output ``BucketName`` names. Raises `LocalRuntimeError`."""
    for stack in assembly:
        match stack.outputs.get(DATA_BUCKET_OUTPUT):
            case {"Value": {"Ref": str(name)}} if (
                stack.resources.get(name, {}).get("Type") == "AWS::S3::Bucket"
            ):
                return Place(stack.name, name)
    raise LocalRuntimeError(
        f"no stack has an output {DATA_BUCKET_OUTPUT} of a bucket that it creates: "
        "the bucket can't be renamed"
    )


def load(assembly: tuple[Stack, ...], context: Context) -> dict[str, str]:
    """Publish the assets, create every resource, and return all stacks' outputs by name.

    Raises `UnsupportedTemplateError` (before anything is made) and `LocalRuntimeError` that names
    the resource which could not be made.
    """
    check(assembly)
    outputs: dict[str, str] = {}
    exports: dict[str, str] = {}
    for stack in assembly:
        resolver = Resolver(stack, context, exports)
        _publish(stack, resolver, context)
        for logical_id in _order(stack):
            resolver.created[logical_id] = _create(resolver, logical_id)
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


def _create(resolver: Resolver, logical_id: str) -> Created:
    place = Place(resolver.stack.name, logical_id)
    resource = resolver.stack.resources[logical_id]
    kind, given = TYPES[resource["Type"]], resource.get("Properties", {})
    properties = resolver.resolve({name: given[name] for name in given if name in kind.applies})
    try:
        return kind.create(resolver.context, place, properties)
    except (ClientError, BotoCoreError, KeyError) as error:
        why = f"no {error} is given" if isinstance(error, KeyError) else error
        raise LocalRuntimeError(
            f"{place.stack}/{logical_id} ({resource['Type']}) could not be made: {why}"
        ) from error


@dataclass(slots=True)
class Resolver:
    """Resolves the values of one stack. ``created`` and ``exports`` grow during loading."""

    stack: Stack
    context: Context
    exports: dict[str, str]
    created: dict[str, Created] = field(default_factory=dict)

    def resolve(self, value: Any) -> Any:
        """``value`` with every intrinsic replaced. Raises `UnsupportedTemplateError`."""
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            name, argument = next(iter(value.items()))
            if name == "Ref" or name.startswith("Fn::"):
                return self._call(name, argument)
        return {key: self.resolve(item) for key, item in value.items()}

    def substitute(self, text: str) -> str:
        """`Fn::Sub` of ``text``, which names pseudo parameters only."""
        return re.sub(r"\$\{([^}]*)\}", lambda found: self._pseudo(found[1]), text)

    def _call(self, name: str, argument: Any) -> Any:
        match name, argument:
            case "Ref", str():
                made = self.created.get(argument)
                return made.ref if made else self._pseudo(argument)
            case "Fn::GetAtt", [str() as logical_id, str() as attribute]:
                return self._attribute(logical_id, attribute)
            case "Fn::Join", [str() as separator, items]:
                return separator.join(str(item) for item in self.resolve(items))
            case "Fn::Select", [int() as index, items]:
                return self.resolve(items)[index]
            case "Fn::Split", [str() as separator, text]:
                return str(self.resolve(text)).split(separator)
            case "Fn::Sub", str():
                return self.substitute(argument)
            case "Fn::ImportValue", str():
                if argument in self.exports:
                    return self.exports[argument]
                raise self._error(f"Fn::ImportValue {argument}: no stack exports it")
        raise self._error(f"the intrinsic function {name} of {argument!r} is not known here")

    def _pseudo(self, name: str) -> str:
        known = {
            "AWS::AccountId": self.context.account,
            "AWS::Region": self.context.region,
            "AWS::Partition": "aws",
        }
        if name not in known:
            raise self._error(f"Ref {name} names nothing that exists")
        return known[name]

    def _attribute(self, name: str, attribute: str) -> str:
        if name not in self.created:
            raise self._error(f"Fn::GetAtt {name}.{attribute} names nothing that exists")
        attributes = self.created[name].attributes
        if attribute not in attributes:
            kind = self.stack.resources[name]["Type"]
            raise self._error(f"{kind} {name} has no attribute {attribute} here")
        return attributes[attribute]

    def _error(self, what: str) -> UnsupportedTemplateError:
        return UnsupportedTemplateError(f"stack {self.stack.name}: {what}")


def references(value: Any) -> Iterator[str]:
    """Every name that ``value`` refers to by Ref or GetAtt, for the order of creation."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "Ref" and isinstance(item, str):
                yield item
            elif key == "Fn::GetAtt":
                yield item[0]
            else:
                yield from references(item)
