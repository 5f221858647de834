"""Parameters are checked before anything is built, and each is documented."""

import json
import re
from dataclasses import fields
from typing import Any

import pytest

from s3commit.aws.env import LEAST, STEPS, Shares, shares
from s3commit.core.formats.layout import ALIAS_ENDS
from s3commit.core.model.limits import FORGOTTEN_DAYS
from stacks.config import LOG_PERIODS, ConfigError, DeployConfig, parameter_name
from stacks.layers import ROOT
from tests.stacks.synthesized import KEY_ARN, OPERATOR, TOPIC_ARN

# What a parameter makes sense with only.
WITH: dict[str, dict[str, Any]] = {
    "operators": {"protectNames": "all"},
    "subnets": {"securityGroups": "sg-0123abcd"},
    "securityGroups": {"subnets": "subnet-0123abcd"},
}
GOOD: dict[str, tuple[Any, Any]] = {
    "name": ("dev", "dev"),
    "bucketName": ("my-lake", "my-lake"),
    "importBucket": ("my.lake", "my.lake"),
    "events": ("eventbridge", "eventbridge"),
    "kmsKeyArn": (KEY_ARN, KEY_ARN),
    "encryption": ("AES256", "AES256"),
    "logKeyArn": (KEY_ARN, KEY_ARN),
    "subnets": ("subnet-0123abcd", ("subnet-0123abcd",)),
    "securityGroups": (["sg-0123abcd"], ("sg-0123abcd",)),
    "jobKeyArns": (KEY_ARN, (KEY_ARN,)),
    "accessLogsBucket": ("logs", "logs"),
    "versioned": ("true", True),
    "noncurrentDays": ("7", 7),
    "abortIncompleteDays": (3, 3),
    "ledgerTtlDays": ("120", 120),
    "logRetentionDays": ("365", 365),
    "retainLogs": (True, True),
    "executionLogs": ("data", "data"),
    "architecture": ("x86_64", "x86_64"),
    "maxConcurrency": ("20", 20),
    "lambdaConcurrency": ("10", 10),
    "sweepMinutes": ("5", 5),
    "stuckMinutes": (30, 30),
    "abandonedHours": ("48", 48),
    "retentionDays": (60, 60),
    "prefixes": ("sales/,finance/eu=1/", ("sales/", "finance/eu=1/")),
    "replacePrefixes": ("sales/,finance/eu/", ("sales/", "finance/eu/")),
    "protectNames": ("documents", "documents"),
    "operators": (OPERATOR, (OPERATOR,)),
    "freshTables": ("sales/=26,finance/eu=1/=168", ("sales/=26", "finance/eu=1/=168")),
    "catalogs": ({"a/b=1/": "d.t", "c/": "d.u dropEmpty"}, ("a/b=1/=d.t", "c/=d.u dropEmpty")),
    "alarms": ("false", False),
    "alarmEmail": ("a@b.example", "a@b.example"),
    "alarmTopicArn": (TOPIC_ARN, TOPIC_ARN),
    "dashboard": (False, False),
    "reserveWorkers": ("true", True),
    "change": ("importBucket, subnets", ("importBucket", "subnets")),
}
BAD: dict[str, list[Any]] = {
    "name": ["", "Dev", "1st", "a" * 21, 3],
    "bucketName": ["x", "My-Lake", "a/b", "a..b", "a.-b", "a-.b", "192.168.1.1"],
    "importBucket": ["s3://lake", *(f"lake{end}" for end in ALIAS_ENDS)],
    "events": ["sns", True],
    "kmsKeyArn": ["alias/mine", "arn:aws:kms:eu-central-1:111122223333:alias/mine"],
    "encryption": ["kms", ""],
    "logKeyArn": ["alias/mine"],
    "subnets": ["vpc-0123abcd", "subnet-0123abcd;subnet-0123abce"],
    "securityGroups": ["0123abcd"],
    "jobKeyArns": ["alias/mine", [7], None],
    "accessLogsBucket": ["-"],
    "versioned": ["yes", 1, None],
    "noncurrentDays": ["0", "a week", True],
    "abortIncompleteDays": ["1", "366", "-3"],
    "ledgerTtlDays": ["1.5"],
    "logRetentionDays": ["31", None],
    "retainLogs": ["yes", None],
    "executionLogs": ["ALL", "", True],
    "architecture": ["arm"],
    "maxConcurrency": ["0", "41"],
    "lambdaConcurrency": ["7", "", "all"],
    "sweepMinutes": ["4", "1441"],
    "stuckMinutes": ["0"],
    "abandonedHours": ["0", "a day"],
    "retentionDays": [0],
    "prefixes": [
        *("", [], "sales", "/", "/sales/", "a//", "a/../", "a/,", [""], None, "a b/", "ä/"),
        *("a*/", "a?/", "a/${aws:username}/", "a/$/"),
    ],
    "replacePrefixes": ["sales", "/", "/sales/", "a//", "a/../", "a/,", [""], [1], 7, None, "a\n/"],
    "protectNames": ["true", "_SUCCESS", None],
    "operators": ["ops", "arn:aws:iam::1:role/ops", f"{OPERATOR},", [7], None],
    "freshTables": [
        *(
            f"{'a' * 200}/=3",
            "sales/",
            "sales=26",
            "sales/=0",
            "sales/=169",
            "sales/=x",
            "/=2",
            "a/../=2",
            "ä/=2",
        )
    ],
    "catalogs": [
        *({place: "db.t"} for place in ("a", "/", "a//", "/a/", "../", "a*/", "$a/")),
        *({"a/": table} for table in ("t", "Db.t", "db.t.u", "db.", "db.t*", None, "db.t drop")),
        {f"{number:0100}/": f"d.t{number}" for number in range(20)},
    ],
    "alarms": ["off", 0],
    "alarmEmail": ["nobody"],
    "alarmTopicArn": ["alarms", "arn:aws:sqs:eu-central-1:111122223333:alarms"],
    "dashboard": ["none"],
    "reserveWorkers": [5],
    "change": ["a-b", [1], 1],
}


FIELDS = {parameter_name(each.name): each.name for each in fields(DeployConfig)}


def _read(**parameters: Any) -> DeployConfig:
    return DeployConfig.from_context({f"s3commit:{key}": each for key, each in parameters.items()})


def test_every_parameter_is_tried_here() -> None:
    assert set(GOOD) == set(BAD) == set(FIELDS)


@pytest.mark.parametrize("parameter", sorted(GOOD))
def test_a_good_value_is_taken(parameter: str) -> None:
    given, expected = GOOD[parameter]
    said = given if isinstance(given, str) else json.dumps(given)  # as the command line has it
    for one in (given, said):
        parameters = {**WITH.get(parameter, {}), parameter: one}
        assert getattr(_read(**parameters), FIELDS[parameter]) == expected


@pytest.mark.parametrize(
    ("parameter", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
def test_a_bad_value_is_refused_in_one_line_that_names_it(parameter: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"^parameter s3commit:{parameter}=.* must be .*$"):
        _read(**{parameter: value})


def test_an_unknown_parameter_is_refused_with_those_known() -> None:
    told = r"unknown parameter s3commit:bucket; known are .*bucketN"
    with pytest.raises(ConfigError, match=told):
        _read(bucket="lake")


def test_the_context_of_others_is_left_alone() -> None:
    assert DeployConfig.from_context({"@aws-cdk/core:x": True, "other": 1}) == DeployConfig()


@pytest.mark.parametrize(
    "parameter", ["bucketName", "versioned", "abortIncompleteDays", "protectNames"]
)
def test_an_imported_bucket_is_not_configured(parameter: str) -> None:
    with pytest.raises(ConfigError, match=f"leave out {parameter} and set that on the bucket"):
        _read(importBucket="lake", **{parameter: GOOD[parameter][0]})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"operators": OPERATOR}, "operators is for s3commit:protect"),
        ({"subnets": "subnet-0123abcd"}, "subnets and s3commit:securityGroups go together"),
        ({"alarmEmail": "a@b.example", "alarmTopicArn": TOPIC_ARN}, "its own subscriptions"),
        ({"alarms": False, "alarmTopicArn": TOPIC_ARN}, "alarms=false makes none"),
        ({"alarms": False, "freshTables": "a/=1"}, "alarms=false makes none"),
        ({"change": "name,all"}, "change names no parameter: all"),
        ({"encryption": "aws:kms"}, "encryption=aws:kms needs the key s3commit:kmsKeyArn"),
        ({"catalogs": {"a/": "d.t", "a1/": "d.u", "a/b/": "d.v"}}, "has a prefix in another one's"),
        ({"catalogs": "a/=d.t", "lambdaConcurrency": LEAST + 1}, "must be at least 10 with s3c"),
        ({"prefixes": "a/", "catalogs": "a-2/=d.t"}, "has none for a-2/, which"),
        ({"prefixes": "a/b/", "freshTables": "a/=2"}, "has none for a/, which"),
        ({"freshTables": "a/=2,a/=3"}, "freshTables has a prefix twice"),
        ({"freshTables": {"a/b/": 2, "a--b/": 2}}, "freshTables has a prefix twice"),
        ({"prefixes": [f"{one}/" for one in range(20)]}, "has 20, too many for the 10,240"),
        ({"prefixes": "x" * 1200 + "/"}, "has 1, too many for"),
        ({"retentionDays": 9, "ledgerTtlDays": 10}, "at least 2 less than s3commit:ledgerTtlDays"),
    ],
)
def test_what_goes_together_is_given_together(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        _read(**given)


def test_the_ledger_outlives_the_documents() -> None:
    assert _read(retentionDays=8, ledgerTtlDays=10).retention_days == 8


def test_i6_decision_records_outlast_the_order_of_overwrites() -> None:
    assert _read(retentionDays=FORGOTTEN_DAYS).retention_days == FORGOTTEN_DAYS
    with pytest.raises(ConfigError):
        _read(retentionDays=FORGOTTEN_DAYS - 1)


def test_a_prefix_inside_another_one_adds_nothing() -> None:
    assert _read().served == ("",)
    given = ["b/c/", "a/", "b/c/", "a-2/", "a/b/", "b/c/d/"]
    assert _read(prefixes=given).served == ("a-2/", "a/", "b/c/")


@pytest.mark.parametrize(
    ("given", "expected"),
    [("", ()), ([], ()), (["a b/ü=1/"], ("a b/ü=1/",)), (" a/, b/ ", ("a/", "b/"))],
)
def test_replacing_is_allowed_nowhere_by_an_empty_list(given: Any, expected: Any) -> None:
    assert _read(replacePrefixes=given).replace_prefixes == expected
    assert _read().replace_prefixes == ("",), "everywhere, unless a parameter says so"


def test_the_list_fits_into_the_environment_of_a_function() -> None:
    with pytest.raises(ConfigError, match=r"must be .* at most 2,000 bytes"):
        _read(replacePrefixes=[f"{number:0100d}/" for number in range(20)])


def test_the_contexts_that_the_pages_show_are_taken() -> None:
    pages = "".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    shown = re.findall(r"CDK_CONTEXT_JSON='(.+?)'", pages, re.DOTALL)
    assert all(DeployConfig.from_context(json.loads(one)).given for one in shown)
    assert shown


def test_every_parameter_is_in_the_deployment_guide() -> None:
    guide = (ROOT / "docs" / "deploy.md").read_text()
    cells = re.findall(r"^\| (`[^|]+`) \|", guide, re.MULTILINE)
    rows = {name for cell in cells for name in re.findall(r"`([A-Za-z]+)`", cell)}
    assert set(GOOD) <= rows
    assert all(f"{days}" in guide for days in LOG_PERIODS)


def test_of_few_functions_at_once_each_kind_has_a_share() -> None:
    """The least that AWS takes for a queue is two."""
    assert _read(lambdaConcurrency=10).shares == Shares(requests=2, manifests=3, workers=2)
    assert _read(lambdaConcurrency=LEAST).shares == Shares(requests=2, manifests=2, workers=1)
    assert _read().shares == Shares(requests=5, manifests=20, workers=472)
    for total in range(LEAST, 200):
        found = shares(total)
        assert min(found.requests, found.manifests) >= 2
        assert found.workers >= 1
        assert found.requests + found.manifests + found.workers + STEPS <= total
