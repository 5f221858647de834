"""What cdk-nag, cfn-lint and reviewers ask of each variant of a deployment."""

import json
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

from s3commit.aws import env
from s3commit.aws.clients import make_client
from s3commit.aws.wiring import make_ports
from stacks.checks import acknowledge_wildcard
from stacks.functions import INTERFACES
from stacks.layers import ROOT, runtime_python
from stacks.pipeline import build
from tests.contract.given import make_bucket
from tests.stacks.synthesized import (
    IMPORTED,
    KEY_ARN,
    REGULATED,
    Assembly,
    Properties,
    cfn_lint,
    functions,
    properties,
)

OF_THE_CDK = {"permissionsBoundary": {"name": "limits"}, "bootstrapQualifier": "acme"}
VARIANTS = [
    *("assembly", "imported", "encrypted", "regulated"),
    *("bridged", "bridged_import", "telling"),
]


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> Assembly:
    found: Assembly = request.getfixturevalue(request.param)
    return found


def test_cdk_nag_has_no_unacknowledged_finding(variant: Assembly) -> None:
    assert variant.violations() == []


PACKS: dict[str, Callable[[Any], NagPack]] = {
    "NIST": NIST80053R5Checks,
    "HIPAA": HIPAASecurityChecks,
    "PCI": PCIDSS321Checks,
    "Serverless": ServerlessChecks,
}
NAG = "AwsSolutions, acknowledged"


@pytest.mark.parametrize("met", [False, True])
def test_the_review_answers_each_rule_that_fires_in_any_pack(met: bool, tmp_path: Path) -> None:
    """``met``: with the parameters that the page says meet a rule."""
    rows = re.findall(
        r"^\| `(\w+)` \| ([^|]+) \| (?:`(\w+)`)? *\| [^|]+ \|$",
        (ROOT / "docs" / "adr" / "0047-rules-of-cdk-nag-that-stay.md").read_text(),
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


# What reviewers ask of every role, log and function


def _all(assembly: Assembly, kind: str) -> list[Properties]:
    return properties(assembly.storage, kind) + properties(assembly.pipeline, kind)


def test_every_role_lies_below_the_deployments_path(variant: Assembly) -> None:
    (path,) = {role["Path"] for role in _all(variant, "AWS::IAM::Role")}
    assert path in {"/S3CommitPipeline/", "/S3CommitPipeline-dev/"}


def test_step_functions_takes_the_role_for_this_account_alone(variant: Assembly) -> None:
    (trust,) = [
        statement
        for role in _all(variant, "AWS::IAM::Role")
        for statement in role["AssumeRolePolicyDocument"]["Statement"]
        if statement["Principal"]["Service"] != "lambda.amazonaws.com"
    ]
    assert trust["Principal"] == {"Service": "states.amazonaws.com"}
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_objects_are_touched_in_buckets_of_this_account_alone(variant: Assembly) -> None:
    """A bucket's name may belong to a stranger when the bucket is deleted."""
    statements = [
        statement
        for policy in properties(variant.pipeline, "AWS::IAM::Policy")
        for statement in policy["PolicyDocument"]["Statement"]
        if '"s3:' in json.dumps(statement["Action"]) and statement["Effect"] == "Allow"
    ]
    assert len(statements) > len(functions(variant.pipeline))
    owner = {"StringEquals": {"aws:ResourceAccount": {"Ref": "AWS::AccountId"}}}
    assert [one for one in statements if one.get("Condition") != owner] == []


def test_logs_have_their_key_and_functions_network_and_header(regulated: Assembly) -> None:
    logs = _all(regulated, "AWS::Logs::LogGroup")
    assert {group["KmsKeyId"] for group in logs} == {KEY_ARN}
    network = {
        "SubnetIds": ["subnet-0123abcd", "subnet-0123abce"],
        "SecurityGroupIds": ["sg-0123abcd"],
    }
    for function in _all(regulated, "AWS::Lambda::Function"):
        assert function["VpcConfig"] == network
    found = functions(regulated.pipeline).items()
    encrypting = {name for name, one in found if one.variables.get(env.ENCRYPTION) == "aws:kms"}
    assert encrypting == {"decide", "end", "sweep"}


def test_i12_lambda_makes_the_interfaces_and_no_function_may(regulated: Assembly) -> None:
    policies = _all(regulated, "AWS::IAM::Policy")
    of_functions = [one for one in policies if "xray" in str(one) and "Delivery" not in str(one)]
    assert len(of_functions) == len(functions(regulated.pipeline))
    for policy in of_functions:
        denials = [one for one in policy["PolicyDocument"]["Statement"] if one["Effect"] == "Deny"]
        (deny,) = [one for one in denials if sorted(one["Action"]) == sorted(INTERFACES)]
        assert list(deny["Condition"]) == ["ArnLike"]
        assert ":function:*" in str(deny["Condition"]["ArnLike"]["lambda:SourceFunctionArn"])


def test_a_boundary_is_on_every_role_and_a_network_at_every_function(tmp_path: Path) -> None:
    """Those of the CDK too, and by its own context keys, which docs/deploy.md shows."""
    shown = {f"@aws-cdk/core:{name}": given for name, given in OF_THE_CDK.items()}
    page = (ROOT / "docs" / "deploy.md").read_text()
    assert all(json.dumps({name: given})[1:-1] in page for name, given in shown.items())
    network = {"subnets": "subnet-0123abcd", "securityGroups": "sg-0123abcd"}
    given = {f"s3commit:{name}": each for name, each in {**IMPORTED, **network}.items()}
    build({**shown, **given}, outdir=str(tmp_path)).synth()
    made = Assembly(tmp_path)
    roles = _all(made, "AWS::IAM::Role")
    assert len(roles) == len(functions(made.pipeline)) + 2
    assert all(":policy/limits" in str(role["PermissionsBoundary"]) for role in roles)
    assert "cdk-acme-" in str(made.pipeline) and "hnb659fds" not in str(made.pipeline)
    there = _all(made, "AWS::Lambda::Function")
    assert len(there) == len(functions(made.pipeline)) + 1
    assert all(each["VpcConfig"]["SubnetIds"] == ["subnet-0123abcd"] for each in there)
    denied = [one for one in _all(made, "AWS::IAM::Policy") if "SourceFunctionArn" in str(one)]
    assert len(denied) == len(there)


def test_no_deployment_warns(variant: Assembly) -> None:
    """So that `cdk deploy --strict` goes through; without that Python there is no byte code."""
    stacks = list(variant.directory.glob("*.metadata.json"))
    assert len(stacks) == 2
    for told in stacks:
        warned = re.findall(r'"aws:cdk:warning",\s*"data": "(\w+)', told.read_text())
        assert {*warned} <= ({"No"} if runtime_python() is None else set())


@pytest.mark.parametrize(
    ("given", "algorithm"),
    [({}, "AES256"), ({env.ENCRYPTION: "aws:kms", env.ENCRYPTION_KEY: KEY_ARN}, "aws:kms")],
)
def test_the_pipelines_own_puts_have_the_header_that_a_policy_demands(
    moto_endpoint: str, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], algorithm: str
) -> None:
    for name, value in {
        "AWS_ENDPOINT_URL": moto_endpoint,
        env.TABLE: "ledger",
        env.LEDGER_TTL_DAYS: "90",
        **given,
    }.items():
        monkeypatch.setenv(name, value)
    client = make_client()
    bucket = make_bucket(client, f"header-{algorithm.replace(':', '-').lower()}")
    make_ports().store.put(bucket, "_result.json", b"{}")
    head = client.head_object(Bucket=bucket, Key="_result.json")
    assert head.get("ServerSideEncryption", "AES256") == algorithm
    assert head.get("SSEKMSKeyId") == given.get(env.ENCRYPTION_KEY)
