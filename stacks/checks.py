"""The way to write down an exception from cdk-nag's rules."""

from typing import Any

import aws_cdk as cdk
from constructs import IConstruct


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Accept one finding on one construct, for a reason that an auditor can check.

    The metadata is written directly: `Validations.acknowledge` refuses ids with more than one
    ``::``, and each ARN has them.
    """
    construct.node.add_metadata(
        cdk.Validations.ACKNOWLEDGED_RULES_METADATA_KEY, {rule: reason}, stack_trace=False
    )


def acknowledge_wildcard(construct: IConstruct, resource: str, reason: str) -> None:
    """Accept that a policy of ``construct`` names ``resource``, an ARN with ``*`` in it."""
    flat = _flatten(cdk.Stack.of(construct).resolve(resource))
    acknowledge(construct, f"AwsSolutions-IAM5[Resource::{flat}]", reason)


def _flatten(value: Any) -> str:
    """A CloudFormation expression as cdk-nag writes it in the id of a finding."""
    match value:
        case str():
            return value
        case {"Fn::Join": [str(delimiter), list(items)]}:
            return delimiter.join(_flatten(item) for item in items)
        case {"Fn::GetAtt": [resource, attribute]}:
            return f"<{resource}.{attribute}>"
        case {"Fn::ImportValue": name}:
            return _flatten(name)
        case {"Ref": name}:
            return f"<{name}>"
    raise TypeError(f"cdk-nag's id of {value!r} is not known")
