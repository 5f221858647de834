"""The handlers, on S3 and DynamoDB of a real server, call nothing that their roles forbid.

The server asks nobody for rights, so each call is noted and held against `stacks.access`; nothing
is granted that no job of any fate needs.
"""

import uuid
from collections.abc import Iterator
from fnmatch import fnmatchcase

import pytest

from acceptance.judged import allowed
from s3commit.core.documents.bucket_owner import OWNER
from s3commit.core.formats.layout import JobDirectory, bad_element
from s3commit.core.model.destination import Destination
from stacks.access import ACCESS
from tests.core.world import BUCKET
from tests.stacks.fates import played
from tests.stacks.recorder import Needed
from tests.stacks.synthesized import Assembly


@pytest.fixture(scope="module")
def needed(moto_endpoint: str, assembly: Assembly) -> Iterator[dict[str, set[Needed]]]:
    """Jobs of every fate, and what their functions called."""
    with played(moto_endpoint, assembly) as recorder:
        yield recorder.needed


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
    for access in ACCESS.values():
        for action, patterns in access.denied.items():
            given = [pattern for pattern, granted in access.objects.items() if action in granted]
            for one in patterns:
                assert any(fnmatchcase(one, wider) for wider in given), one
