"""The patterns of the caller's policy, beside the names that CloudFormation will give."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest

from acceptance.places import PARAMETERS
from tests.acceptance.test_acceptance import NAME, POLICY, many
from tests.stacks.synthesized import synthesize

ACCOUNT = "eu-central-1:111122223333"
SUFFIX = "Ab3dEf6hIj9k"

# A thing without a name of its own is called <stack>-<logical id>-<suffix>, these without the
# stack. The stack's name is cut where the service has a limit.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-properties-name.html
WITHOUT_STACK = ("AWS::StepFunctions::StateMachine", "AWS::Lambda::LayerVersion")
CUT, LONGEST = ("AWS::Lambda::Function", "AWS::Events::Rule"), 64
EXECUTIONS = "/aws/vendedlogs/"  # begins the name of a log group that no run reads
ARNS = {
    "AWS::DynamoDB::Table": ("dynamodb:{account}:table/", ["dynamodb:GetItem"]),
    "AWS::Events::Rule": ("events:{account}:rule/", ["events:ListTargetsByRule"]),
    "AWS::IAM::Role": ("iam::111122223333:role", ["iam:SimulatePrincipalPolicy"]),
    "AWS::Lambda::Function": ("lambda:{account}:function:", ["lambda:InvokeFunction"]),
    "AWS::Lambda::LayerVersion": ("lambda:{account}:layer:", ["lambda:GetLayerVersion"]),
    "AWS::Logs::LogGroup": ("logs:{account}:log-group:", ["logs:FilterLogEvents"]),
    "AWS::S3::Bucket": ("s3:::", ["s3:GetObject", "s3:ListBucket", "s3:PutObject"]),
    "AWS::StepFunctions::StateMachine": (
        "states:{account}:stateMachine:",
        ["states:DescribeStateMachine", "states:StartExecution"],
    ),
}


def things() -> Iterator[tuple[str, str]]:
    """An action that a run takes on a thing of its stacks, and the thing's ARN."""
    app = synthesize(name=NAME, bucketName=f"s3commit-{NAME}-data", **PARAMETERS)
    for stack, template in (("S3CommitStorage", app.storage), ("S3CommitPipeline", app.pipeline)):
        full = f"{stack}-{NAME}"
        yield "cloudformation:DeleteStack", f"arn:aws:cloudformation:{ACCOUNT}:stack/{full}/1-2-3"
        for logical_id, resource in template["Resources"].items():
            if resource["Type"] in ARNS:
                where, actions = ARNS[resource["Type"]]
                name = physical_name(full, logical_id, resource)
                for action in () if name.startswith(EXECUTIONS) else actions:
                    yield action, f"arn:aws:{where.format(account=ACCOUNT)}{name}"


def physical_name(stack: str, logical_id: str, resource: dict[str, Any]) -> str:
    kind, properties = resource["Type"], resource["Properties"]
    if kind in WITHOUT_STACK:
        return f"{logical_id}-{SUFFIX}"
    left = LONGEST - len(f"-{logical_id}-{SUFFIX}") if kind in CUT else None
    name = f"{stack[:left]}-{logical_id}-{SUFFIX}"
    given = properties.get("BucketName") or properties.get("LogGroupName") or name
    return f"{properties.get('Path', '/')}{name}" if kind == "AWS::IAM::Role" else given


def covers(statement: dict[str, Any], action: str, arn: str) -> bool:
    patterns = many(statement["Resource"])
    return action in many(statement["Action"]) and any(fnmatchcase(arn, one) for one in patterns)


@pytest.fixture(scope="module")
def named() -> set[tuple[str, str]]:
    return {*things()}


def test_each_thing_of_the_stacks_is_within_the_policy(named: set[tuple[str, str]]) -> None:
    assert {action.split(":")[0] for action, _ in named} == {
        "cloudformation", "dynamodb", "events", "iam", "lambda", "logs", "s3", "states",
    }  # fmt: skip
    outside = {
        (action, arn)
        for action, arn in named
        if not any(covers(one, action, arn) for one in POLICY["Statement"])
    }
    assert outside == set()


def test_no_statement_names_what_no_run_has(named: set[tuple[str, str]]) -> None:
    """Save for what the run makes by itself, and what the CDK has made before it."""
    unused = {
        one["Sid"] for one in POLICY["Statement"] if not any(covers(one, *pair) for pair in named)
    }
    assert unused == {
        "DeployByTheRolesOfTheCdk",
        "FindWhatTheRunHasMade",
        "TheStateMachineOfTheRun",
        "TheFunctionOfTheSuite",
        "SwitchTheEventSource",
        "TheRolesOfTheRun",
    }
