"""Five variants of the deployment, as AWS would see them: each name resolved, nothing created."""

import json
from collections.abc import Iterator
from typing import Any, cast

from s3commit.local import REGION
from s3commit.local.assembly import Stack, load_assembly
from s3commit.local.loader import Loading
from s3commit.local.resources import Context, Created
from tests.stacks.synthesized import ENCRYPTED, IMPORTED, REGULATED, synthesize

ACCOUNT = "111122223333"
NOT_CREATED = cast("Context", None)
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "imported": IMPORTED,
    "protected": ENCRYPTED | {"protectNames": "all"},
    "regulated": REGULATED,
    "narrowed": {"prefixes": "sales/"},
}
# How an ARN continues behind `arn:aws:`, by the resource's type.
ARNS = {
    "AWS::S3::Bucket": "s3:::{name}",
    "AWS::DynamoDB::Table": "dynamodb:{region}:{account}:table/{name}",
    "AWS::IAM::Role": "iam::{account}:role{path}{name}",
    "AWS::Lambda::Function": "lambda:{region}:{account}:function:{name}",
    "AWS::StepFunctions::StateMachine": "states:{region}:{account}:stateMachine:{name}",
    "AWS::SQS::Queue": "sqs:{region}:{account}:{name}",
    "AWS::Logs::LogGroup": "logs:{region}:{account}:log-group:{name}:*",
}


class Named(Loading):
    """A stack whose resources have plausible names, and are not created."""

    def _create(self, logical_id: str) -> Created:
        resource = self.stack.resources[logical_id]
        properties = resource.get("Properties", {})
        name = properties.get("BucketName", logical_id)
        fields = {"region": REGION, "account": ACCOUNT, "path": properties.get("Path", "/")}
        arn = "arn:aws:" + ARNS.get(resource["Type"], "x:::{name}").format(name=name, **fields)
        names = dict.fromkeys(("Name", "QueueName", "TopicName"), name)
        return Created(arn if ":stateMachine:" in arn else name, {"Arn": arn, **names})

    def _pseudo(self, name: str) -> str:
        return ACCOUNT if name == "AWS::AccountId" else super()._pseudo(name)


class Variant:
    """The resources of one variant, all names resolved."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        self.resources: dict[str, dict[str, Any]] = {}
        exports: dict[str, str] = {}
        self.assembly = synthesize(**parameters)
        for stack in load_assembly(self.assembly.directory):
            self._add(stack, Named(stack, NOT_CREATED, exports), exports)

    def _add(self, stack: Stack, named: Named, exports: dict[str, str]) -> None:
        for logical_id, resource in stack.resources.items():
            resolved = named.resolve(resource.get("Properties", {}))
            own = dict(named.made(logical_id).attributes)
            self.resources[logical_id] = {"Type": resource["Type"], **own, "Properties": resolved}
        for output in stack.outputs.values():
            if "Export" in output:
                exports[output["Export"]["Name"]] = named.resolve(output["Value"])

    def of_type(self, kind: str) -> Iterator[dict[str, Any]]:
        return (one for one in self.resources.values() if one["Type"] == kind)

    def definition(self) -> dict[str, Any]:
        """The state machine's."""
        (machine,) = self.of_type("AWS::StepFunctions::StateMachine")
        found: dict[str, Any] = json.loads(machine["Properties"]["DefinitionString"])
        return found
