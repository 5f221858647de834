"""`s3commit doctor`: one line a check, and nothing is changed."""

import json

import pytest

from s3commit.cli.doctor import CHECKS, ON_BUCKET, ON_JOBS, ON_OBJECTS
from s3commit.core.formats.layout import ALIAS_ENDS
from tests.cli.account import Account
from tests.cli.support import Desk, run
from tests.conftest import REGION
from tests.stacks.synthesized import shown_policies

ROLE = "arn:aws:iam::123456789012:role/spark"


def test_where_all_is_well_every_line_says_so(deployed: Account, desk: Desk) -> None:
    found = deployed.ask(role=ROLE, prefix="sales/")
    assert {verdict for verdict, _ in found.values()} == {"ok"}
    assert list(found) == ["account", "ledger", *CHECKS]
    assert all("\n" not in text for _, text in found.values())
    result = desk.run("doctor", "--name", deployed.name, "--role", ROLE)
    begins = [line[:4] for line in result.stdout.splitlines()]
    assert begins == ["VERD", *["ok  "] * (2 + len(CHECKS))]
    assert result.stderr == ""


def test_it_changes_nothing(deployed: Account) -> None:
    deployed.ask()
    reads = ("Get", "List", "Describe", "Simulate", "Head")
    others = [call for call in deployed.calls if not call.startswith(reads)]
    # Of a store that is not AWS's: what it puts, it deletes.
    tried = ["DeleteObject", "PutObject", "DeleteObjects", "PutObject", "DeleteObject"]
    assert others == [*tried, "DeleteObject"]
    assert deployed.left() == (0, 0)


def test_before_the_first_deployment_it_says_what_to_set(account: Account) -> None:
    account.free = 10
    found = account.ask()
    assert found["concurrency"] == (
        "fix",
        "10 concurrent executions are unreserved (the quota is 10), and the deployment may use 500:"
        " deploy with -c s3commit:lambdaConcurrency=10 (it then works, slower), or request an"
        " increase of Lambda's quota Concurrent executions in Service Quotas",
    )
    assert found["pipeline"][0] == found["notifications"][0] == "skipped"
    assert "name it with --name" in found["pipeline"][1]


@pytest.mark.parametrize("asked", ["GetAccountSettings", "DescribeStacks"])
def test_what_may_not_be_read_is_skipped_and_fails_nothing(deployed: Account, asked: str) -> None:
    deployed.refuse(asked)
    found = deployed.ask()
    assert "skipped" in {verdict for verdict, _ in found.values()}
    assert "fix" not in {verdict for verdict, _ in found.values()}


def test_what_a_role_lacks_is_named_and_it_by_its_arn(deployed: Account) -> None:
    deployed.lacking = {"s3:AbortMultipartUpload", "s3:ListBucket"}
    verdict, text = deployed.finding("rights", role=ROLE, prefix="sales/")
    assert verdict == "fix"
    assert f"lacks s3:AbortMultipartUpload, s3:ListBucket at s3://{deployed.name}/sales/" in text
    for role in ("spark", "arn:aws:sts::123456789012:assumed-role/spark/me"):
        verdict, text = deployed.finding("rights", role=role, prefix="sales/")
        assert verdict == "fix"
        assert text.startswith(f"--role {role} is not the ARN of a role: give arn:aws:iam::")


def test_a_prefix_is_a_directory_with_its_slash_or_without(deployed: Account) -> None:
    """The role's policy is for what lies below it."""
    for prefix in ("sales", "sales/", "/sales"):
        assert deployed.finding("rights", prefix=prefix)[1].endswith("/sales/")


def test_a_prefix_may_be_a_uri_of_the_data_bucket_alone(desk: Desk, deployed: Account) -> None:
    where = f"s3://{deployed.name}/sales/"
    for named in ("--name", "--bucket"):  # without its name it is another's deployment
        given = ["doctor", named, deployed.name, "--prefix", where]
        told = desk.run(*given, exit_code=int(named == "--bucket"))
        assert f"the caller has all rights of a writer at {where}\n" in told.stdout
    for other in ("s3://other/sales/", f"s3://{deployed.name}/", "https://x/y"):
        line = desk.fails("doctor", "--name", deployed.name, "--prefix", other, exit_code=2)
        assert other in line
    assert f"the data bucket, {deployed.name}: name" in desk.fails(
        "doctor", "--name", deployed.name, "--prefix", "s3://other/sales/", exit_code=2
    )


@pytest.mark.parametrize(
    "name", ["s3://lake", "Lake", "a b", "arn:aws:s3:::lake", *(f"lake{end}" for end in ALIAS_ENDS)]
)
def test_what_is_no_general_purpose_bucket_is_one_line(desk: Desk, name: str) -> None:
    line = desk.fails("doctor", "--bucket", name, exit_code=2)
    assert line.startswith("Error: --bucket: path 's3://")


def test_an_endpoint_that_checks_no_rights_approves_none(deployed: Account) -> None:
    deployed.iam = deployed.endpoint
    verdict, text = deployed.finding("rights", role=ROLE, prefix="sales/")
    assert (verdict, "the endpoint is not AWS" in text) == ("skipped", True)


def test_who_may_not_simulate_is_told_to_try(deployed: Account) -> None:
    deployed.refuse("SimulatePrincipalPolicy")
    verdict, text = deployed.finding("rights", role=ROLE, prefix="sales/")
    assert verdict == "skipped"
    assert "not allowed" in text
    assert "give --prefix alone" in text


@pytest.mark.parametrize("lacking", [None, *ON_OBJECTS, *ON_JOBS, *ON_BUCKET])
def test_the_callers_own_rights_are_tried_alone(deployed: Account, lacking: str | None) -> None:
    refused = {
        "s3:PutObject": "UploadPart",
        "s3:ListMultipartUploadParts": "ListParts",
        "s3:GetBucketNotification": "GetBucketNotificationConfiguration",
        "s3:ListBucket": "ListObjectsV2",
    }
    if lacking:
        deployed.refuse(refused.get(lacking, lacking.removeprefix("s3:")))
    verdict, text = deployed.finding("rights", prefix="sales/")
    where = f"s3://{deployed.name}/sales/"
    if lacking:
        assert (verdict, text.split(":")[0]) == ("fix", "the caller lacks s3")
        assert f"lacks {lacking} at {where}" in text
    else:
        assert (verdict, text) == ("ok", f"the caller has all rights of a writer at {where}")
    assert deployed.left() == (0, 0)


def test_the_rights_are_those_that_the_documentation_gives() -> None:
    objects, bucket, jobs, *_ = shown_policies()[0]["Statement"]
    assert jobs["Action"] == ON_JOBS[0]
    assert sorted(objects["Action"]) == sorted(ON_OBJECTS)
    assert sorted(bucket["Action"]) == sorted(ON_BUCKET)


def test_json_and_exit_code_1_if_one_fails(desk: Desk, deployed: Account) -> None:
    deployed.free = 10
    result = desk.run("doctor", "--name", deployed.name, "--output", "json", exit_code=1)
    told = json.loads(result.stdout)
    assert told["ok"] is False
    assert [one["check"] for one in told["checks"] if one["verdict"] == "fix"] == ["concurrency"]
    assert result.stderr == f"Error: 1 check of {2 + len(CHECKS)} failed: concurrency\n"


def test_it_finds_its_credentials(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    result = run("doctor", exit_code=1)
    assert "account  no region: set AWS_REGION" in result.stdout
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    result = run("doctor", exit_code=1)
    assert "account  no AWS credentials" in result.stdout
    assert "notifications" not in result.stdout


def test_an_endpoint_that_does_not_know_lambdas_settings_is_one_clear_line(
    moto_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of the embedded runtime, which answers with a page of HTML."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    monkeypatch.setenv("AWS_REGION", REGION)
    told = run("doctor", "--name", "nobody").stdout
    (line,) = (line for line in told.splitlines() if "concurrency" in line)
    assert line.startswith("skipped  concurrency    not available: the endpoint has no such")
    assert "<" not in told
