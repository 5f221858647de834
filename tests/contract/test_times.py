"""Listings with times, gone on with from a key: what the sweep looks at a store by."""

from __future__ import annotations

from itertools import takewhile

import pytest

from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.model.errors import UploadGoneError
from s3commit.core.ports.objects import OpenUpload
from tests.contract.conftest import PAGE, PART, Place
from tests.contract.test_objects import UNUSUAL


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


def test_uploads_of_one_key_are_gone_on_from_any_of_them(place: Place) -> None:
    """It may be there or not: a sweep aborts the uploads that it has listed."""
    if not place.known.pages_uploads:
        return  # nor does it know an UploadIdMarker
    key, other = place.key("a"), place.key("b")
    for _ in range(PAGE + 2):
        place.upload(key, b"x")
    place.upload(other, b"x")
    list_uploads = place.store.list_uploads
    found = [one.upload_id for one in list_uploads(place.bucket, place.prefix)]
    assert len(found) == PAGE + 3
    for index in (0, PAGE, PAGE + 1):
        rest = list_uploads(place.bucket, place.prefix, after=key, after_upload=found[index])
        assert [one.upload_id for one in rest] == found[index + 1 :]
    gone = found[0]
    place.store.abort_upload(place.bucket, key, gone)
    left = {
        one.upload_id
        for one in list_uploads(place.bucket, place.prefix, after=key, after_upload=gone)
    }
    # S3 promises those with a greater id, and no order: a later page may bring others as well.
    promised = {upload_id for upload_id in found[1:-1] if upload_id > gone}
    assert promised | {found[-1]} <= left <= set(found[1:])


@pytest.mark.parametrize("name", UNUSUAL)
def test_an_upload_of_an_unusual_key_is_found_and_gone_on_from(place: Place, name: str) -> None:
    if not place.known.encodes_upload_keys and set(name) & set("+%"):
        return  # the store says that it encodes what it does not
    place.upload(place.key(name), b"x")
    assert uploads_below(place) == [name]
    assert uploads_below(place, place.key(name)) == []


def test_the_parts_of_an_upload_are_added_up(place: Place) -> None:
    key = place.key()
    upload_id, _ = place.upload(key, b"a" * PART, b"rest")
    parts = place.store.upload_parts(place.bucket, key, upload_id)
    assert parts.bytes == PART + 4
    assert parts.modified > "2026"
    empty = place.store.create_upload(place.bucket, key, metadata={}, content_type="")
    assert place.store.upload_parts(place.bucket, key, empty).modified == ""
    place.store.abort_upload(place.bucket, key, upload_id)
    with pytest.raises(UploadGoneError):
        place.store.upload_parts(place.bucket, key, upload_id)


def test_the_versions_of_an_object_are_its_own_and_those_that_have_bytes(versioned: Place) -> None:
    store, bucket, key = versioned.store, versioned.bucket, versioned.key("a")
    for body in (b"1", b"22"):
        store.put(bucket, key, body)
    store.put(bucket, versioned.key("ab"), b"another key")
    newest = store.head(bucket, key)
    assert newest is not None
    store.delete(bucket, key)
    found = list(store.list_versions(bucket, key))
    assert [one.length for one in found] == [2, 1]
    assert (found[0].version_id, found[0].etag) == (newest.version_id, newest.etag)
