"""What `s3commit doctor` says of a bucket: notifications, lifecycle, policy, ownership."""

import json
from typing import Any

import pytest

from s3commit.aws import env
from s3commit.aws.notifications import SUFFIXES
from tests.cli.account import Account, aborting
from tests.conftest import REGION


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
        (["/x/_job.json"], True),
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
