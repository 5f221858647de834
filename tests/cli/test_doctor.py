"""`s3commit doctor`: one line a check, and nothing is changed."""

from __future__ import annotations

import itertools
import json
import sys
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from s3commit.aws import env
from s3commit.aws.notifications import SUFFIXES
from s3commit.cli.doctor import CHECKS, ON_BUCKET, ON_JOBS, ON_OBJECTS, examine
from s3commit.cli.surroundings import Surroundings
from s3commit.core.model.errors import AccessError
from s3commit.version import __version__
from stacks.access import writer_policy
from tests.cli.support import Desk, run
from tests.conftest import REGION

ROLE = "arn:aws:iam::123456789012:role/spark"
DENIED = (
    "get_account_settings",
    "describe_stacks",
    "simulate_principal_policy",
)
_NUMBERS = itertools.count()


class Account:
    """An account on moto; Lambda's and IAM's answers are made here, since moto lacks them."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.name = f"doctor{next(_NUMBERS)}"
        self.free = 1000
        self.denied: set[str] = set()
        self.lacking: set[str] = set()
        self.refused = ""
        self.calls: list[str] = []

    def client(self, service: str) -> Any:
        return boto3.client(service, region_name=REGION, endpoint_url=self.endpoint)  # type: ignore[call-overload]

    def connect(self, service: str) -> Any:
        if service == "none":
            raise AccessError("no AWS credentials were found", code="NO_CREDENTIALS")
        client = self.client(service)
        client.meta.events.register("before-call", self._note)
        stub = Stubber(client)
        if service in self.denied:
            for method in DENIED:
                if hasattr(client, method):
                    stub.add_client_error(method, "AccessDeniedException", "not allowed")
        elif service == "lambda":
            limit = {"ConcurrentExecutions": self.free, "UnreservedConcurrentExecutions": self.free}
            stub.add_response("get_account_settings", {"AccountLimit": limit}, {})
        elif service == "iam":
            for actions in (ON_OBJECTS, ON_JOBS, ON_BUCKET):
                decided = [
                    {
                        "EvalActionName": action,
                        "EvalDecision": "implicitDeny" if action in self.lacking else "allowed",
                    }
                    for action in actions
                ]
                stub.add_response("simulate_principal_policy", {"EvaluationResults": decided})
        else:
            return client
        stub.activate()
        return client

    def _note(self, model: Any, **_parameters: Any) -> Any:
        self.calls.append(model.name)
        if model.name != self.refused:
            return None
        answer = type("Answer", (), {"status_code": 403})
        return answer, {"Error": {"Code": "AccessDenied", "Message": "not allowed"}}

    def left(self) -> tuple[int, int]:
        """How many objects and open uploads there are."""
        s3 = self.client("s3")
        uploads = s3.list_multipart_uploads(Bucket=self.name).get("Uploads", [])
        return s3.list_objects_v2(Bucket=self.name)["KeyCount"], len(uploads)

    def deploy(self, stack: str, **outputs: str) -> None:
        template = {
            "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
            "Outputs": {name: {"Value": value} for name, value in outputs.items()},
        }
        self.client("cloudformation").create_stack(
            StackName=f"{stack}-{self.name}", TemplateBody=json.dumps(template)
        )

    def make_bucket(self, *suffixes: str, event_bridge: bool = False) -> str:
        s3 = self.client("s3")
        s3.create_bucket(Bucket=self.name, CreateBucketConfiguration={"LocationConstraint": REGION})
        arn = self.make_queue()
        queues = [
            {
                "QueueArn": arn,
                "Events": ["s3:ObjectCreated:*"],
                **({"Filter": suffix_filter(suffix)} if suffix else {}),
            }
            for suffix in suffixes
        ]
        s3.put_bucket_notification_configuration(
            Bucket=self.name,
            NotificationConfiguration={
                "QueueConfigurations": queues,
                **({"EventBridgeConfiguration": {}} if event_bridge else {}),
            },
        )
        s3.put_bucket_lifecycle_configuration(
            Bucket=self.name, LifecycleConfiguration={"Rules": [aborting(7)]}
        )
        return self.name

    def make_queue(self, principal: str = "s3.amazonaws.com") -> str:
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": principal},
            "Action": "sqs:SendMessage",
            "Resource": "*",
        }
        sqs = self.client("sqs")
        url = sqs.create_queue(QueueName=self.name)["QueueUrl"]
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
        return f"arn:aws:sqs:{REGION}:123456789012:{self.name}"

    def ask(self, region: str | None = REGION, **more: Any) -> dict[str, tuple[str, str]]:
        around = Surroundings(region, more.pop("connect", self.connect), self.name, **more)
        return dict(examine(around))


def suffix_filter(suffix: str) -> dict[str, Any]:
    return {"Key": {"FilterRules": [{"Name": "suffix", "Value": suffix}]}}


def aborting(days: int) -> dict[str, Any]:
    return {
        "ID": f"after {days}",
        "Status": "Enabled",
        "Filter": {"Prefix": ""},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": days},
    }


@pytest.fixture
def account(moto_endpoint: str) -> Account:
    return Account(moto_endpoint)


@pytest.fixture
def deployed(account: Account) -> Account:
    bucket = account.make_bucket(*SUFFIXES)
    account.deploy(env.STORAGE_STACK, BucketName=bucket)
    account.deploy(env.PIPELINE_STACK, Version=__version__, LambdaConcurrency="500")
    return account


def test_where_all_is_well_every_line_says_so(deployed: Account) -> None:
    found = deployed.ask(role=ROLE, prefix="sales/")
    assert {verdict for verdict, _ in found.values()} == {"ok"}
    assert list(found) == ["account", *CHECKS]
    assert all("\n" not in text for _, text in found.values())


def test_it_changes_nothing(deployed: Account) -> None:
    deployed.ask()
    assert deployed.calls
    assert [
        call
        for call in deployed.calls
        if not call.startswith(("Get", "List", "Describe", "Simulate", "Head"))
    ] == []


def test_before_the_first_deployment_it_says_what_to_set(account: Account) -> None:
    account.free = 10
    found = account.ask()
    assert found["functions at once"] == (
        "do",
        "10 functions at once are not reserved (the quota is 10), and the deployment may use 500:"
        " deploy with -c s3commit:lambdaConcurrency=10 (it then works, slower), or request an"
        " increase of Lambda's quota Concurrent executions at"
        " https://console.aws.amazon.com/servicequotas/",
    )
    assert found["pipeline"][0] == found["notifications"][0] == "skipped"
    assert "name it with --name" in found["pipeline"][1]


@pytest.mark.parametrize("lacking", SUFFIXES)
def test_a_bucket_that_does_not_notify_is_said(account: Account, lacking: str) -> None:
    bucket = account.make_bucket(*(suffix for suffix in SUFFIXES if suffix != lacking))
    account.deploy(env.STORAGE_STACK, BucketName=bucket)
    verdict, text = account.ask(bucket=bucket)["notifications"]
    assert verdict == "do"
    assert f"notifies no queue of keys that end in {lacking}: deploy again" in text


def test_a_bucket_that_is_not_there_is_said(account: Account) -> None:
    assert "does not exist" in account.ask(bucket="nobodys-lake")["notifications"][1]


@pytest.mark.parametrize(("event_bridge", "verdict"), [(True, "ok"), (False, "do")])
@pytest.mark.parametrize("seen", [True, False])  # by one who may see the stacks, or not
def test_a_bucket_may_send_its_events_to_eventbridge(
    account: Account, event_bridge: bool, verdict: str, seen: bool
) -> None:
    bucket = account.make_bucket(event_bridge=event_bridge)
    account.deploy(env.STORAGE_STACK, Parameters=json.dumps({"events": "eventbridge"}))
    account.denied = set() if seen else {"cloudformation"}
    found = account.ask(bucket=bucket)["notifications"]
    assert found[0] == verdict
    assert "to EventBridge" in found[1]


@pytest.mark.parametrize(
    ("suffixes", "overlap"),
    [
        ([], False),
        (["/a.json", ".parquet"], False),
        ([""], True),  # without a filter, as most are
        ([".json"], True),
        (["/x/job.json"], True),
    ],
)
def test_before_a_bucket_is_imported_what_overlaps_is_said(
    account: Account, suffixes: list[str], overlap: bool
) -> None:
    bucket = account.make_bucket(*suffixes)
    verdict, text = account.ask(bucket=bucket)["notifications"]
    if overlap:
        assert verdict == "do"
        assert f"beside the notifications to arn:aws:sqs:{REGION}:123456789012:{bucket}:" in text
        assert "deploy with -c s3commit:events=eventbridge" in text
    else:
        assert verdict == "ok"
        assert text.endswith(f"deploy with -c s3commit:importBucket={bucket}")


def test_before_a_bucket_is_imported_its_region_and_lost_destinations_are_said(
    account: Account,
) -> None:
    bucket = account.make_bucket(".parquet")
    account.client("sqs").delete_queue(
        QueueUrl=account.client("sqs").get_queue_url(QueueName=account.name)["QueueUrl"]
    )
    verdict, text = account.ask("eu-west-1", bucket=bucket)["notifications"]
    assert verdict == "do"
    assert f"it is in {REGION}, so deploy there, not in eu-west-1" in text
    assert "is gone" not in text  # there nobody looked for it
    verdict, text = account.ask(bucket=bucket)["notifications"]
    assert verdict == "do"
    assert f":{account.name}, which it notifies, is gone" in text


@pytest.mark.parametrize("service", ["lambda", "cloudformation"])
def test_what_may_not_be_read_is_skipped_and_fails_nothing(deployed: Account, service: str) -> None:
    deployed.denied = {service}
    found = deployed.ask()
    assert "skipped" in {verdict for verdict, _ in found.values()}
    assert "do" not in {verdict for verdict, _ in found.values()}


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ([], "aborts incomplete uploads: add one, of more days than your longest job takes"),
        ([aborting(1), aborting(7)], "aborts uploads after 1 day: a job that takes longer loses"),
        ([{**aborting(7), "Status": "Disabled"}], "add one"),
        ([{**aborting(7), "Filter": {"Prefix": "logs/"}}], "no lifecycle rule for all of bucket"),
    ],
)
def test_uploads_that_nobody_aborts_or_that_are_aborted_too_early_are_said(
    deployed: Account, rules: list[dict[str, Any]], says: str
) -> None:
    s3 = deployed.client("s3")
    s3.delete_bucket_lifecycle(Bucket=deployed.name)
    if rules:
        s3.put_bucket_lifecycle_configuration(
            Bucket=deployed.name, LifecycleConfiguration={"Rules": rules}
        )
    verdict, text = deployed.ask()["lifecycle"]
    assert verdict == "do"
    assert says in text


def test_a_rule_for_the_tables_alone_is_enough_for_them(deployed: Account) -> None:
    deployed.client("s3").put_bucket_lifecycle_configuration(
        Bucket=deployed.name,
        LifecycleConfiguration={"Rules": [{**aborting(7), "Filter": {"Prefix": "sales/"}}]},
    )
    assert deployed.ask(prefix="sales/eu/")["lifecycle"][0] == "ok"
    assert deployed.ask(prefix="returns/")["lifecycle"][0] == "do"


def deny(sid: str, action: str, condition: dict[str, Any]) -> dict[str, Any]:
    return {
        "Sid": sid,
        "Effect": "Deny",
        "Principal": {"AWS": "*"},
        "Action": action,
        "Resource": "*",
        "Condition": condition,
    }


HEADER = {"Null": {"s3:x-amz-server-side-encryption": "true"}}
VPC = {"StringNotEquals": {"aws:SourceVpce": "vpce-1"}}
ROLES = "arn:aws:iam::123456789012:role/S3CommitPipeline-*"


@pytest.mark.parametrize(
    ("statement", "known"),
    [
        (deny("Tls", "s3:*", {"Bool": {"aws:SecureTransport": "false"}}), True),
        (deny("Deletes", "s3:DeleteObject", VPC), True),
        (deny("Endpoint", "s3:*", VPC), False),
        (deny("Endpoint", "s3:GetObject", {**VPC, "Bool": {"aws:SecureTransport": "true"}}), False),
        (deny("Other", "s3:*", {"ArnNotLike": {"aws:PrincipalArn": "arn:aws:iam::1:x"}}), False),
        (deny("Ours", "s3:*", {**VPC, "ArnNotLike": {"aws:PrincipalArn": [ROLES]}}), True),
        (deny("Header", "s3:Put*", HEADER), False),
        ({**deny("Bob", "s3:*", VPC), "Principal": {"AWS": "arn:aws:iam::1:user/bob"}}, True),
    ],
)
def test_a_deny_that_may_be_for_the_pipeline_is_named(
    deployed: Account, statement: dict[str, Any], known: bool
) -> None:
    text = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    deployed.client("s3").put_bucket_policy(Bucket=deployed.name, Policy=text)
    verdict, told = deployed.ask()["bucket policy"]
    assert verdict == ("ok" if known else "do")
    assert (f"by {statement['Sid']} (" in told) is not known


def test_a_deny_without_the_header_is_met_by_the_parameter(account: Account) -> None:
    bucket = account.make_bucket(*SUFFIXES)
    account.deploy(env.STORAGE_STACK, Parameters=json.dumps({"encryption": "AES256"}))
    text = json.dumps({"Version": "2012-10-17", "Statement": [deny("H", "s3:PutObject", HEADER)]})
    account.client("s3").put_bucket_policy(Bucket=bucket, Policy=text)
    assert account.ask(bucket=bucket)["bucket policy"][0] == "ok"


def test_a_bucket_with_acls_is_for_writers_of_its_account(deployed: Account) -> None:
    assert "has ACLs (ObjectWriter)" in deployed.ask()["ownership"][1]
    deployed.client("s3").put_bucket_ownership_controls(
        Bucket=deployed.name,
        OwnershipControls={"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
    )
    assert "owns each object" in deployed.ask()["ownership"][1]


def test_what_a_role_lacks_is_named(deployed: Account) -> None:
    deployed.lacking = {"s3:AbortMultipartUpload", "s3:ListBucket"}
    verdict, text = deployed.ask(role=ROLE, prefix="sales/")["rights"]
    assert verdict == "do"
    assert f"lacks s3:AbortMultipartUpload, s3:ListBucket at s3://{deployed.name}/sales/" in text


def test_a_role_is_given_by_its_arn(deployed: Account) -> None:
    for role in ("spark", "arn:aws:sts::123456789012:assumed-role/spark/me"):
        verdict, text = deployed.ask(role=role, prefix="sales/")["rights"]
        assert verdict == "do"
        assert text.startswith(f"--role {role} is no ARN of a role: give arn:aws:iam::")


def test_a_prefix_is_a_directory_with_its_slash_or_without(deployed: Account) -> None:
    """The role's policy is for what lies below it."""
    for prefix in ("sales", "sales/", "/sales"):
        assert deployed.ask(prefix=prefix)["rights"][1].endswith("/sales/")


def test_who_may_not_simulate_is_told_to_try(deployed: Account) -> None:
    deployed.denied = {"iam"}
    verdict, text = deployed.ask(role=ROLE, prefix="sales/")["rights"]
    assert verdict == "skipped"
    assert "not allowed" in text
    assert "give --prefix alone" in text


@pytest.mark.parametrize("lacking", [None, *ON_OBJECTS, *ON_JOBS, *ON_BUCKET])
def test_the_callers_own_rights_are_tried_and_nothing_is_changed(
    deployed: Account, lacking: str | None
) -> None:
    refused = {
        "s3:PutObject": "UploadPart",
        "s3:ListMultipartUploadParts": "ListParts",
        "s3:GetBucketNotification": "GetBucketNotificationConfiguration",
        "s3:ListBucket": "ListObjectsV2",
    }
    if lacking:
        deployed.refused = refused.get(lacking, lacking.removeprefix("s3:"))
    before = deployed.left()
    verdict, text = deployed.ask(prefix="sales/")["rights"]
    where = f"s3://{deployed.name}/sales/"
    if lacking:
        assert (verdict, text.split(":")[0]) == ("do", "the caller lacks s3")
        assert f"lacks {lacking} at {where}" in text
    else:
        assert (verdict, text) == ("ok", f"the caller may do what a writer needs at {where}")
    assert deployed.left() == before == (0, 0)


def test_the_rights_are_those_that_the_documentation_gives() -> None:
    objects, bucket, jobs, *_ = writer_policy("arn", "p")["Statement"]
    assert jobs["Action"] == ON_JOBS[0]
    assert sorted(objects["Action"]) == sorted(ON_OBJECTS)
    assert sorted(bucket["Action"]) == sorted(ON_BUCKET)


@pytest.fixture
def asked(deployed: Account, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Account:
    def surroundings(*, name: str | None, **options: Any) -> Surroundings:
        assert name == "dev"
        return Surroundings(REGION, deployed.connect, deployed.name, **options)

    monkeypatch.setattr(sys.modules["s3commit.cli.doctor"], "surroundings", surroundings)
    return deployed


def test_a_line_a_check_and_exit_code_0(desk: Desk, asked: Account) -> None:
    result = desk.run("doctor", "--name", "dev", "--role", ROLE)
    assert [line[:4] for line in result.stdout.splitlines()] == [
        "VERD",
        *["ok  "] * (1 + len(CHECKS)),
    ]
    assert result.stderr == ""


def test_json_and_exit_code_1_if_one_fails(desk: Desk, asked: Account) -> None:
    asked.free = 10
    result = desk.run("doctor", "--name", "dev", "--output", "json", exit_code=1)
    told = json.loads(result.stdout)
    assert told["ok"] is False
    assert [one["check"] for one in told["checks"] if one["verdict"] == "do"] == [
        "functions at once"
    ]
    assert result.stderr == "Error: 1 check of 8 failed: functions at once\n"


def test_as_it_is_run_it_finds_its_own_region_and_credentials(
    moto_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    result = run("doctor", exit_code=1)
    assert "account            no region: set AWS_REGION" in result.stdout
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    result = run("doctor", exit_code=1)
    assert "account            no AWS credentials" in result.stdout
    assert "skipped  notifications      not without region and credentials" in result.stdout


def test_an_endpoint_that_does_not_know_lambdas_settings_is_one_clear_line(
    moto_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of the embedded runtime, which answers with a page of HTML."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    monkeypatch.setenv("AWS_REGION", REGION)
    told = run("doctor", "--name", "nobody").stdout
    (line,) = (line for line in told.splitlines() if "functions at once" in line)
    assert line.startswith("skipped  functions at once  not known here: the endpoint has no such")
    assert "<" not in told
