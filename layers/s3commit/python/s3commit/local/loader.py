"""Creates the resources of an assembly, each when another one refers to it or its turn comes.

Not CloudFormation: there is no update, no rollback and no drift. An unknown part of a template is
refused before anything is created. An unknown value is refused when it is met; so is an intrinsic
function that our templates do not use, or use in another form:
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from s3commit.local import ACCOUNT, REGION, LocalRuntimeError, UnsupportedTemplateError
from s3commit.local.assembly import Stack
from s3commit.local.resources import TYPES, Context, Created, Place

# The types of which nothing is made; to refer to one gives its name.
LEFT_TO_AWS = frozenset(
    # Rights are not checked here. Moto ignores the conditions of a Deny of a bucket's policy, and
    # would refuse every call.
    {
        "AWS::IAM::Policy",
        "AWS::Lambda::Permission",
        "AWS::S3::BucketPolicy",
        "AWS::SQS::QueuePolicy",
    }
    # The functions' logs have groups of their own names. Alarms fire where they are described.
    | {"AWS::Logs::LogGroup", "AWS::CloudWatch::Dashboard"}
    | {"AWS::SNS::Topic", "AWS::SNS::TopicPolicy", "AWS::SNS::Subscription"}
)
_SECTIONS = frozenset(
    {"Description", "Resources", "Outputs"}
    | {"Parameters", "Rules"}  # they require the CDK's bootstrap stack, which is not needed here
)
_ATTRIBUTES = frozenset(
    {"Type", "Properties"}
    | {"DependsOn"}  # of rights, or of what a property refers to
    | {"DeletionPolicy", "UpdateReplacePolicy"}  # nothing is deleted or replaced here
)


def check(assembly: tuple[Stack, ...]) -> None:
    """Raise `UnsupportedTemplateError` that names each resource the loader cannot create."""
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
        yield from (f"{where}: the attribute {name}" for name in set(resource) - _ATTRIBUTES)
        if kind in LEFT_TO_AWS:
            continue
        if kind not in TYPES:
            yield f"{where}: the type"
            continue
        refused = TYPES[kind].refused(resource.get("Properties", {}))
        yield from (f"{where}: the property {name}" for name in refused)


def rename_data_bucket(assembly: tuple[Stack, ...], name: str) -> None:
    """Let the bucket of the output ``BucketName`` have this name. Raises `LocalRuntimeError`."""
    for stack in assembly:
        match stack.outputs.get("BucketName"):
            case {"Value": {"Ref": str(logical_id)}} if logical_id in stack.resources:
                stack.resources[logical_id].setdefault("Properties", {})["BucketName"] = name
                return
    raise LocalRuntimeError(
        "no stack has an output BucketName of a bucket that it creates: the bucket can't be renamed"
    )


def load(assembly: tuple[Stack, ...], context: Context) -> dict[str, str]:
    """Create every resource, and return all stacks' outputs by name; ``context`` gets the stacks.

    Raises `LocalRuntimeError` that names the resource which could not be made.
    """
    outputs: dict[str, str] = {}
    exports: dict[str, str] = {}
    for stack in assembly:
        loading = Loading(stack, context, exports)
        for logical_id in stack.resources:
            loading.made(logical_id)
        values = {name: str(loading.resolve(one["Value"])) for name, one in stack.outputs.items()}
        exports |= {
            output["Export"]["Name"]: values[name]
            for name, output in stack.outputs.items()
            if "Export" in output
        }
        said = {"Resources": {}, "Outputs": {name: {"Value": one} for name, one in values.items()}}
        context.stacks[stack.name] = json.dumps(said)
        outputs |= values
    return outputs


@dataclass(slots=True)
class Loading:
    """One stack; ``exports`` are those of the stacks before it."""

    stack: Stack
    context: Context
    exports: dict[str, str]
    created: dict[str, Created] = field(default_factory=dict)

    def made(self, logical_id: str) -> Created:
        """The resource, which is created at the first call."""
        if logical_id not in self.created:
            self.created[logical_id] = self._create(logical_id)
        return self.created[logical_id]

    def _create(self, logical_id: str) -> Created:
        place = Place(self.stack, logical_id)
        resource = self.stack.resources[logical_id]
        if resource["Type"] in LEFT_TO_AWS:
            return Created(place.name(255))
        kind = TYPES[resource["Type"]]
        properties = self.resolve(kind.applied(resource.get("Properties", {})))
        where = f"{self.stack.name}/{logical_id} ({resource['Type']})"
        try:
            return kind.create(self.context, place, properties)
        except UnsupportedTemplateError as error:
            raise UnsupportedTemplateError(f"{where}: {error.message}") from error
        except (ClientError, BotoCoreError, KeyError, OSError) as error:
            why = f"no {error} is given" if isinstance(error, KeyError) else error
            raise LocalRuntimeError(f"{where} could not be made: {why}") from error

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

    def _call(self, name: str, argument: Any) -> Any:
        match name, argument:
            case "Ref", str() if argument in self.stack.resources:
                return self.made(argument).ref
            case "Ref", str():
                return self._pseudo(argument)
            case "Fn::GetAtt", [str() as logical_id, str() as attribute]:
                return self._attribute(logical_id, attribute)
            case "Fn::Join", [str() as separator, items]:
                return separator.join(str(item) for item in self.resolve(items))
            case "Fn::Select", [int() as index, items]:
                return self.resolve(items)[index]
            case "Fn::Split", [str() as separator, text]:
                return str(self.resolve(text)).split(separator)
            case "Fn::Sub", str():  # of pseudo parameters only
                return re.sub(r"\$\{([^}]*)\}", lambda found: self._pseudo(found[1]), argument)
            case "Fn::ImportValue", str() if argument in self.exports:
                return self.exports[argument]
        raise self._error(f"the intrinsic function {name} of {argument!r} is not known here")

    def _pseudo(self, name: str) -> str:
        known = {"AWS::AccountId": ACCOUNT, "AWS::Region": REGION, "AWS::Partition": "aws"}
        if name not in known:
            raise self._error(f"Ref {name} names nothing that exists")
        return known[name]

    def _attribute(self, name: str, attribute: str) -> str:
        attributes = self.made(name).attributes
        if attribute not in attributes:
            kind = self.stack.resources[name]["Type"]
            raise self._error(f"{kind} {name} has no attribute {attribute} here")
        return attributes[attribute]

    def _error(self, what: str) -> UnsupportedTemplateError:
        return UnsupportedTemplateError(f"stack {self.stack.name}: {what}")
