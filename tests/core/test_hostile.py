"""Hostile or broken input: the job is refused whole, with a code and one line (I5, I7).

Each manifest meets the pipeline three times: as it arrives, at VerifyManifests, and in a whole
execution, with a neighbour in the same table whose objects and uploads must not be touched.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from s3commit.aws.parallel import ThreadMap
from s3commit.core.commit.ingest_pendingsets import judge_arrival
from s3commit.core.commit.seal_job import seal_job
from s3commit.core.commit.verify_manifests import verify_manifests
from s3commit.core.formats import plan
from s3commit.core.formats.documents import (
    MAX_JOB_BYTES,
    MAX_REQUEST_BYTES,
)
from s3commit.core.formats.manifest import (
    MAX_MANIFEST_BYTES,
    MAX_MANIFEST_VALUES,
    SMALL_MANIFEST_BYTES,
    encode_pendingset,
)
from s3commit.core.formats.ticket import Ticket
from s3commit.core.job import manifests
from s3commit.core.job import plan as planned
from s3commit.core.job.manifests import each_manifest
from s3commit.core.model.errors import InvalidInputError, JobRefusedError
from s3commit.core.model.job import (
    Outcome,
)
from s3commit.core.model.pending import PendingSet
from s3commit.core.verification import manifests as judged
from tests.core.hostile_world import DIRECTORY, NOBODY, Neighbourhood
from tests.core.test_manifest import HOSTILE, change
from tests.core.world import BUCKET, JOB, NEIGHBOUR, REF, World
from tests.fakes.bucket import Version


@pytest.fixture
def world() -> Neighbourhood:
    return Neighbourhood()


def sound_manifest(world: World) -> tuple[bytes, PendingSet]:
    file = world.upload(DIRECTORY, f"part-{JOB}.parquet", b"t3 a0", task="t3", attempt="a0")
    pending = PendingSet(JOB, (file,), "t3", "a0")
    return encode_pendingset(pending), pending


def mutated(path: str, value: Any) -> Callable[[bytes], bytes]:
    def mutate(body: bytes) -> bytes:
        document = json.loads(body)
        change(path, value)(document)
        return json.dumps(document).encode()

    return mutate


def twice(body: bytes) -> bytes:
    document = json.loads(body)
    document["commits"] *= 2
    return json.dumps(document).encode()


def without_end(body: bytes) -> bytes:
    return body[:-20]


MANIFESTS: list[tuple[str, Callable[[bytes], bytes], str]] = [
    *((f"{path}={value}"[:40], mutated(path, value), code) for path, value, code in HOSTILE),
    ("one key twice", twice, "DUPLICATE_KEY"),
    ("truncated", without_end, "BAD_JSON"),
    ("empty", lambda _: b"", "BAD_JSON"),
    ("not UTF-8", lambda body: body.replace(b"sales", b"s\xff\xfes"), "BAD_JSON"),
    ("UTF-16", lambda body: body.decode().encode("utf-16"), "BAD_JSON"),
    ("NUL at the end", lambda body: body + b"\0", "BAD_JSON"),
    ("a JSON key twice", lambda body: body.replace(b"{", b'{"version":3,', 1), "BAD_JSON"),
    ("NaN", lambda body: body.replace(b'"length":5', b'"length":NaN'), "BAD_JSON"),
    ("Infinity", lambda body: body.replace(b'"length":5', b'"length":Infinity'), "BAD_JSON"),
    ("1e400", lambda body: body.replace(b'"length":5', b'"length":1e400'), "BAD_FIELD"),
    ("9999…", lambda body: body.replace(b'"length":5', b'"length":' + b"9" * 4000), "BAD_FIELD"),
    ("99999…", lambda body: body.replace(b'"length":5', b'"length":' + b"9" * 5000), "BAD_JSON"),
    ("deep", lambda body: b'{"x":' * 50_000 + body + b"}" * 50_000, "BAD_JSON"),
    (
        "deep version",
        lambda body: body.replace(b'"version":3', b'"version":' + b"[" * 900 + b"]" * 900),
        "BAD_VERSION",
    ),
]


@pytest.mark.parametrize(
    ("mutate", "code"), [one[1:] for one in MANIFESTS], ids=[one[0] for one in MANIFESTS]
)
def test_i5_i7_a_hostile_manifest_is_refused_at_each_door(
    world: Neighbourhood, mutate: Callable[[bytes], bytes], code: str
) -> None:
    world.open(DIRECTORY)
    good = world.attempt(DIRECTORY, "t0")
    sound, pending = sound_manifest(world)
    bad = world.drop_bytes(DIRECTORY, mutate(sound), pending, "t3", "a0")

    with pytest.raises(InvalidInputError) as at_ingest:
        world.announce(DIRECTORY, bad)
    assert at_ingest.value.code == code
    assert list(world.ledger.attempts(REF)) == []

    world.request(DIRECTORY, good, bad)
    with pytest.raises((JobRefusedError, InvalidInputError)) as at_verify:
        verify_manifests(world.ports, seal_job(world.ports, ticket()))
    assert at_verify.value.code == code

    result = world.refused(code)
    assert result.error is not None
    assert "t3/a0" in result.error.message, "it says which manifest"


def ticket(execution: str = "execution-0") -> Ticket:
    return Ticket(JOB, BUCKET, DIRECTORY.prefix, execution=execution)


class Sparse(bytes):
    """Says that it is long, and is not."""

    length = 0

    def __len__(self) -> int:
        return self.length


def put_sparse(world: World, key: str, length: int) -> None:
    body = Sparse(b"x")
    body.length = length
    world.store._buckets[BUCKET].add(key, Version(None, body, '"x"', {}, "application/json"))


def test_i7_a_manifest_of_100_mb_is_not_read(world: Neighbourhood) -> None:
    world.open(DIRECTORY)
    put_sparse(world, DIRECTORY.prefix + NOBODY.manifest, 100 * 1024**2)
    assert MAX_MANIFEST_BYTES < 100 * 1024**2
    with pytest.raises(InvalidInputError) as at_ingest:
        world.announce(DIRECTORY, NOBODY)
    assert at_ingest.value.code == "TOO_LARGE"
    world.request(DIRECTORY, NOBODY)
    world.refused("TOO_LARGE")


@pytest.mark.parametrize("filling", [b"[],", b'{"":0},', b"0,"])
def test_i7_a_manifest_that_is_all_brackets_is_not_made_objects_of(
    world: Neighbourhood, filling: bytes
) -> None:
    """Within its bytes, and gigabytes of objects once it is parsed."""
    world.open(DIRECTORY)
    sound, pending = sound_manifest(world)
    dense = sound.replace(b"{", b'{"x":[' + filling * MAX_MANIFEST_VALUES + b"0],", 1)
    assert len(dense) < MAX_MANIFEST_BYTES
    bad = world.drop_bytes(DIRECTORY, dense, pending, "t3", "a0")
    world.request(DIRECTORY, bad)
    world.refused("TOO_LARGE")


def test_i12_a_manifest_whose_event_says_that_it_is_too_large_is_not_asked_for(
    world: Neighbourhood,
) -> None:
    world.open(DIRECTORY)
    key = DIRECTORY.prefix + NOBODY.manifest
    with pytest.raises(InvalidInputError) as caught:
        judge_arrival(world.ports, BUCKET, key, size=MAX_MANIFEST_BYTES + 1)
    assert caught.value.code == "TOO_LARGE"
    assert world.plan.count() == 0


@pytest.mark.parametrize("most", ["MAX_JOB_FILES", "MAX_NAMES", "MAX_PLAN_BYTES"])
def test_i12_a_job_that_no_function_could_hold_is_refused_before_its_decision(
    world: Neighbourhood, monkeypatch: pytest.MonkeyPatch, most: str
) -> None:
    """Many manifests, each of allowed size, are too much as well."""
    attempts = [
        world.attempt(DIRECTORY, f"t{number}", files={f"dt={number}/part-{JOB}.csv": b"x"})
        for number in range(3)
    ]
    world.request(DIRECTORY, *attempts)
    if most != "MAX_PLAN_BYTES":
        monkeypatch.setattr(judged, most, 2 if most == "MAX_JOB_FILES" else 10)
    else:
        monkeypatch.setitem(plan._BOUNDS, "max_bytes", 300)
    uploads = world.open_uploads()
    world.before = (world.visible(), [key for key in uploads if JOB not in key])
    world.refused("TOO_LARGE")


def test_i12_large_manifests_are_read_one_at_a_time() -> None:
    """Many side by side, each of allowed size, would be more than a function has."""
    guard = threading.Lock()
    reading = Counter[bool]()
    seen = Counter[bool]()

    def read(size: int, max_bytes: int) -> int:
        if size > max_bytes:
            raise InvalidInputError("too large", code="TOO_LARGE")
        large = size > SMALL_MANIFEST_BYTES
        with guard:
            reading[large] += 1
            seen[large] = max(seen[large], sum(reading.values()))
        time.sleep(0.005)
        with guard:
            reading[large] -= 1
        return size

    sizes = [SMALL_MANIFEST_BYTES, SMALL_MANIFEST_BYTES + 1] * 8
    ports = replace(World().ports, parallel=ThreadMap(4))
    assert sorted(each_manifest(ports, read, sizes)) == sorted(sizes)
    assert seen[True] == 1
    assert seen[False] > 1


@pytest.mark.parametrize("ends", ["committed", "aborted", "rolled back"])
def test_i4_a_job_of_large_manifests_ends_as_one_of_small_ones(
    monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    for module in (manifests, planned):
        monkeypatch.setattr(module, "SMALL_MANIFEST_BYTES", 10)
    world = World()
    world.open(DIRECTORY)
    mark = f"-{JOB}"
    attempts = [
        world.attempt(DIRECTORY, f"t{n}", files={f"{n}{mark}.csv": b"x"}, rows=1) for n in range(5)
    ]
    if ends == "aborted":
        world.request_abort(DIRECTORY)
    else:
        world.request(DIRECTORY, *attempts)
    if ends == "rolled back":
        lost = next(iter(world.store.list_uploads(BUCKET, "sales/")))
        world.plan.run_after(
            "decide", lambda: world.store.abort_upload(BUCKET, lost.key, lost.upload_id)
        )
    world.run(DIRECTORY)
    assert world.open_uploads() == []
    assert len(world.visible()) == (5 if ends == "committed" else 0)


def test_i12_a_list_in_commits_of_any_size_is_not_read_to_remember_its_job() -> None:
    world = World()
    world.request(DIRECTORY, world.attempt(DIRECTORY, "t0"))
    world.run(DIRECTORY)
    for key in (DIRECTORY.result, DIRECTORY.success):
        world.store.delete(BUCKET, key)
    world.ledger.forget(DIRECTORY.ref, generation=world.record(DIRECTORY).generation)
    world.plan.forget_calls()
    world.run(DIRECTORY, "execution-2")
    assert world.result(DIRECTORY).outcome is Outcome.COMMITTED
    assert DIRECTORY.commits not in {call.key for call in world.plan.calls if call.verb == "get"}


@pytest.mark.parametrize(
    ("key", "length"),
    [(DIRECTORY.job, MAX_JOB_BYTES + 1), (DIRECTORY.request, MAX_REQUEST_BYTES + 1)],
    ids=["job.json", "request.json"],
)
def test_i7_a_document_without_end_is_not_read(world: Neighbourhood, key: str, length: int) -> None:
    world.request(DIRECTORY, world.attempt(DIRECTORY, "t0"))
    put_sparse(world, key, length)
    if key == DIRECTORY.job:  # whose uploads they are nobody knows without it: they expire
        world.lose_uploads("sales/part-t0", slice(1))
    world.refused("TOO_LARGE")


# What no manifest shows by itself.


def test_i5_i7_an_upload_of_another_jobs_file_is_not_completed(world: Neighbourhood) -> None:
    """The id is known, the name is ours: S3 has no such upload of that key."""
    [theirs] = [one for one in world.store.list_uploads(BUCKET, "sales/") if NEIGHBOUR in one.key]
    world.open(DIRECTORY)
    _, pending = sound_manifest(world)
    stolen = replace(pending.files[0], upload_id=theirs.upload_id)
    world.request(DIRECTORY, world.drop(DIRECTORY, replace(pending, files=(stolen,)), "t3", "a0"))
    world.refused("UPLOAD_GONE")


def test_i7_keys_that_two_manifests_share_are_refused(world: Neighbourhood) -> None:
    name = f"part-{JOB}.parquet"
    world.request(
        DIRECTORY,
        *[world.attempt(DIRECTORY, f"t{number}", files={name: b"1"}) for number in range(2)],
    )
    world.refused("DUPLICATE_KEY")


def test_i7_a_manifest_of_another_task_in_its_place_is_refused(world: Neighbourhood) -> None:
    world.open(DIRECTORY)
    _, pending = sound_manifest(world)
    world.request(DIRECTORY, world.drop(DIRECTORY, pending, "t4", "a0"))
    world.refused("WRONG_JOB")
