"""cdk-nag and cfn-lint have nothing to say, and would say it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from stacks.application import build
from stacks.checks import acknowledge_wildcard
from stacks.dependencies import ROOT
from tests.stacks.synthesized import Assembly, cfn_lint


@pytest.mark.parametrize("deployment", ["assembly", "imported", "encrypted"])
def test_cdk_nag_has_no_unacknowledged_finding(
    deployment: str, request: pytest.FixtureRequest
) -> None:
    synthesized: Assembly = request.getfixturevalue(deployment)
    assert synthesized.violations() == []


def test_an_unacknowledged_finding_fails_the_synth(tmp_path: Path) -> None:
    app = build(outdir=str(tmp_path))
    stack = app.node.find_child("S3CommitStorage")
    assert isinstance(stack, cdk.Stack)
    s3.Bucket(stack, "Open")
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()


def test_an_acknowledgement_covers_the_one_resource_it_names(tmp_path: Path) -> None:
    app = build(outdir=str(tmp_path))
    stack = app.node.find_child("S3CommitPipeline")
    assert isinstance(stack, cdk.Stack)
    role = iam.Role(stack, "Wide", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    for prefix in ("known/*", "unknown/*"):
        resource = f"arn:{stack.partition}:s3:::lake/{prefix}"
        role.add_to_policy(iam.PolicyStatement(actions=["s3:GetObject"], resources=[resource]))
    acknowledge_wildcard(role, f"arn:{stack.partition}:s3:::lake/known/*", "for this test")
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()
    (violation,) = Assembly(tmp_path).violations()
    assert "lake/unknown/*" in str(violation)


@pytest.mark.parametrize("deployment", ["assembly", "imported", "encrypted"])
def test_cfn_lint_has_no_finding(deployment: str, request: pytest.FixtureRequest) -> None:
    synthesized: Assembly = request.getfixturevalue(deployment)
    templates = list(synthesized.directory.glob("*.template.json"))
    assert len(templates) == 2
    assert cfn_lint(*templates) == ""


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("s3commit:bucket=x", "s3commit: unknown parameter s3commit:bucket; known are"),
        ("s3commit:maxConcurrency=0", "must be from 1 to 40"),
    ],
)
def test_app_py_names_a_mistake_in_one_line(parameter: str, message: str, tmp_path: Path) -> None:
    name, _, value = parameter.partition("=")
    done = subprocess.run(
        [sys.executable, str(ROOT / "app.py")],
        capture_output=True,
        text=True,
        check=False,
        env={
            "PATH": "",
            "HOME": os.environ["HOME"],
            "CDK_OUTDIR": str(tmp_path),
            "CDK_CONTEXT_JSON": f'{{"{name}": "{value}"}}',
        },
    )
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
