"""What correctness takes for granted of S3 and DynamoDB: races, repetitions, reads after writes.

The assumptions A1 to A4 of docs/proof.md. A race is run several times, with another delay each.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from s3commit.core.model.errors import PreconditionError, TransientError, UploadGoneError
from s3commit.core.model.states import JobState
from s3commit.core.ports.ledger import Ledger
from tests.contract.conftest import PART, THREADS, Backend, Place, at_once, winners
from tests.contract.ledger_jobs import T0, an_attempt, bring_to, ref_of

ROUNDS = 5
# How much later than the completion the abort is sent (negative: earlier), in seconds.
DELAYS = (-0.02, 0.0, 0.02, 0.05, 0.1, 0.3)
ABORTS_TRIED = 5  # an abort beside a completion may have to be repeated
SETTLE = 1.0  # seconds in which S3 could still show something


@pytest.fixture(params=["place", "versioned"])
def either(request: pytest.FixtureRequest, place: Place, versioned: Place) -> Place:
    """A place without versions, and one with them."""
    return place if request.param == "place" else versioned


def versions(place: Place, key: str) -> int:
    return len(list(place.store.list_versions(place.bucket, key)))


def listed(place: Place, key: str) -> bool:
    return [one.key for one in place.store.list(place.bucket, key)] == [key]


def upload_listed(place: Place, key: str, upload_id: str) -> bool:
    found = place.store.list_uploads(place.bucket, key)
    return upload_id in [one.upload_id for one in found]


def test_a1_a_read_and_a_listing_show_what_was_written_before(either: Place) -> None:
    store, bucket = either.store, either.bucket
    for number in range(ROUNDS):
        key = either.key(str(number))
        assert store.head(bucket, key) is None  # S3 must not remember that there was nothing
        store.put(bucket, key, b"first")
        assert listed(either, key)
        assert either.body(key) == b"first"
        store.put(bucket, key, b"second")
        assert either.body(key) == b"second"
        store.delete(bucket, key)
        assert not listed(either, key)
        assert store.head(bucket, key) is None


def test_a1_an_upload_is_listed_once_it_is_started_and_its_object_at_its_end(place: Place) -> None:
    store, bucket = place.store, place.bucket
    for number in range(ROUNDS):
        dropped, kept = place.key(f"dropped-{number}"), place.key(f"kept-{number}")
        (dropped_id, _), (kept_id, etags) = place.upload(dropped, b"x"), place.upload(kept, b"x")
        assert upload_listed(place, dropped, dropped_id)
        assert upload_listed(place, kept, kept_id)
        store.abort_upload(bucket, dropped, dropped_id)
        assert not store.upload_is_open(bucket, dropped, dropped_id)
        store.complete_upload(bucket, kept, kept_id, etags, length=1)
        assert listed(place, kept)
        assert store.head(bucket, kept) is not None


def test_a1_a_job_is_read_as_it_was_last_written(ledger: Ledger) -> None:
    for number in range(ROUNDS):
        job = f"job-{number}"
        bring_to(ledger, JobState.SEALED, job, T0)
        found = ledger.job(ref_of(job))
        assert found is not None
        assert found.state is JobState.SEALED
        ledger.record_attempt(an_attempt(1, job_id=job))
        assert list(ledger.attempts(ref_of(job))) == [an_attempt(1, job_id=job)]


def test_a2_conditions_look_at_the_current_object_and_nothing_else(either: Place) -> None:
    store, bucket, key = either.store, either.bucket, either.key()
    first = store.put(bucket, key, b"first", if_absent=True)
    second = store.put(bucket, key, b"second", if_match=first)
    upload_id, etags = either.upload(key, b"late")

    refused: list[Callable[[], object]] = [
        partial(store.put, bucket, key, b"late", if_absent=True),
        partial(store.put, bucket, key, b"late", if_match=first),
        partial(store.delete, bucket, key, if_match=first),
        partial(store.complete_upload, bucket, key, upload_id, etags, length=4, if_absent=True),
    ]
    for call in refused:
        with pytest.raises(PreconditionError):
            call()
    assert either.body(key) == b"second"
    assert store.upload_is_open(bucket, key, upload_id)  # that tells a foreign file from its own

    store.delete(bucket, key, if_match=second)
    with pytest.raises(PreconditionError):
        store.put(bucket, key, b"late", if_match=second)
    assert store.head(bucket, key) is None
    store.put(bucket, key, b"anew", if_absent=True)
    assert either.body(key) == b"anew"


def test_a2_a_conditional_delete_never_takes_what_is_put_meanwhile(either: Place) -> None:
    store, bucket = either.store, either.bucket
    for number in range(ROUNDS):
        key = either.key(str(number))
        old = store.put(bucket, key, b"old")

        calls: list[Callable[[], object]] = [
            partial(store.delete, bucket, key, if_match=old),
            partial(store.put, bucket, key, b"new"),
        ]
        deleted, put = at_once(calls)

        assert isinstance(put, str)
        assert deleted is None or isinstance(deleted, (PreconditionError, TransientError))
        is_there = store.head(bucket, key) is not None
        assert is_there or not either.known.deletes_atomically
        assert not is_there or either.body(key) == b"new"


def test_a3_an_attempt_that_several_note_at_once_is_noted_whole_and_once(ledger: Ledger) -> None:
    for number in range(ROUNDS):
        notes = [replace(an_attempt(number), sha256=f"{racer:064x}") for racer in range(THREADS)]

        outcomes = at_once([partial(ledger.record_attempt, note) for note in notes])

        winners(outcomes, lose_by=TransientError)
        (found,) = [one for one in ledger.attempts(ref_of("job-1")) if one.files == number]
        assert found in notes
        for note in notes:
            ledger.record_attempt(note)
        assert found in list(ledger.attempts(ref_of("job-1")))


@pytest.mark.parametrize("then", ["nothing", "deleted", "replaced"])
def test_a4_a_repeated_completion_brings_nothing_back_and_covers_nothing(
    either: Place, then: str
) -> None:
    store, bucket, key = either.store, either.bucket, either.key()
    upload_id, etags = either.upload(key, b"ours")
    complete = partial(store.complete_upload, bucket, key, upload_id, etags, length=4)
    complete()
    if then == "deleted":
        store.delete(bucket, key)
    elif then == "replaced":
        store.put(bucket, key, b"theirs")
    before = versions(either, key)

    for if_absent in (False, True):
        with suppress(UploadGoneError, PreconditionError):
            complete(if_absent=if_absent)

    if then == "deleted":
        assert store.head(bucket, key) is None
    else:
        assert either.body(key) == {"nothing": b"ours", "replaced": b"theirs"}[then]
    assert versions(either, key) == before


def test_a4_an_upload_that_several_complete_at_once_is_completed_once(either: Place) -> None:
    store, bucket = either.store, either.bucket
    for number in range(ROUNDS):
        key = either.key(str(number))
        upload_id, etags = either.upload(key, b"ours")
        once = versions(either, key)

        outcomes = at_once(
            [partial(store.complete_upload, bucket, key, upload_id, etags, length=4)] * 3
        )

        winners(outcomes, lose_by=(UploadGoneError, TransientError))
        assert either.body(key) == b"ours"
        assert versions(either, key) == once + 1


@pytest.mark.parametrize("delay", DELAYS)
def test_a4_an_abort_beside_a_completion_leaves_the_file_or_nothing(
    backend: Backend, place: Place, delay: float
) -> None:
    store, bucket, key = place.store, place.bucket, place.key()
    upload_id, etags, length = many_parts(backend, place, key)

    def complete() -> None:
        time.sleep(max(0.0, -delay))
        store.complete_upload(bucket, key, upload_id, etags, length=length)

    def abort() -> None:
        time.sleep(max(0.0, delay))
        store.abort_upload(bucket, key, upload_id)

    completed, _ = at_once([complete, abort])

    # As a roll back does: abort until the upload is gone, then look what is visible.
    for _ in range(ABORTS_TRIED):
        if not store.upload_is_open(bucket, key, upload_id):
            break
        store.abort_upload(bucket, key, upload_id)
    assert not store.upload_is_open(bucket, key, upload_id)
    visible = store.head(bucket, key) is not None
    # A completion whose first answer was lost is repeated, and finds no upload any more.
    assert visible or isinstance(completed, (UploadGoneError, TransientError))
    if backend.name == "given":
        time.sleep(SETTLE)
    assert (store.head(bucket, key) is not None) == visible


def many_parts(backend: Backend, place: Place, key: str) -> tuple[str, list[str], int]:
    """An upload whose completion takes a while on S3: its id, its etags and its length."""
    count = 40 if backend.name == "given" else 2
    if backend.client is None:
        upload_id, etags = place.upload(key, *[b"a" * PART] * count)
        return upload_id, etags, count * PART
    place.store.put(place.bucket, place.key("part"), b"a" * PART)
    upload_id, _ = place.upload(key)

    def copy(number: int) -> str:
        answer = backend.client.upload_part_copy(
            Bucket=place.bucket,
            Key=key,
            UploadId=upload_id,
            PartNumber=number,
            CopySource={"Bucket": place.bucket, "Key": place.key("part")},
        )
        return str(answer["CopyPartResult"]["ETag"])

    copied = winners(
        at_once([partial(copy, number) for number in range(1, count + 1)]), lose_by=TransientError
    )
    return upload_id, copied, count * PART
