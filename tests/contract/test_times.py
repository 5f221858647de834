"""Listings with times, gone on with from a key: what the sweep looks at a store by."""

from __future__ import annotations

from itertools import takewhile

import pytest

from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.ports.objects import OpenUpload
from tests.contract.conftest import PAGE, Place
from tests.contract.test_objects import UNUSUAL, quoted_md5


def all_uploads(place: Place, **after: str) -> list[OpenUpload]:
    """The bucket's uploads, be they of this test's place or not."""
    store = place.store
    if not place.known.pages_uploads:
        assert isinstance(store, S3ObjectStore)
        store = S3ObjectStore(store._client)  # with pages as large as S3's
    return list(store.list_uploads(place.bucket, "", **after))


def uploads_below(place: Place, after: str = "") -> list[str]:
    """The bucket's uploads from the place's prefix on, as far as they are below it."""
    if not place.known.pages_uploads:  # nor does it know a KeyMarker
        keys = sorted(one.key for one in all_uploads(place) if one.key.startswith(place.prefix))
        return [key[len(place.prefix) :] for key in keys if key > after]
    found = all_uploads(place, after=after or place.prefix)
    below = takewhile(lambda upload: upload.key.startswith(place.prefix), found)
    return [upload.key[len(place.prefix) :] for upload in below]


def test_objects_are_listed_in_order_from_a_key_on_with_their_times(place: Place) -> None:
    names = [f"{number:02d}" for number in range(3 * PAGE)]
    for name in reversed(names):
        place.store.put(place.bucket, place.key(name), name.encode())
    found = list(place.store.list(place.bucket, place.prefix))
    assert [one.key[len(place.prefix) :] for one in found] == names
    assert all(one.modified.startswith("20") and one.modified.endswith("Z") for one in found)
    later = place.store.list(place.bucket, place.prefix, after=place.key(names[PAGE]))
    assert [one.key[len(place.prefix) :] for one in later] == names[PAGE + 1 :]


def test_uploads_are_listed_in_order_from_a_key_on(place: Place) -> None:
    names = [f"{number:02d}" for number in range(2 * PAGE + 1)]
    for name in names:
        place.upload(place.key(name), b"x")
    place.upload(place.key(names[1]), b"x")  # two of one key
    assert uploads_below(place) == sorted([*names, names[1]])
    assert uploads_below(place, place.key(names[1])) == names[2:]


@pytest.mark.parametrize("name", UNUSUAL)
def test_an_upload_of_an_unusual_key_is_found_and_gone_on_from(place: Place, name: str) -> None:
    if not place.known.encodes_upload_keys and set(name) & set("+%"):
        return  # the store says that it encodes what it does not
    place.upload(place.key(name), b"x")
    assert uploads_below(place) == [name]
    assert uploads_below(place, place.key(name)) == []


def test_the_versions_of_an_object_are_its_own_and_those_that_have_bytes(versioned: Place) -> None:
    store, bucket, key = versioned.store, versioned.bucket, versioned.key("a")
    for body in (b"1", b"22"):
        store.put(bucket, key, body)
    store.put(bucket, versioned.key("ab"), b"another key")
    store.delete(bucket, key)
    found = list(store.list_versions(bucket, key))
    assert [(one.length, one.etag) for one in found] == [
        (2, quoted_md5(b"22")),
        (1, quoted_md5(b"1")),
    ]
    assert len({one.version_id for one in found}) == 2
