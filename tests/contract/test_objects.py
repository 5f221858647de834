"""Whole objects and their listings: what every object store does with them."""

import uuid
from functools import partial
from typing import cast

import pytest

from s3commit.core.model.errors import (
    InvalidInputError,
    NotFoundError,
    PreconditionError,
    UploadGoneError,
)
from s3commit.core.ports.objects import ListedObject, PartSource
from s3commit.writer.place import TailReader
from tests.contract.conftest import PAGE, PART, THREADS, Backend, Place, at_once, winners
from tests.fakes.bucket import etag_of

UNUSUAL = [
    "a space",
    "a+plus",
    "a%20percent",
    "dt=2026-11-21/part-0",
    "ünï/€/語",
    "question?x=1&y#z",
    "<quotes'\">",
    "tilde~and,comma;",
    "tab\there",
]


def test_an_object_is_read_as_it_was_put(place: Place) -> None:
    etag = place.store.put(place.bucket, place.key(), b"some bytes")

    found = place.store.get(place.bucket, place.key(), max_bytes=10)

    assert found.body == b"some bytes"
    assert etag == found.facts.etag == etag_of(b"some bytes")
    assert (found.facts.key, found.facts.length) == (place.key(), 10)
    assert place.store.head(place.bucket, place.key()) == found.facts


def test_an_object_that_is_not_there_is_not_found(place: Place) -> None:
    assert place.store.head(place.bucket, place.key()) is None
    with pytest.raises(NotFoundError) as caught:
        place.store.get(place.bucket, place.key(), max_bytes=1)
    assert caught.value.code == "NOT_FOUND"


def test_an_object_past_the_bound_is_too_large(place: Place) -> None:
    place.store.put(place.bucket, place.key(), b"12345")

    with pytest.raises(InvalidInputError) as caught:
        place.store.get(place.bucket, place.key(), max_bytes=4)
    assert caught.value.code == "TOO_LARGE"
    assert place.store.get(place.bucket, place.key(), max_bytes=5).body == b"12345"


def test_an_object_has_first_and_last_bytes_if_it_is_there_and_has_some(place: Place) -> None:
    store = cast("TailReader", place.store)
    first_bytes = partial(store.first_bytes, place.bucket, place.key())
    last_bytes = partial(store.last_bytes, place.bucket, place.key())
    for read in (first_bytes, last_bytes):
        with pytest.raises(NotFoundError):
            read(5)
    place.store.put(place.bucket, place.key(), b"")
    with pytest.raises(InvalidInputError):
        first_bytes(5)
    place.store.put(place.bucket, place.key(), b"12345")
    assert [first_bytes(count) for count in (1, 4, 99)] == [b"1", b"1234", b"12345"]
    assert [first_bytes(2, start=start) for start in (0, 3, 4)] == [b"12", b"45", b"5"]
    with pytest.raises(InvalidInputError):
        first_bytes(2, start=5)
    assert [last_bytes(count) for count in (1, 4, 99)] == [b"5", b"2345", b"12345"]


def test_a_bucket_that_is_not_there_is_said_to_be_missing(backend: Backend) -> None:
    store, nowhere = backend.store, f"no-such-bucket-{uuid.uuid4().hex}"
    for call in (
        lambda: store.get(nowhere, "k", max_bytes=1),
        lambda: store.put(nowhere, "k", b""),
        lambda: store.delete(nowhere, "k"),
        lambda: list(store.list(nowhere, "")),
        lambda: list(store.list_uploads(nowhere, "")),
        lambda: store.create_upload(nowhere, "k", metadata={}, content_type="text/plain"),
        lambda: store.delete_seen(nowhere, [ListedObject("k", '"e"', 1)]),
    ):
        with pytest.raises(NotFoundError) as caught:
            call()
        assert caught.value.code == "NO_BUCKET"
    assert store.head(nowhere, "k") is None


@pytest.mark.parametrize("is_new", [True, False])
def test_a_conditional_put_has_one_winner(place: Place, is_new: bool) -> None:
    for attempt in range(3):
        key = place.key(str(attempt))
        etag = None if is_new else place.store.put(place.bucket, key, b"before")
        put = partial(place.store.put, place.bucket, key, if_absent=is_new, if_match=etag)
        bodies = [f"writer {number}".encode() for number in range(THREADS)]

        outcomes = at_once([partial(put, body) for body in bodies])

        (won,) = winners(outcomes, lose_by=PreconditionError)
        assert etag_of(place.body(key)) == won


def test_a_listing_has_every_object_below_the_prefix_and_no_other(place: Place) -> None:
    """From a key on, if one is given."""
    names = [f"data1/{number:02d}" for number in range(30)]
    for name in [*reversed(names), "data10/x", "data"]:
        place.store.put(place.bucket, place.key(name), name.encode())
    listing = partial(place.store.list, place.bucket, place.key("data1/"))

    found = list(listing())

    keys = [place.key(name) for name in names]
    assert [line.key for line in found] == keys
    assert [line.etag for line in found] == [etag_of(name.encode()) for name in names]
    assert {line.length for line in found} == {8}
    assert all(one.modified.startswith("20") and one.modified.endswith("Z") for one in found)
    assert [line.key for line in listing(after=keys[PAGE])] == keys[PAGE + 1 :]


def test_a_listing_is_in_the_order_of_the_keys_bytes(place: Place) -> None:
    names = ["B", "Z", "a", "b", "b-c", "b/c", "é", "語"]
    for name in reversed(names):
        place.store.put(place.bucket, place.key(name), b"")

    found = [line.key for line in place.store.list(place.bucket, place.prefix)]

    if not place.known.lists_in_key_order:
        names = ["B", "Z", "a", "b", "b/c", "b-c", "é", "語"]
    assert found == [place.key(name) for name in names]


def test_a_directory_has_names_of_objects_and_of_directories(place: Place) -> None:
    files = [f"t/{number:02d}" for number in range(9)]
    inside = [f"t/dt={number:02d}/{name}" for number in range(9) for name in ("a", "b/c")]
    beside = ["t", "t/", "t/dt=01"] if place.known.flat else []
    for name in [*beside, *files, *inside, "t2", "t-x/y"]:
        place.store.put(place.bucket, place.key(name), b"x")

    store = cast("TailReader", place.store)
    listed = list(store.below(place.bucket, place.key("t/")))
    found = [one.key.removeprefix(place.key("t/")) for one in listed]

    directories = {f"dt={number:02d}/" for number in range(9)}
    objects = {name[2:] for name in files + beside[2:]}
    assert sorted(found) == sorted(objects | directories)
    assert {bool(one.modified) for one in listed if one.key[-1] == "/"} == {False}
    assert {(one.length, bool(one.modified)) for one in listed if one.key[-1] != "/"} == {(1, True)}
    assert list(store.below(place.bucket, place.key("none/"))) == []


@pytest.mark.parametrize("name", UNUSUAL)
def test_an_unusual_key_is_a_key(place: Place, name: str) -> None:
    place.store.put(place.bucket, place.key(name), b"x", if_absent=True)

    assert place.body(place.key(name)) == b"x"
    assert [line.key for line in place.store.list(place.bucket, place.prefix)] == [place.key(name)]
    place.store.delete(place.bucket, place.key(name), if_match=etag_of(b"x"))
    assert place.store.head(place.bucket, place.key(name)) is None


def test_the_versions_of_an_object_are_its_own_and_those_that_have_bytes(versioned: Place) -> None:
    store, bucket, key = versioned.store, versioned.bucket, versioned.key("a")
    for body in (b"1", b"22"):
        store.put(bucket, key, body)
    store.put(bucket, versioned.key("ab"), b"another key")
    store.delete(bucket, key)
    found = list(store.list_versions(bucket, key))
    assert [(one.length, one.etag) for one in found] == [(2, etag_of(b"22")), (1, etag_of(b"1"))]
    assert len({one.version_id for one in found}) == 2


@pytest.mark.parametrize("name", ["a", "a b+c%20/ü=1"])
def test_a_part_is_copied_from_the_version_that_is_asked_for(versioned: Place, name: str) -> None:
    """S3 copies a range of what is larger than a part alone."""
    store, bucket, key = versioned.store, versioned.bucket, versioned.key(name)
    target, old = versioned.key("copy"), b"0" * PART + b"56789"
    store.put(bucket, key, old)
    store.put(bucket, key, b"new")
    store.delete(bucket, key)
    version = next(one.version_id for one in store.list_versions(bucket, key) if one.length > 3)
    whole, start = PartSource(key, version), PartSource(key, version, 0, PART)
    for sources in ([whole], [start, PartSource(key, version, PART, PART + 5)]):
        upload_id = store.create_upload(bucket, target, metadata={}, content_type="x")
        etags = [
            store.copy_part(bucket, target, upload_id, number, source)
            for number, source in enumerate(sources, start=1)
        ]
        store.complete_upload(bucket, target, upload_id, etags, length=len(old))
        assert versioned.body(target) == old
    with pytest.raises(UploadGoneError):
        store.copy_part(bucket, target, upload_id, 2, whole)


def test_a_version_that_is_not_there_is_not_copied(versioned: Place) -> None:
    store, bucket, key = versioned.store, versioned.bucket, versioned.key("a")
    store.put(bucket, key, b"x")
    (only,) = store.list_versions(bucket, key)
    upload_id = store.create_upload(bucket, key, metadata={}, content_type="x")
    other = f"{only.version_id[:-1]}{'1' if only.version_id[-1] != '1' else '2'}"
    for source in (PartSource(key, other), PartSource(key + "z", only.version_id)):
        with pytest.raises((NotFoundError, InvalidInputError)):
            store.copy_part(bucket, key, upload_id, 1, source)
    store.abort_upload(bucket, key, upload_id)
