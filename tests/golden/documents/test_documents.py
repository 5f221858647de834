"""What earlier versions wrote is read, and their jobs are gone on with, in every state of a job."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest
from boto3.dynamodb.types import TypeDeserializer

from s3commit.core.formats.documents import (
    decode_job,
    decode_request,
    decode_result,
    encode_request,
)
from s3commit.core.formats.layout import JobDirectory, is_data, parse_directory
from s3commit.core.formats.manifest import decode_pendingset
from s3commit.core.formats.published import decode_commit_manifest, success_job_id
from s3commit.core.job.decision_record import read_decision
from s3commit.core.job.partitions import read_partitions
from s3commit.core.job.plan import read_plan
from s3commit.core.job.replace_list import listed_files, read_index
from s3commit.core.model.job import CommitRequest, CountedAttempt, Destination
from s3commit.core.model.locks import Claim, Claimed, LockMode
from s3commit.core.model.states import JobState
from tests.core.lost_world import Checked
from tests.core.swept import LIMITS
from tests.core.world import BUCKET, job_directory
from tests.golden.documents.kept import Json, Kept, as_bytes

CASES = sorted(Path(__file__).parent.glob("*/*.json"))
ENDED_CASES = ("committed", "committed_untidy", "aborted", "rolled_back")
SEEN_IF_COMMITTED = (b"new", b"stays")
SEEN_IF_NOT = (b"goes", b"stays")


def kept(endpoint: str, path: Path) -> tuple[Kept, Json]:
    case: Json = json.loads(path.read_text())
    world = Kept(endpoint, versioned=case["versioned"])
    world.load(case)
    return world, case


def named(*names: str) -> list[Any]:
    """The cases of those names, of every version."""
    return [
        pytest.param(path, id=f"{path.parent.name}-{path.stem}")
        for path in CASES
        if not names or path.stem in names
    ]


@pytest.fixture(params=named())
def loaded(request: pytest.FixtureRequest, moto_endpoint: str) -> tuple[Kept, Json]:
    """Each case in turn."""
    return kept(moto_endpoint, request.param)


# What stands in a document or an item, and what was read of it. A name stands for the attribute of
# that name, or for one of these; those of the second list are not read, or not as they stand.
ATTRIBUTES = {
    "commits": "files",
    "destinationKey": "key",
    "extraData": "extra",
    "from": "start",
    "jobDigest": "job_sha256",
    "to": "stop",
    "unit": "number",
}
APART = {"version", "action", "filename", "date", "partCount", "iostatistics"}
# An item's directory follows from its destination and its job's id.
APART |= {"directory", "pk", "sk", "shelf", "token", "expires_at"}


def agrees(stands: Any, read: Any) -> None:
    """All that stands there was read."""
    if isinstance(read, Destination):
        assert stands == read.uri
    elif isinstance(stands, dict) and is_dataclass(read):
        for name in stands.keys() - APART:
            snake = re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)
            agrees(stands[name], getattr(read, ATTRIBUTES.get(name, snake)))
    elif isinstance(stands, dict) and isinstance(read, Mapping):
        assert {_plain(name): _plain(value) for name, value in read.items()} == {
            _plain(name): _plain(value) for name, value in stands.items()
        }
    elif isinstance(stands, list):
        for one, other in zip(stands, read, strict=True):
            agrees(one, other)
    else:
        etag = isinstance(stands, dict) and isinstance(read, str)
        assert (stands["etag"] if etag else stands) == read


def _plain(value: Any) -> Any:
    """A partition in its two forms."""
    is_text = isinstance(value, str)
    return value.removeprefix(f"s3://{BUCKET}/").rstrip("/") if is_text else value


def job(world: Kept, raw: Json) -> None:
    record = world.ledger.job(f"{raw['pk'].removeprefix('JOB#')}-{raw['sk']}")
    assert record is not None
    assert world.ledger.jobs_with_id(record.job_id) == [record]
    assert record in list(world.ledger.jobs_in(record.state, before="9"))
    assert Destination(raw.pop("bucket"), raw.pop("prefix")) == record.destination
    agrees(raw, record)


def attempt(world: Kept, raw: Json) -> None:
    ids = raw["task_id"], raw["attempt_id"]
    noted = world.ledger.attempts(raw["ref"])
    (found,) = (one for one in noted if (one.task_id, one.attempt_id) == ids)
    agrees(raw, found)


def claim(world: Kept, raw: Json) -> None:
    node, _, ref = raw["sk"].rpartition("/")
    one = Claim(node, LockMode(raw["pk"].split("#")[1]))
    epoch = int(raw.get("epoch", 0))
    claimed = Claimed(one, ref, raw.get("waits", False), raw.get("asked", ""), epoch)
    assert claimed in list(world.ledger.claims(one, below=False))


ITEMS: dict[str, Callable[[Kept, Json], None]] = {
    "JOB": job,
    "ATTEMPTS": attempt,
    "CLAIMS": claim,
}


def job_json(_world: Kept, directory: JobDirectory, body: bytes) -> None:
    agrees(json.loads(body), decode_job(body, directory))


def replaced(world: Kept, directory: JobDirectory, body: bytes) -> None:
    record = world.record(directory)
    assert record.replaced is not None
    if body.startswith(b'{"version"'):
        agrees(json.loads(body)["pages"], read_index(world.store, directory, record.replaced))
    else:
        groups = listed_files(world.store, directory, record.replaced)
        agrees(_lines(body), [one for group in groups for one in group])


def commits(world: Kept, directory: JobDirectory, body: bytes) -> None:
    header, files = decode_commit_manifest(body)
    stands, *lines = _lines(body)
    assert stands.pop("destination") == header.destination
    agrees([stands, *lines], [header, *files])


def partitions(world: Kept, directory: JobDirectory, body: bytes) -> None:
    found = read_partitions(world.ports, directory, world.record(directory))
    agrees(json.loads(body)["partitions"], found)


def success(world: Kept, directory: JobDirectory, body: bytes) -> None:
    assert success_job_id(body) == json.loads(body)["jobId"] != ""


def _lines(body: bytes) -> list[Json]:
    return [json.loads(line) for line in body.splitlines()]


# By what their keys have in them. Of who has a key, a case tells: it is never read by itself.
DOCUMENTS: dict[str, Callable[[Kept, JobDirectory, bytes], object]] = {
    "/job.json": job_json,
    "/request.json": lambda _, directory, body: agrees(
        json.loads(body), decode_request(body, directory)
    ),
    "/result.json": lambda _, directory, body: agrees(json.loads(body), decode_result(body)),
    ".pendingset": lambda _, directory, body: agrees(
        json.loads(body), decode_pendingset(body, directory)
    ),
    "/plan-": lambda world, directory, body: agrees(
        json.loads(body), read_plan(world.ports, directory, world.record(directory))
    ),
    "/partitions-": partitions,
    "/replaced": replaced,
    "/decision.json": lambda world, directory, body: agrees(
        json.loads(body), read_decision(world.ports, directory)
    ),
    "/once/": lambda *_: None,
    "/_commits/": commits,
    "/_SUCCESS": success,
}


def test_every_item_and_every_document_is_read(loaded: tuple[Kept, Json]) -> None:
    world, case = loaded
    jobs = [job_directory(one["jobId"]) for one in case["jobs"]]
    assert [world.record(directory).state for directory in jobs] == [
        one["state"] for one in case["jobs"]
    ]
    for item in case["items"]:
        raw: Json = TypeDeserializer().deserialize({"M": item})
        ITEMS[raw["pk"].partition("#")[0]](world, raw)
    for key, (*_, last) in case["objects"].items():
        if is_data(key) or key.endswith("/") or last["body"] is None:
            continue
        if "/__magic_job-" in key:
            directory = parse_directory(BUCKET, key)
        else:  # one of the pipeline's own, which has the job's ref or its id
            directory = next((one for one in jobs if one.ref in key or one.job_id in key), jobs[0])
        read = next(read for word, read in DOCUMENTS.items() if word in key)
        read(world, directory, as_bytes(last["body"]))


def test_a_job_is_gone_on_with_and_ends_whole(loaded: tuple[Kept, Json]) -> None:
    world, case = loaded
    for one in case["jobs"]:
        directory = job_directory(one["jobId"])
        if world.store.head(BUCKET, directory.request) is None:
            counted = tuple(
                CountedAttempt(
                    one.task_id,
                    one.attempt_id,
                    one.manifest[len(directory.prefix) :],
                    one.sha256,
                    one.files,
                    one.bytes,
                )
                for one in world.ledger.attempts(directory.ref)
            )
            body = encode_request(CommitRequest(directory.job_id, counted))
            world.store.put(BUCKET, directory.request, body)
        world.run(directory, "execution-2")
        result = world.result(directory)
        assert (
            f"{result.outcome} {result.error.code if result.error else ''}".strip() == one["ends"]
        )
        assert world.record(directory).state.value == result.outcome
    check_ended(world, case)


@pytest.mark.parametrize("path", named(*ENDED_CASES))
def test_the_check_and_the_sweep_know_a_job_that_has_ended(moto_endpoint: str, path: Path) -> None:
    world, case = kept(moto_endpoint, path)
    report = Checked(world).report()
    assert report.is_sound
    assert report.open_jobs == []
    untidy = path.stem == "committed_untidy"
    world.later(LIMITS.retention + LIMITS.stuck)
    assert world.sweep_and_settle().retired == (not untidy)
    assert world.sweep().retired == untidy
    assert [key for key in world.all_keys() if "/__magic" in key or "_s3commit/" in key] == []
    check_ended(world, case)


@pytest.mark.parametrize("path", named("open"))
def test_the_sweep_gives_a_job_up_whose_driver_never_spoke(moto_endpoint: str, path: Path) -> None:
    world, case = kept(moto_endpoint, path)
    for pause in (LIMITS.abandoned + LIMITS.stuck, LIMITS.stuck):
        world.later(pause + 1)
        world.sweep()
    world.settle()
    (one,) = case["jobs"]
    assert world.record(job_directory(one["jobId"])).state is JobState.ABORTED
    assert set(world.data().values()) == {b"stays"}


def check_ended(world: Kept, case: Json) -> None:
    """All is visible that must be, nothing else is, and no upload is open."""
    seen = SEEN_IF_COMMITTED if case["jobs"][-1]["ends"] == "COMMITTED" else SEEN_IF_NOT
    objects = [(key, one["body"]) for key, found in case["objects"].items() for one in found]
    parts = [(one["key"], part) for one in case["uploads"].values() for part in one["parts"]]
    bodies = [(key, as_bytes(body)) for key, body in [*objects, *parts] if is_data(key)]
    assert world.data() == {key: body for key, body in bodies if body.startswith(seen)}
    assert world.open_uploads() == []
    assert not [one for one in world.save()["items"] if one["pk"]["S"].startswith("CLAIMS")]


def test_every_state_item_and_document_is_kept() -> None:
    cases = [json.loads(path.read_text()) for path in CASES]
    assert {one["state"] for case in cases for one in case["jobs"]} == set(JobState)
    assert {item["pk"]["S"].partition("#")[0] for case in cases for item in case["items"]} == {
        *ITEMS
    }
    keys = [key for case in cases for key in case["objects"]]
    assert [word for word in DOCUMENTS if not any(word in key for key in keys)] == []
