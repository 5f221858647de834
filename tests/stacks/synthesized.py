"""Synthesize, and look at what was written as plain JSON."""

import hashlib
import json
import re
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from s3commit.aws import env
from s3commit.local import synth
from stacks.layers import ROOT
from tests.servers import ran

Resource = dict[str, Any]
Properties = dict[str, Any]

OPERATOR = "arn:aws:iam::111122223333:role/team/ops"
KEY_ARN = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
TOPIC_ARN = "arn:aws:sns:eu-central-1:111122223333:on-call"

JOB_KEYS = [f"{KEY_ARN}1", f"{KEY_ARN}2"]
IMPORTED = {
    "importBucket": "lake",
    "kmsKeyArn": KEY_ARN,
    "jobKeyArns": ",".join(JOB_KEYS),
    "name": "dev",
    "executionLogs": "events",
    "lambdaConcurrency": "10",
}

ENCRYPTED = {
    "bucketName": "named-lake",
    "kmsKeyArn": KEY_ARN,
    "versioned": "true",
    "accessLogsBucket": "logs",
    "alarmEmail": "oncall@example.com",
    "architecture": "x86_64",
    "protectNames": "documents",
    "operators": OPERATOR,
    "executionLogs": "data",
    "reserveWorkers": "true",
}
NARROWED = {
    "prefixes": "sales/eu/,sales/,finance/eu/",
    "catalogs": {"finance/eu/t/": "analytics.t"},
}
TELLING = {"catalogs": {"sales/": "analytics.sales dropEmpty", "orders/eu/": "other.orders"}}
REGULATED = {
    "kmsKeyArn": KEY_ARN,
    "encryption": "aws:kms",
    "logKeyArn": KEY_ARN,
    "logRetentionDays": 365,
    "retainLogs": True,
    "alarmTopicArn": TOPIC_ARN,
    "dashboard": False,
    "subnets": "subnet-0123abcd,subnet-0123abce",
    "securityGroups": "sg-0123abcd",
    "accessLogsBucket": "logs",
    "versioned": "true",
}


class Assembly:
    """What a synth wrote, read back as plain JSON."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.storage = self._template("S3CommitStorage")
        self.pipeline = self._template("S3CommitPipeline")

    def _template(self, stack: str) -> dict[str, Any]:
        text = (self.directory / f"{stack}.template.json").read_text()
        template: dict[str, Any] = json.loads(text)
        return template

    def violations(self) -> list[Any]:
        report = json.loads((self.directory / "validation-report.json").read_text())
        return [one for each in report["pluginReports"] for one in each.get("violations", [])]

    def asset_of(self, resource: Resource) -> Path:
        code = resource["Properties"].get("Code") or resource["Properties"]["Content"]
        return self.directory / f"asset.{code['S3Key'].removesuffix('.zip')}"


def of_type(template: dict[str, Any], kind: str) -> dict[str, Resource]:
    return {
        name: resource
        for name, resource in template["Resources"].items()
        if resource["Type"] == kind
    }


def properties(template: dict[str, Any], kind: str) -> list[Properties]:
    return [resource["Properties"] for resource in of_type(template, kind).values()]


def only(template: dict[str, Any], kind: str) -> Properties:
    (found,) = properties(template, kind)
    return found


@dataclass(frozen=True)
class Function:
    logical_id: str
    properties: Properties

    @property
    def variables(self) -> dict[str, Any]:
        variables: dict[str, Any] = self.properties["Environment"]["Variables"]
        return variables

    @property
    def role(self) -> str:
        role: str = self.properties["Role"]["Fn::GetAtt"][0]
        return role


def functions(template: dict[str, Any]) -> dict[str, Function]:
    """Our functions by module name."""
    found = of_type(template, "AWS::Lambda::Function")
    each = [Function(logical_id, found[logical_id]["Properties"]) for logical_id in found]
    return {one.properties["Handler"].removesuffix(".handler"): one for one in each}


def state_machine(assembly: Assembly) -> Properties:
    return only(assembly.pipeline, "AWS::StepFunctions::StateMachine")


def synthesize(**parameters: Any) -> Assembly:
    """``bucketName=…`` and so on, without our prefix.

    Made once for each state of the sources: it takes seconds, and many test processes ask for it.
    With parameters it is made in this process: to start the CDK takes longer than to synthesize.
    """
    context = {f"s3commit:{name}": value for name, value in parameters.items()}
    text = json.dumps(context)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    out = ROOT / ".s3commit" / (f"assembly-{digest}" if parameters else "assembly")

    def run(_project: Path, out: Path) -> None:
        patch.delenv("CDK_CONTEXT_JSON")  # else the CDK's process has it as long as it lives
        from stacks.pipeline import build  # this starts it

        build(context, str(out)).synth()

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDK_CONTEXT_JSON", text)
        if parameters:
            patch.setenv(env.LOCAL, "1")
            patch.setattr(synth, "_run", run)
        return Assembly(synth.synthesize(ROOT, out))


def shown_policies() -> list[dict[str, Any]]:
    """What docs/deploy.md shows: a writer's policy, and what a bucket's has in each denial."""
    guide = (ROOT / "docs" / "deploy.md").read_text()
    return [json.loads(block) for block in re.findall(r"```json\n(.*?)```", guide, re.DOTALL)]


def cfn_lint(*templates: Path) -> str:
    """What cfn-lint finds; nothing is the empty text."""
    # W3005: the CDK writes down a dependency that a reference implies already.
    command = [str(Path(sysconfig.get_path("scripts")) / "cfn-lint"), "--ignore-checks", "W3005"]
    command += ["--regions", "eu-central-1", "us-east-1", "--", *map(str, templates)]
    done = ran(*command)
    return done.stdout + done.stderr


def digests(layer: Path) -> dict[str, str]:
    """Of each file of a built layer."""
    return {
        str(path.relative_to(layer)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in layer.rglob("*")
        if path.is_file()
    }
