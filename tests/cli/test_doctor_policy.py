"""What `s3commit doctor` says of the policy of a company's bucket."""

import json
from typing import Any

import pytest

from s3commit.aws import env
from s3commit.aws.notifications import SUFFIXES
from tests.cli.account import Account
from tests.cli.test_doctor_bucket import KEY


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


def without(member: str, **other: Any) -> dict[str, Any]:
    statement = deny("Other", "s3:*", VPC)
    del statement[member]
    return statement | other


@pytest.mark.parametrize(
    ("statement", "known"),
    [
        (deny("Tls", "s3:*", {"Bool": {"aws:SecureTransport": "false"}}), True),
        (deny("Deletes", "s3:DeleteObject", VPC), False),
        (deny("Versions", "s3:DeleteObjectVersion", VPC), True),
        (deny("Uploads", "s3:AbortMultipartUpload", {}), False),
        (deny("Lists", "s3:List*", VPC), False),
        (deny("Endpoint", "s3:*", VPC), False),
        (deny("Endpoint", "s3:GetObject", {**VPC, "Bool": {"aws:SecureTransport": "true"}}), False),
        (deny("Other", "s3:*", {"ArnNotLike": {"aws:PrincipalArn": "arn:aws:iam::1:x"}}), False),
        (deny("Ours", "s3:*", {**VPC, "ArnNotLike": {"aws:PrincipalArn": [ROLES]}}), True),
        (deny("Header", "s3:Put*", HEADER), False),
        (deny("Literal", "s3:*", {"StringNotEquals": {"aws:PrincipalArn": ROLES}}), False),
        (deny("Insecure", "s3:*", {**VPC, "Bool": {"aws:SecureTransport": False}}), True),
        (deny("Him", "s3:*", {"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::1:user/bob"}}), True),
        (deny("Them", "s3:*", {"ArnLike": {"aws:PrincipalArn": [ROLES]}}), False),
        (without("Action", NotAction=["s3:Get*", "s3:List*"]), False),
        (without("Action", NotAction="s3:*"), True),
        (without("Resource", Resource="arn:aws:s3:::doctor*/archive/*"), False),  # a table may be
        (without("Resource", Resource="arn:aws:s3:::another/*"), True),
        (without("Principal", NotPrincipal={"AWS": "arn:aws:iam::1:user/bob"}), False),
        (without("Principal", Principal={"AWS": "123456789012"}), False),
        (without("Principal", Principal={"AWS": ["arn:aws:iam::123456789012:root"]}), False),
        (without("Principal", Principal={"AWS": "arn:aws:iam::1:user/bob"}), True),
        (without("Principal", Principal={"Service": "logging.s3.amazonaws.com"}), True),
    ],
)
def test_a_deny_that_may_be_ours(deployed: Account, statement: dict[str, Any], known: bool) -> None:
    text = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    deployed.client("s3").put_bucket_policy(Bucket=deployed.name, Policy=text)
    verdict, told = deployed.finding("bucket policy")
    assert verdict == ("ok" if known else "fix")
    assert (f"by {statement['Sid']} (" in told) is not known


def test_only_an_import_changes_notifications(account: Account) -> None:
    bucket = account.make_bucket(*SUFFIXES)
    statement = deny("Notes", "s3:PutBucketNotification", {})
    text = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    account.client("s3").put_bucket_policy(Bucket=bucket, Policy=text)
    assert account.finding("bucket policy", bucket=bucket)[0] == "fix"
    account.deploy(env.STORAGE_STACK, Parameters="{}")
    assert account.finding("bucket policy", bucket=bucket)[0] == "ok"


@pytest.mark.parametrize(
    ("action", "member", "places", "known"),
    [
        ("s3:*", "Resource", ["/archive/*"], True),
        ("s3:DeleteObject", "Resource", ["/archive/*", "/sales/eu/*"], False),
        ("s3:DeleteObject", "Resource", ["/sal*"], False),
        ("s3:DeleteObject", "Resource", ["/_s3commit/_keys/*"], False),
        ("s3:DeleteObject", "Resource", ["/${aws:username}/*"], False),
        ("s3:Put*", "Resource", [""], True),
        ("s3:List*", "Resource", [""], False),
        ("s3:ListBucket*", "Resource", ["/*"], True),
        ("s3:*", "NotResource", ["/*"], False),  # for the bucket itself
        ("s3:*", "NotResource", ["*"], True),
        ("s3:DeleteObject", "NotResource", ["/*"], True),
        ("s3:DeleteObject", "NotResource", ["/sales/*"], False),
        ("s3:DeleteObject", "NotResource", ["/sales/*", "/_s3commit/*"], True),
        ("s3:DeleteObject", "NotResource", ["/sales/*.tmp", "/_s3commit/*"], False),
    ],
)
@pytest.mark.parametrize("said", ["prefix", "prefixes"])
def test_a_deny_elsewhere_is_not_ours(
    account: Account, said: str, action: str, member: str, places: list[str], known: bool
) -> None:
    bucket = account.make_bucket(*SUFFIXES)
    parameters = json.dumps({"prefixes": ["sales/"]} if said == "prefixes" else {})
    account.deploy(env.STORAGE_STACK, Parameters=parameters)
    arns = [f"arn:aws:s3:::{bucket}{place}" for place in places]
    statement = without("Resource", Action=action, **{member: arns})
    text = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    account.answers["GetBucketPolicy"] = {"Policy": text}
    more = {"prefix": "sales/"} if said == "prefix" else {}
    found = account.finding("bucket policy", bucket=bucket, **more)
    assert found[0] == ("ok" if known else "fix"), found


ALGORITHM = "s3:x-amz-server-side-encryption"
NO_KMS = {"StringNotEquals": {ALGORITHM: "aws:kms"}}
NO_KEY = {"StringNotEqualsIfExists": {f"{ALGORITHM}-aws-kms-key-id": KEY}}


@pytest.mark.parametrize(
    ("condition", "action", "met_by"),
    [
        (HEADER, "s3:PutObject", {"AES256", "aws:kms"}),
        ({"Null": {ALGORITHM: True}}, "s3:PutObject", {"AES256", "aws:kms"}),
        (HEADER, "s3:*", set()),  # a GET has no such header
        (NO_KMS, "s3:PutObject", {"aws:kms"}),
        ({"StringNotLike": {ALGORITHM: ["aws:*"]}}, "s3:PutObject", {"aws:kms"}),
        ({"StringEquals": {ALGORITHM: "AES256"}}, "s3:PutObject", {"", "aws:kms"}),
        ({"Null": {f"{ALGORITHM}-aws-kms-key-id": "true"}}, "s3:PutObject", {"aws:kms"}),
        ({"StringNotEqualsIgnoreCase": {ALGORITHM: "AWS:KMS"}}, "s3:PutObject", {"aws:kms"}),
        ({"StringEqualsIgnoreCase": {ALGORITHM: "aes256"}}, "s3:PutObject", {"", "aws:kms"}),
        ({"ForAllValues:StringEquals": {ALGORITHM: "AES256"}}, "s3:PutObject", {"aws:kms"}),
        (NO_KEY, "s3:PutObject", {"aws:kms"}),
        ({**NO_KMS, **HEADER}, "s3:PutObject", {"AES256", "aws:kms"}),  # both have to hold
    ],
)
@pytest.mark.parametrize("encryption", ["", "AES256", "aws:kms"])
def test_a_deny_without_a_header_is_met_by_the_parameter_that_sends_it(
    account: Account, encryption: str, condition: dict[str, Any], action: str, met_by: set[str]
) -> None:
    bucket = account.make_bucket(*SUFFIXES)
    given = {"encryption": encryption, "kmsKeyArn": KEY} if encryption else {}
    account.deploy(env.STORAGE_STACK, Parameters=json.dumps(given))
    text = json.dumps({"Version": "2012-10-17", "Statement": [deny("H", action, condition)]})
    account.client("s3").put_bucket_policy(Bucket=bucket, Policy=text)
    verdict, _ = account.finding("bucket policy", bucket=bucket)
    assert verdict == ("ok" if encryption in met_by else "fix")
