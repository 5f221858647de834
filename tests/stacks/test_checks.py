"""cdk-nag and cfn-lint have nothing to say, and would say it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from cdk_nag import (
    HIPAASecurityChecks,
    NagPack,
    NIST80053R5Checks,
    PCIDSS321Checks,
    ServerlessChecks,
)

from stacks.checks import acknowledge_wildcard
from stacks.layers import ROOT
from stacks.pipeline import build
from tests.stacks.synthesized import REGULATED, Assembly, cfn_lint

VARIANTS = ["assembly", "imported", "encrypted", "regulated", "bridged", "bridged_import"]


@pytest.mark.parametrize("deployment", VARIANTS)
def test_cdk_nag_has_no_unacknowledged_finding(
    deployment: str, request: pytest.FixtureRequest
) -> None:
    synthesized: Assembly = request.getfixturevalue(deployment)
    assert synthesized.violations() == []


PACKS: dict[str, Callable[[Any], NagPack]] = {
    "NIST": NIST80053R5Checks,
    "HIPAA": HIPAASecurityChecks,
    "PCI": PCIDSS321Checks,
    "Serverless": ServerlessChecks,
}
NAG = "AwsSolutions, acknowledged"


@pytest.mark.parametrize("met", [False, True])
def test_the_review_answers_each_rule_that_fires_in_any_pack_and_no_other(
    met: bool, tmp_path: Path
) -> None:
    """``met``: with the parameters that the page says meet a rule."""
    rows = re.findall(
        r"^\| `(\w+)` \| ([^|]+) \| (?:`(\w+)`)? *\| [^|]+ \|$",
        (ROOT / "docs" / "review.md").read_text(),
        re.MULTILINE,
    )
    parameters = {name: REGULATED[name] for _, _, name in rows if name and met}
    parameters |= {"securityGroups": REGULATED["securityGroups"]} if met else {}
    app = build({f"s3commit:{name}": each for name, each in parameters.items()}, str(tmp_path))
    cdk.Validations.of(app).add_plugins(*(pack(app) for pack in PACKS.values()))
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()
    fired = {
        (rule.rsplit("-", 1)[1], next(pack for pack in PACKS if rule.startswith(pack)))
        for rule in (one["ruleName"].split("[")[0] for one in Assembly(tmp_path).violations())
    } | {
        (str(rule).split("[")[0].rsplit("-", 1)[1], NAG)
        for construct in app.node.find_all()
        for entry in construct.node.metadata
        if entry.type == cdk.Validations.ACKNOWLEDGED_RULES_METADATA_KEY
        for rule in entry.data
    }
    shown = {
        (rule, pack)
        for rule, packs, name in rows
        if not (name and met)
        for pack in ([NAG] if packs == NAG else packs.split(", "))
    }
    assert fired == shown


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


def test_cfn_lint_has_no_finding(request: pytest.FixtureRequest) -> None:
    directories = [request.getfixturevalue(each).directory for each in VARIANTS]
    templates = [path for each in directories for path in each.glob("*.template.json")]
    assert len(templates) == 2 * len(VARIANTS)
    assert cfn_lint(*templates) == ""
