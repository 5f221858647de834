"""Deleting what was seen, and what every store refuses: its limits, and what can't be read."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from s3commit.core.model.errors import ARCHIVED, AccessError, InvalidInputError, PreconditionError
from s3commit.core.ports.objects import ListedObject, listed_at
from tests.contract.conftest import PAGE, PART, Backend, Place, at_once
from tests.contract.test_objects import UNUSUAL
from tests.fakes.bucket import etag_of


def listed(place: Place) -> list[ListedObject]:
    return list(place.store.list(place.bucket, place.prefix))


def names(place: Place) -> list[str]:
    return [line.key.removeprefix(place.prefix) for line in listed(place)]


def test_objects_that_were_seen_are_deleted_and_no_other(place: Place) -> None:
    count = 2 * PAGE
    for number in range(count):
        place.store.put(place.bucket, place.key(f"old/{number:02d}"), b"%d" % number)
    seen = listed(place)
    place.store.put(place.bucket, place.key("new"), b"x")

    place.store.delete_seen(place.bucket, seen[:-1])

    assert names(place) == ["new", f"old/{count - 1:02d}"]


def test_i5_an_object_that_changed_since_it_was_seen_stays(place: Place) -> None:
    for name in ("a", "b", "c"):
        place.store.put(place.bucket, place.key(name), b"old")
    seen = listed(place)
    place.store.put(place.bucket, place.key("b"), b"new")

    place.store.delete_seen(place.bucket, seen)

    assert names(place) == ["b"]
    assert place.body(place.key("b")) == b"new"


def test_i5_an_object_that_is_put_meanwhile_stays(place: Place) -> None:
    keys = [place.key(f"{number:02d}") for number in range(40)]
    for key in keys:
        place.store.put(place.bucket, key, b"old")
    seen = listed(place)

    def put_anew(mine: list[str]) -> None:
        for key in mine:
            place.store.put(place.bucket, key, b"new")

    delete = partial(place.store.delete_seen, place.bucket, seen)
    outcomes = at_once([delete, partial(put_anew, keys[:20]), partial(put_anew, keys[:19:-1])])

    assert outcomes == [None, None, None]
    left = listed(place)
    assert {line.etag for line in left} == {etag_of(b"new")}
    assert [line.key for line in left] == keys or not place.known.deletes_atomically


def test_an_object_of_parts_is_deleted_by_its_own_kind_of_etag(place: Place) -> None:
    facts = place.complete(place.key(), b"x" * PART, b"y")
    assert facts.etag.endswith('-2"')

    place.store.delete_seen(place.bucket, listed(place))

    assert names(place) == []


@pytest.mark.parametrize("name", UNUSUAL)
def test_an_unusual_key_is_deleted(place: Place, name: str) -> None:
    place.store.put(place.bucket, place.key(name), b"x")
    other = replace(listed(place)[0], etag=etag_of(b"another"))

    place.store.delete_seen(place.bucket, [other])
    assert names(place) == [name]
    place.store.delete_seen(place.bucket, listed(place))

    assert names(place) == []


@pytest.mark.parametrize("name", ["bell\x07", "\ufffe", "carriage\rreturn"])
def test_a_key_that_a_request_for_many_hardly_carries_is_deleted(place: Place, name: str) -> None:
    place.store.put(place.bucket, place.key("plain"), b"old")
    place.store.put(place.bucket, place.key(name), b"old")
    seen = [ListedObject(place.key(each), etag_of(b"old"), 3) for each in ("plain", name, "gone")]
    place.store.put(place.bucket, place.key(name), b"new")

    place.store.delete_seen(place.bucket, seen)
    assert place.store.head(place.bucket, place.key("plain")) is None
    assert place.body(place.key(name)) == b"new"
    place.store.delete_seen(place.bucket, [replace(seen[1], etag=etag_of(b"new"))])

    assert place.store.head(place.bucket, place.key(name)) is None


def test_with_versions_what_was_seen_is_hidden_and_what_changed_stays(versioned: Place) -> None:
    store, bucket = versioned.store, versioned.bucket
    for name in ("a", "b"):
        store.put(bucket, versioned.key(name), b"old")
    seen = listed(versioned)
    store.put(bucket, versioned.key("b"), b"new")

    store.delete_seen(bucket, seen)
    store.delete_seen(bucket, seen)

    assert names(versioned) == ["b"]
    assert versioned.body(versioned.key("b")) == b"new"
    store.put(bucket, versioned.key("a"), b"again", if_absent=True)
    assert [one.length for one in store.list_versions(bucket, versioned.key("a"))] == [5, 3]


# S3's limits, and objects that can't be read


# Bytes of UTF-8: https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html
LONGEST = 1024
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
        store = place.store
        reads = (partial(store.get, max_bytes=1), store.head, store.delete)
        refusing += [partial(read, place.bucket, longer) for read in reads]
    else:
        assert place.store.head(place.bucket, longer) is None
    for call in refusing:
        with pytest.raises(InvalidInputError) as caught:
            call()
        assert caught.value.code == "INVALID_INPUT"


def test_a_request_deletes_at_most_1000_objects(place: Place) -> None:
    place.store.put(place.bucket, place.key("0"), b"x")
    seen = [ListedObject(place.key(str(number)), etag_of(b"x"), 1) for number in range(DELETES + 1)]
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
        store.delete(bucket, key, if_match=etag_of(b"another"))
    store.delete_seen(bucket, [replace(found, etag=etag_of(b"another"))])
    assert listed_at(store, bucket, key) is not None
    store.delete(bucket, key, if_match=found.etag)
    assert listed_at(store, bucket, key) is None


def test_an_archived_object_is_seen_and_not_read(backend: Backend, place: Place) -> None:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html (InvalidObjectState)."""
    backend.archive(place.key(), b"x")

    head = place.store.head(place.bucket, place.key())

    assert head is not None
    assert (head.etag, head.length) == (etag_of(b"x"), 1)
    assert [line.key for line in place.store.list(place.bucket, place.prefix)] == [place.key()]
    if not place.known.archives:
        assert place.body(place.key()) == b"x"
        return
    with pytest.raises(InvalidInputError) as caught:
        place.body(place.key())
    assert caught.value.code == ARCHIVED


def refused(place: Place, **calls: Callable[[], object]) -> None:
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
            get=partial(place.body, secret),
            head=partial(place.store.head, place.bucket, secret),
        )
        place.store.put(place.bucket, secret, b"z")

    assert place.body(secret) == b"z"


@pytest.mark.parametrize("verb", ["delete", "delete_seen"])
def test_what_may_not_be_deleted_stays_and_the_others_go(
    backend: Backend, place: Place, verb: str
) -> None:
    for name in ("kept", "other"):
        place.store.put(place.bucket, place.key(name), b"x")
    seen = listed(place)
    calls: dict[str, Callable[[], object]] = {
        "delete": partial(place.store.delete, place.bucket, place.key("kept")),
        "delete_seen": partial(place.store.delete_seen, place.bucket, seen),
    }

    with backend.denying(place.key("kept"), "s3:DeleteObject"):
        refused(place, **{verb: calls[verb]})

    left = [] if verb in place.known.not_denied else ["kept"]
    assert names(place) == left + (["other"] if verb == "delete" else [])
