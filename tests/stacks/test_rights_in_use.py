"""The handlers, on S3 and DynamoDB of a real server, call nothing that their roles forbid.

The server asks nobody for rights, so each call is noted and held against `stacks.access`; nothing
is granted that no job of any fate needs.
"""

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

import pytest

from acceptance.judged import SAMPLES, allowed
from s3commit.core.documents.bucket_owner import OWNER
from s3commit.core.formats.layout import JobDirectory, bad_element
from s3commit.core.model.destination import Destination
from stacks.access import ACCESS, RESULT
from stacks.config import ConfigError, DeployConfig
from tests.core.world import BUCKET
from tests.engines.judges.variants import Variant
from tests.stacks.fates import played
from tests.stacks.recorder import Needed, Recorder
from tests.stacks.synthesized import NARROWED, REGULATED, Assembly


@pytest.fixture(scope="module")
def recorder(moto_endpoint: str, assembly: Assembly) -> Iterator[Recorder]:
    """Jobs of every fate, and what their functions called."""
    with played(moto_endpoint, assembly) as played_by:
        yield played_by


@pytest.fixture
def needed(recorder: Recorder) -> dict[str, set[Needed]]:
    return recorder.needed


@pytest.mark.parametrize("name", sorted(set(ACCESS) - {"dispatch", "catalog"}))
def test_a_role_allows_what_its_function_calls(needed: dict[str, set[Needed]], name: str) -> None:
    assert needed[name]
    access = ACCESS[name]
    for action, key in needed[name]:
        may = (
            allowed(access, action, key)
            if key
            else action in (*access.bucket, *access.ledger, *access.index)
        )
        assert may, f"{name} called {action} on {key or 'the bucket or table'}"


@pytest.mark.parametrize("name", sorted(set(ACCESS) - {"dispatch", "catalog"}))
def test_a_role_has_no_right_that_its_function_never_needs(
    needed: dict[str, set[Needed]], name: str
) -> None:
    access = ACCESS[name]
    assert {*access.bucket, *access.ledger, *access.index} <= {action for action, _ in needed[name]}
    for pattern, granted in access.objects.items():
        called = {action for action, key in needed[name] if key and fnmatchcase(key, pattern)}
        assert set(granted) <= called, pattern


# The names of the protocol, as patterns of what the recorder saw, and an object of each name.
DIRECTORY = JobDirectory(Destination(BUCKET, "tenants/_day=1/sales/"), str(uuid.UUID(int=1)))
NAMES = {
    "*/_job.json": DIRECTORY.job,
    "*/_request.json": DIRECTORY.request,
    "*/_result.json": DIRECTORY.result,
    "*/_tasks/*.pendingset": DIRECTORY.manifest("t0", "a0"),
    "_s3commit/*/_index-*.json": DIRECTORY.index("5" * 64),
    "_s3commit/*/_pages/*": DIRECTORY.page("5" * 64),
    "_s3commit/*/_decision.json": DIRECTORY.decision,
    "_s3commit/_keys/*": DIRECTORY.key_note("5" * 64),
    "_s3commit/_owner.json": OWNER,
    "*/_commits/_*.jsonl": DIRECTORY.commits,
    "*/_commits/_once/*": DIRECTORY.once("5" * 64),
    "*/_SUCCESS": DIRECTORY.success,
}
# What no fate here needs, and a role has.
SELDOM = {
    ("end", "DeleteObject", "*/_result.json"): "of a job whose documents went meanwhile",
    ("end", "DeleteObject", "*/_SUCCESS"): "of a table within, whose files a job replaces",
    ("sweep", "DeleteObject", "*/_tasks/*.pendingset"): "it has all below a job's directory",
}


def test_i12_no_role_writes_or_deletes_a_name_of_the_protocol_that_is_not_its_own(
    needed: dict[str, set[Needed]],
) -> None:
    found = set()
    for name in ACCESS:
        for action in ("PutObject", "DeleteObject"):
            called = [key for done, key in needed[name] if done == action]
            for pattern, key in NAMES.items():
                assert fnmatchcase(key, pattern)
                if allowed(ACCESS[name], action, key) and not any(
                    fnmatchcase(one, pattern) for one in called
                ):
                    found.add((name, action, pattern))
    assert found == set(SELDOM)


@pytest.mark.parametrize(
    "below", ["dt=1/", "_day=1/", "", "_temporary/0/", "_commits2/", "x_SUCCESS/"]
)
def test_i2_a_denial_meets_no_data(below: str) -> None:
    """Else a decided job would not end. Whoever has a name that is denied is refused before."""
    for file in ("part-0", "_part-0", "_SUCCESS-0", "_job.json-0"):
        key = f"{DIRECTORY.destination.prefix}{below}{file}-{DIRECTORY.job_id}.parquet"
        assert bad_element(key) is None
        assert allowed(ACCESS["complete"], "PutObject", key)
        assert allowed(ACCESS["end"], "DeleteObject", key)
        assert allowed(ACCESS["end"], "AbortMultipartUpload", key)
    for element in ("_commits", "_s3commit", f"__magic_job-{DIRECTORY.job_id}"):
        assert bad_element(f"sales/{element}/part-0.parquet") == element
    assert bad_element("sales/_SUCCESS") == "_SUCCESS"


def test_i12_a_denial_takes_something_away() -> None:
    denials = [
        (access, action, one)
        for access in ACCESS.values()
        for action, patterns in access.denied.items()
        for one in patterns
    ]
    assert denials
    for access, action, one in denials:
        given = [pattern for pattern, granted in access.objects.items() if action in granted]
        assert any(fnmatchcase(one, wider) for wider in given), one


# Rights below some prefixes alone (the parameter ``prefixes``)

ON_KEYS = ("GetObject", "PutObject", "DeleteObject", "AbortMultipartUpload")
INSIDE = ("sales/", "sales/eu/t/", "finance/eu/t/")
OUTSIDE = ("sales-2/", "sal/", "finance/", "finance/eu-2/", "x/sales/", "x/_s3commit/")


class Narrowed:
    """The policies of the narrowed deployment, by function; and what IAM makes of them.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
    """

    def __init__(self) -> None:
        variant = Variant(NARROWED)
        (self.bucket,) = (one["Arn"] for one in variant.of_type("AWS::S3::Bucket"))
        policies = [one["Properties"] for one in variant.of_type("AWS::IAM::Policy")]
        self.statements: dict[str, list[dict[str, Any]]] = {}
        for one in variant.of_type("AWS::Lambda::Function"):
            role = one["Properties"]["Role"].rpartition("/")[2]
            self.statements[one["Properties"]["Handler"].removesuffix(".handler")] = [
                statement
                for each in policies
                for statement in each["PolicyDocument"]["Statement"]
                if role in each["Roles"]
            ]

    def may(self, name: str, action: str, key: str = "", prefix: str | None = None) -> bool:
        """``prefix`` is a listing's; None: the request has none, as a HEAD."""
        resource = f"{self.bucket}/{key}" if key else self.bucket
        effects = set()
        for one in self.statements[name]:
            only = one.get("Condition", {}).get("StringLikeIfExists", {}).get("s3:prefix", "*")
            if (
                f"s3:{action}" in many(one["Action"])
                and any(fnmatchcase(resource, at) for at in many(one["Resource"]))
                and (prefix is None or any(fnmatchcase(prefix, at) for at in many(only)))
            ):
                effects.add(one["Effect"])
        return effects == {"Allow"}


def many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.fixture(scope="module")
def narrowed() -> Narrowed:
    return Narrowed()


@pytest.mark.parametrize("name", sorted(ACCESS))
def test_i7_narrowed_a_role_has_the_same_rights_inside_and_none_elsewhere(
    narrowed: Narrowed, name: str
) -> None:
    """But a job that is refused elsewhere has to be told so."""
    for action, place, sample in product(ON_KEYS, (*INSIDE, *OUTSIDE), SAMPLES):
        own = sample.startswith("_s3commit/")
        key = sample if own else place + sample.removeprefix("t/")
        told = (name, action) == ("end", "PutObject") and fnmatchcase(key, RESULT)
        may = allowed(ACCESS[name], action, key) and (own or place in INSIDE or told)
        if (name, action) == ("catalog", "GetObject"):  # the lists of its tables, too
            may = may or fnmatchcase(key, "finance/eu/t/*_commits/*")
        assert narrowed.may(name, action, key) == may, f"{name} {action} {key}"
    lists = "ListBucket" in ACCESS[name].bucket
    for prefix in (*INSIDE, "_s3commit/", "sales/__magic_job-x/_job.json"):
        assert narrowed.may(name, "ListBucket", prefix=prefix) == lists, prefix
    for prefix in (*OUTSIDE, "", "s", "sales", "_s3commit"):
        assert not narrowed.may(name, "ListBucket", prefix=prefix), prefix
    assert narrowed.may(name, "ListBucket") == lists, "else S3 answers a HEAD with 403, not 404"


def test_i7_narrowed_the_roles_allow_their_calls(recorder: Recorder, narrowed: Narrowed) -> None:
    for name, needed in recorder.needed.items():
        for action, key in needed:
            if action in {*ACCESS[name].ledger, *ACCESS[name].index}:
                continue
            assert narrowed.may(name, action, key), f"{name} called {action} on {key}"
        for prefix in recorder.listed[name]:
            assert narrowed.may(name, "ListBucket", prefix=prefix), f"{name} listed {prefix}"
    assert len(recorder.listed["decide"]) > 10


def test_the_policies_of_the_most_prefixes_are_not_too_large_for_iam() -> None:
    """https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"""
    most = [f"{letter * 22}/" for letter in "abcdefghijk"]
    given = {**REGULATED, "name": "n" * 20, "bucketName": "b" * 63, "prefixes": most}
    variant = Variant(given)
    sizes: Counter[str] = Counter()
    for one in variant.of_type("AWS::IAM::Policy"):
        text = json.dumps(one["Properties"]["PolicyDocument"], separators=(",", ":"))
        for role in one["Properties"]["Roles"]:
            sizes[role] += len(text.replace("arn:aws:", "arn:aws-us-gov:"))
    assert 9_000 < max(sizes.values()) <= 10_240
    assert not [*variant.of_type("AWS::IAM::ManagedPolicy")]
    with pytest.raises(ConfigError, match="has 12, too many for"):
        DeployConfig.from_context({"s3commit:prefixes": [*most, f"{'l' * 22}/"]})
