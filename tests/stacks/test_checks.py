"""cdk-nag and cfn-lint have nothing to say, and would say it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam

from stacks.checks import acknowledge_wildcard
from stacks.layers import ROOT
from stacks.pipeline import build
from tests.stacks.synthesized import Assembly, cfn_lint


@pytest.mark.parametrize("deployment", ["assembly", "imported", "encrypted"])
def test_cdk_nag_has_no_unacknowledged_finding(
    deployment: str, request: pytest.FixtureRequest
) -> None:
    synthesized: Assembly = request.getfixturevalue(deployment)
    assert synthesized.violations() == []


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


def test_cfn_lint_has_no_finding(
    assembly: Assembly, imported: Assembly, encrypted: Assembly
) -> None:
    directories = [each.directory for each in (assembly, imported, encrypted)]
    templates = [path for each in directories for path in each.glob("*.template.json")]
    assert len(templates) == 6
    assert cfn_lint(*templates) == ""


def test_app_py_names_a_mistake_in_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "app.py")],
        capture_output=True,
        text=True,
        check=False,
        env={
            "PATH": "",
            "HOME": os.environ["HOME"],
            "CDK_OUTDIR": str(tmp_path),
            "CDK_CONTEXT_JSON": '{"s3commit:bucket": "x"}',
        },
    )
    assert done.returncode == 1
    assert "s3commit: unknown parameter s3commit:bucket; known are" in done.stderr
    assert len(done.stderr.splitlines()) == 1
