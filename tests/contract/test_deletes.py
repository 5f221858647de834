"""Deleting many objects, each only if it is the one that was seen: what every store does."""

from __future__ import annotations

import uuid
from dataclasses import replace
from functools import partial

import pytest

from s3commit.core.model.errors import NotFoundError
from s3commit.core.ports.objects import ListedObject
from tests.contract.conftest import PAGE, PART, Backend, Place, at_once
from tests.contract.test_objects import UNUSUAL, quoted_md5


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
    assert {line.etag for line in left} == {quoted_md5(b"new")}
    assert [line.key for line in left] == keys or not place.known.deletes_atomically


def test_an_object_of_parts_is_deleted_by_its_own_kind_of_etag(place: Place) -> None:
    facts = place.complete(place.key(), b"x" * PART, b"y")
    assert facts.etag.endswith('-2"')

    place.store.delete_seen(place.bucket, listed(place))

    assert names(place) == []


@pytest.mark.parametrize("name", UNUSUAL)
def test_an_unusual_key_is_deleted(place: Place, name: str) -> None:
    place.store.put(place.bucket, place.key(name), b"x")
    other = replace(listed(place)[0], etag=quoted_md5(b"another"))

    place.store.delete_seen(place.bucket, [other])
    assert names(place) == [name]
    place.store.delete_seen(place.bucket, listed(place))

    assert names(place) == []


@pytest.mark.parametrize("name", ["bell\x07", "\ufffe", "carriage\rreturn"])
def test_a_key_that_a_request_for_many_hardly_carries_is_deleted(place: Place, name: str) -> None:
    place.store.put(place.bucket, place.key("plain"), b"old")
    place.store.put(place.bucket, place.key(name), b"old")
    seen = [
        ListedObject(place.key(each), quoted_md5(b"old"), 3) for each in ("plain", name, "gone")
    ]
    place.store.put(place.bucket, place.key(name), b"new")

    place.store.delete_seen(place.bucket, seen)
    assert place.store.head(place.bucket, place.key("plain")) is None
    assert place.body(place.key(name)) == b"new"
    place.store.delete_seen(place.bucket, [replace(seen[1], etag=quoted_md5(b"new"))])

    assert place.store.head(place.bucket, place.key(name)) is None


def test_a_bucket_that_is_not_there_has_nothing_to_delete_or_to_say(backend: Backend) -> None:
    nowhere, seen = f"no-such-bucket-{uuid.uuid4().hex}", [ListedObject("k", '"e"', 1)]
    for call in (
        lambda: backend.store.delete_seen(nowhere, seen),
        lambda: backend.store.is_versioned(nowhere),
    ):
        with pytest.raises(NotFoundError) as caught:
            call()
        assert caught.value.code == "NO_BUCKET"


def test_a_bucket_says_whether_it_keeps_versions(place: Place, versioned: Place) -> None:
    assert not place.store.is_versioned(place.bucket)
    assert versioned.store.is_versioned(versioned.bucket)


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
