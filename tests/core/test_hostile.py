"""Hostile or broken input: the job is refused whole, with a code and one line (I5, I7).

Each manifest meets the pipeline three times: as it arrives, at VerifyManifests, and in a whole
execution, with a neighbour in the same table whose objects and uploads must not be touched.
"""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from s3commit.aws.parallel import ThreadMap
from s3commit.core.commit.note_arrivals import note_manifest
from s3commit.core.commit.seal_job import seal_job
from s3commit.core.commit.verify_manifests import verify_manifests
from s3commit.core.documents.job_json import MAX_JOB_BYTES
from s3commit.core.documents.pendingset import (
    MAX_MANIFEST_BYTES,
    MAX_MANIFEST_VALUES,
    PendingSet,
    encode_pendingset,
)
from s3commit.core.documents.request_json import MAX_REQUEST_BYTES
from s3commit.core.documents.ticket import Ticket
from s3commit.core.jobs import counted_manifests as judged
from s3commit.core.model.errors import InvalidInputError, JobRefusedError
from s3commit.core.model.limits import MAX_JOB_FILES
from s3commit.core.ports.objects import StoredObject
from tests.core.hostile_world import DIRECTORY, NOBODY, Neighbourhood
from tests.core.test_manifest import HOSTILE, change
from tests.core.world import BUCKET, JOB, NEIGHBOUR, REF, World
from tests.fakes.bucket import Version

LATEST = replace(
    NOBODY, task_id="t9", manifest=DIRECTORY.manifest_name("t9", "a0"), files=MAX_JOB_FILES
)


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


MANIFESTS: list[tuple[str, Callable[[bytes], bytes], str]] = [
    *((f"{path}={value}"[:40], mutated(path, value), code) for path, value, code in HOSTILE),
    ("one key twice", twice, "DUPLICATE_KEY"),
    # What is no strict JSON at all: tests/core/test_codec.py.
    ("truncated", lambda body: body[:-20], "BAD_JSON"),
    ("9999…", lambda body: body.replace(b'"length":5', b'"length":' + b"9" * 4000), "BAD_FIELD"),
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
    bad = world.drop(DIRECTORY, pending, "t3", "a0", mutate(sound))

    with pytest.raises(InvalidInputError) as at_ingest:
        world.announce(DIRECTORY, bad)
    assert at_ingest.value.code == code
    assert list(world.ledger.attempts(REF)) == []

    world.request(DIRECTORY, good, bad)
    with pytest.raises((JobRefusedError, InvalidInputError)) as at_verify:
        verify_manifests(world.ports, seal_job(world.ports, TICKET))
    assert at_verify.value.code == code

    result = world.refused(code)
    assert result.error is not None
    assert "t3/_a0" in result.error.message, "it says which manifest"


TICKET = Ticket(JOB, BUCKET, DIRECTORY.prefix, execution="execution-0")


class Sparse(bytes):
    """Says that it is long, and is not."""

    length = 0

    def __len__(self) -> int:
        return self.length


def put_sparse(world: World, key: str, length: int) -> None:
    body = Sparse(b"x")
    body.length = length
    world.store.bucket(BUCKET).add(key, Version(None, body, '"x"', {}))


@pytest.mark.parametrize("filling", [b"[],", b'{"":0},', b"0,"])
def test_i7_a_manifest_of_brackets_is_not_parsed(world: Neighbourhood, filling: bytes) -> None:
    """Within its bytes, and gigabytes of objects once it is parsed."""
    world.open(DIRECTORY)
    sound, pending = sound_manifest(world)
    dense = sound.replace(b"{", b'{"x":[' + filling * MAX_MANIFEST_VALUES + b"0],", 1)
    assert len(dense) < MAX_MANIFEST_BYTES
    bad = world.drop(DIRECTORY, pending, "t3", "a0", dense)
    world.request(DIRECTORY, bad)
    world.refused("TOO_LARGE")


def test_i12_a_manifest_whose_event_says_too_large_is_not_asked_for(world: Neighbourhood) -> None:
    world.open(DIRECTORY)
    key = DIRECTORY.prefix + NOBODY.manifest
    with pytest.raises(InvalidInputError) as caught:
        note_manifest(world.ports, world.late, BUCKET, key, size=MAX_MANIFEST_BYTES + 1)
    assert caught.value.code == "TOO_LARGE"
    assert world.plan.count() == 0


@pytest.mark.parametrize(
    "most", ["MAX_JOB_FILES", "MAX_TOTAL_BYTES", "MAX_NAMES", "MAX_PAGE_BYTES"]
)
def test_i12_a_job_that_no_function_could_hold_is_refused_before_its_decision(
    world: Neighbourhood, monkeypatch: pytest.MonkeyPatch, most: str
) -> None:
    """Many manifests, each of allowed size, are too much as well."""
    attempts = [
        world.attempt(DIRECTORY, f"t{number}", files={f"dt={number}/part-{JOB}.csv": b"x"})
        for number in range(3)
    ]
    world.request(DIRECTORY, *attempts)
    module = "documents.pages" if most == "MAX_PAGE_BYTES" else "commit.verify_manifests"
    least = 2 if most in {"MAX_JOB_FILES", "MAX_TOTAL_BYTES"} else 10
    monkeypatch.setattr(f"s3commit.core.{module}.{most}", least)
    uploads = world.open_uploads()
    world.before = (world.visible(), [key for key in uploads if JOB not in key])
    world.plan.run_after("advance", monkeypatch.undo, nth=2)  # the neighbour's job is small
    world.refused("TOO_LARGE")


def test_i12_a_request_that_claims_many_files_makes_no_larger_units(world: Neighbourhood) -> None:
    """They grow with the number that it claims, and the manifest that belies it comes last."""
    attempts = [world.attempt(DIRECTORY, f"t{number}") for number in range(3)]
    world.request(DIRECTORY, *attempts, LATEST)
    with pytest.raises(JobRefusedError) as caught:
        verify_manifests(world.ports, seal_job(world.ports, TICKET))
    assert caught.value.code == "TOO_LARGE"
    assert world.plan.count("put") == 0


def test_i12_large_manifests_are_read_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many side by side, each of allowed size, would be more than a function has."""
    world, sizes = World(), []
    attempts = [
        world.attempt(
            DIRECTORY, f"t{n}", files={f"{n}{i}-{JOB}.csv": b"x" for i in range(9 if n % 2 else 1)}
        )
        for n in range(16)
    ]
    large = DIRECTORY.prefix + attempts[1].manifest
    facts = world.store.head(BUCKET, large)
    assert facts is not None
    monkeypatch.setattr(judged, "SMALL_MANIFEST_BYTES", facts.length - 1)
    reading = threading.Semaphore(1)
    get = world.store.get

    def watched(bucket: str, key: str, *, max_bytes: int) -> StoredObject:
        stored = get(bucket, key, max_bytes=max_bytes)
        if len(stored.body) >= facts.length:
            assert reading.acquire(blocking=False), "another large one is read"
            time.sleep(0.005)
            sizes.append(len(stored.body))
            reading.release()
        return stored

    monkeypatch.setattr(world.store, "get", watched)
    ports = replace(world.ports, parallel=ThreadMap(4))
    read = {one.task_id: one for one in judged.counted_manifests(ports, DIRECTORY, attempts)}
    assert [len(read[one.task_id].files) for one in attempts] == [1, 9] * 8
    assert len(sizes) == 8


@pytest.mark.parametrize(
    ("key", "length"),
    [
        (DIRECTORY.job, MAX_JOB_BYTES + 1),
        (DIRECTORY.request, MAX_REQUEST_BYTES + 1),
        (DIRECTORY.manifest("t0", "a0"), MAX_MANIFEST_BYTES + 1),
    ],
    ids=["_job.json", "_request.json", "manifest"],
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
    world.ask(DIRECTORY, "t0", "t1", files={f"part-{JOB}.parquet": b"1"})
    world.refused("DUPLICATE_KEY")


def test_i7_a_manifest_of_another_task_in_its_place_is_refused(world: Neighbourhood) -> None:
    world.open(DIRECTORY)
    _, pending = sound_manifest(world)
    world.request(DIRECTORY, world.drop(DIRECTORY, pending, "t4", "a0"))
    world.refused("WRONG_JOB")


def test_i2_a_manifest_that_changed_since_its_task_is_refused(world: Neighbourhood) -> None:
    counted = world.attempt(DIRECTORY, "t3")
    body, _ = sound_manifest(world)  # sound, and not the one
    world.store.put(BUCKET, DIRECTORY.manifest("t3", "a0"), body)
    world.request(DIRECTORY, counted)
    world.refused("MANIFEST_CHANGED")


def test_i2_counts_that_differ_from_the_manifest_are_refused(world: Neighbourhood) -> None:
    world.request(DIRECTORY, replace(world.attempt(DIRECTORY, "t0"), files=2))
    world.refused("COUNTS_DIFFER")
