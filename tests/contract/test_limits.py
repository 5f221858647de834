"""S3's limits, and objects that can't be read: what every object store refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from s3commit.core.model.errors import ARCHIVED, AccessError, InvalidInputError, PreconditionError
from s3commit.core.ports.objects import ListedObject, listed_at
from tests.contract.conftest import Backend, Place
from tests.contract.test_objects import quoted_md5

LONGEST = (
    1024  # bytes of UTF-8: https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html
)
DELETES = 1000  # https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html


def key_of(place: Place, size: int, character: str = "k") -> str:
    """A key of so many bytes, in elements that a file system would take."""
    width = len(character.encode())
    room = size - len(place.prefix)
    elements = []
    while room > 201:
        elements.append(character * (200 // width) + "x" * (200 % width))
        room -= 201
    last = character * (room // width) + "x" * (room % width)
    return place.prefix + "/".join([*elements, last])


@pytest.mark.parametrize("character", ["k", "ü", "語"])
def test_a_key_has_at_most_1024_bytes(place: Place, character: str) -> None:
    longest, longer = (key_of(place, size, character) for size in (LONGEST, LONGEST + 1))
    assert [len(key.encode()) for key in (longest, longer)] == [LONGEST, LONGEST + 1]

    place.store.put(place.bucket, longest, b"x", if_absent=True)

    assert [line.key for line in place.store.list(place.bucket, place.prefix)] == [longest]
    assert place.body(longest) == b"x"
    if not place.known.bounds_keys:
        place.store.put(place.bucket, longer, b"x")
        assert place.body(longer) == b"x"
        return
    refusing: list[Callable[[], object]] = [
        lambda: place.store.put(place.bucket, longer, b"x"),
        lambda: place.upload(longer),
    ]
    if place.known.bounds_keys_read:
        refusing += [
            lambda: place.store.get(place.bucket, longer, max_bytes=1),
            lambda: place.store.head(place.bucket, longer),
            lambda: place.store.delete(place.bucket, longer),
        ]
    else:
        assert place.store.head(place.bucket, longer) is None
    for call in refusing:
        with pytest.raises(InvalidInputError) as caught:
            call()
        assert caught.value.code == "INVALID_INPUT"


def test_a_request_deletes_at_most_1000_objects(place: Place) -> None:
    place.store.put(place.bucket, place.key("0"), b"x")
    seen = [
        ListedObject(place.key(str(number)), quoted_md5(b"x"), 1) for number in range(DELETES + 1)
    ]
    if not place.known.bounds_deletes:
        place.store.delete_seen(place.bucket, seen)
        assert place.store.head(place.bucket, place.key("0")) is None
        return

    with pytest.raises(InvalidInputError):
        place.store.delete_seen(place.bucket, seen)

    assert place.body(place.key("0")) == b"x"
    place.store.delete_seen(place.bucket, seen[:DELETES])
    assert place.store.head(place.bucket, place.key("0")) is None


@pytest.mark.parametrize("name", ["plain", "bell\x07"])
def test_an_object_under_its_writers_own_key_is_listed_and_neither_seen_nor_read(
    backend: Backend, place: Place, name: str
) -> None:
    """SSE-C: S3 answers 400 without the key. It is listed, overwritten and deleted like any other.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/ServerSideEncryptionCustomerKeys.html
    """
    store, bucket, key = place.store, place.bucket, place.key(name)
    backend.encrypt(key, b"x")

    found = listed_at(store, bucket, key)
    assert found is not None and found.length == 1
    refused = []
    for read in (store.head, partial(store.get, max_bytes=10), partial(store.first_bytes, count=1)):
        try:
            read(bucket, key)
        except InvalidInputError:
            refused.append(read)
    assert len(refused) == (3 if place.known.asks_for_keys else 0)
    with pytest.raises(PreconditionError):
        store.delete(bucket, key, if_match=quoted_md5(b"another"))
    store.delete_seen(bucket, [replace(found, etag=quoted_md5(b"another"))])
    assert listed_at(store, bucket, key) is not None
    store.delete(bucket, key, if_match=found.etag)
    assert listed_at(store, bucket, key) is None


def test_an_archived_object_is_seen_and_not_read(backend: Backend, place: Place) -> None:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html (InvalidObjectState)."""
    backend.archive(place.key(), b"x")

    head = place.store.head(place.bucket, place.key())

    assert head is not None
    assert (head.etag, head.length) == (quoted_md5(b"x"), 1)
    assert [line.key for line in place.store.list(place.bucket, place.prefix)] == [place.key()]
    if not place.known.archives:
        assert place.body(place.key()) == b"x"
        return
    with pytest.raises(InvalidInputError) as caught:
        place.body(place.key())
    assert caught.value.code == ARCHIVED


def refused(place: Place, calls: dict[str, Callable[[], object]]) -> None:
    """Each call is denied, but for those of which it is known that they are not."""
    for verb, call in calls.items():
        if verb in place.known.not_denied:
            call()
            continue
        with pytest.raises(AccessError):
            call()


def test_what_may_not_be_read_is_neither_seen_nor_missing(backend: Backend, place: Place) -> None:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html: 403, with no code."""
    secret = place.key("secret")
    place.store.put(place.bucket, secret, b"x")
    place.store.put(place.bucket, place.key("open"), b"y")

    with backend.denying(secret, "s3:GetObject"):
        assert place.body(place.key("open")) == b"y"
        assert place.store.head(place.bucket, place.key("nothing")) is None
        refused(
            place,
            {
                "get": lambda: place.body(secret),
                "head": lambda: place.store.head(place.bucket, secret),
            },
        )
        place.store.put(place.bucket, secret, b"z")

    assert place.body(secret) == b"z"


@pytest.mark.parametrize("verb", ["delete", "delete_seen"])
def test_what_may_not_be_deleted_stays_and_the_others_go(
    backend: Backend, place: Place, verb: str
) -> None:
    for name in ("kept", "other"):
        place.store.put(place.bucket, place.key(name), b"x")
    seen = list(place.store.list(place.bucket, place.prefix))
    calls: dict[str, Callable[[], object]] = {
        "delete": lambda: place.store.delete(place.bucket, place.key("kept")),
        "delete_seen": lambda: place.store.delete_seen(place.bucket, seen),
    }

    with backend.denying(place.key("kept"), "s3:DeleteObject"):
        refused(place, {verb: calls[verb]})

    left = [] if verb in place.known.not_denied else [place.key("kept")]
    if verb == "delete":
        left.append(place.key("other"))
    assert [line.key for line in place.store.list(place.bucket, place.prefix)] == left
