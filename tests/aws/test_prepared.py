"""Requests that botocore does not send are the ones that it would send."""

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError

from s3commit.aws import clients
from s3commit.aws.clients import Encryption
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.model.errors import AccessError, TransientError
from tests.aws.wire import (
    CALLS,
    ENCRYPTIONS,
    KEYS,
    MOVED,
    SETTINGS,
    Call,
    Wire,
    configure,
    plain,
    store_on,
    text,
)


def compare(call: Call, keys: Iterable[str], encryption: Encryption | None = None) -> None:
    store, wire, _ = store_on(call, encryption)
    for key in keys:
        wire.clear()
        wire.answers = [(404, b"", {})]  # it is about one object, so the next one is tried again
        call(store, key)
        ours, theirs = wire.requests
        assert wire.by_botocore == 1
        assert plain(ours) == plain(theirs), key


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_each_request_is_what_botocore_would_send(call: Call) -> None:
    compare(call, KEYS)


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
@pytest.mark.parametrize("encryption", ENCRYPTIONS, ids=str)
def test_each_request_is_encrypted_as_botocore_would(call: Call, encryption: Encryption) -> None:
    compare(call, ["k"], encryption)


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=list(SETTINGS))
def test_each_request_goes_where_botocore_would_send_it(
    call: Call, settings: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    configure(monkeypatch, tmp_path, **settings)
    compare(call, ["a/b.parquet"])


@pytest.mark.parametrize("moved", ["before the first request", "meanwhile"])
def test_botocore_finds_a_moved_bucket(moved: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next requests go where its redirect led."""
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    client: Any = clients.make_client()
    wire, store = Wire(client), S3ObjectStore(client)
    if moved == "meanwhile":
        store.put("lake", "a", b"x")
    wire.answers = [MOVED, MOVED] if moved == "meanwhile" else [MOVED]
    store.put("lake", "b", b"x")
    assert urlsplit(wire.requests[-1].url).netloc == "lake.s3.sa-east-1.amazonaws.com"
    wire.clear()
    store.put("lake", "c", b"x")
    (request,) = wire.requests
    assert wire.by_botocore == 0
    assert urlsplit(request.url).netloc == "lake.s3.sa-east-1.amazonaws.com"
    assert "/sa-east-1/s3/" in text(request.headers["Authorization"])


def test_stores_of_one_client_do_not_learn_from_each_other() -> None:
    """Another one's first request is under way in another thread while one signs its own."""
    client: Any = clients.make_client()
    wire, plainly = Wire(client), S3ObjectStore(client)
    locked = S3ObjectStore(client, encryption=Encryption("aws:kms", "secret"))
    other = threading.Thread(target=lambda: locked.put("vault", "a", b"x"))
    signed, may_end = threading.Event(), threading.Event()

    def meanwhile(**_: Any) -> None:
        if other.ident is None:
            other.start()
            assert signed.wait(10)

    def hold(**_: Any) -> None:
        if threading.current_thread() is other:
            signed.set()
            assert may_end.wait(10)

    client.meta.events.register_first("before-sign.s3", meanwhile)
    client.meta.events.register_first("before-send.s3", hold)
    plainly.put("lake", "a", b"x")
    may_end.set()
    other.join()
    wire.clear()
    plainly.put("lake", "b", b"x")
    locked.put("vault", "b", b"x")
    assert wire.by_botocore == 0
    first, second = wire.requests
    assert "x-amz-server-side-encryption" not in first.headers
    assert urlsplit(first.url).path == "/lake/b"
    assert text(second.headers["x-amz-server-side-encryption-aws-kms-key-id"]) == "secret"
    assert urlsplit(second.url).path == "/vault/b"


@pytest.mark.parametrize(
    ("first", "header"), [("put with metadata", "x-amz-meta-n"), ("put if absent", "If-None-Match")]
)
def test_what_only_the_first_request_has_the_next_one_has_not(first: str, header: str) -> None:
    store, wire, _ = store_on(CALLS[first])
    store.put("lake", "k", b"x")
    (request,) = wire.requests
    assert wire.by_botocore == 0
    assert header not in request.headers
    assert text(request.headers["Content-Type"]) == "application/json"


def test_a_call_within_a_call_notes_its_own() -> None:
    """As of a handler of a user's own that writes by the same client."""
    client: Any = clients.make_client()
    wire, outer, inner = Wire(client), S3ObjectStore(client), S3ObjectStore(client)
    begun: list[str] = []

    def meanwhile(**_: Any) -> None:
        if not begun:
            begun.append("inner")
            inner.put("vault", "a", b"x")
            client.head_object(Bucket="vault", Key="c")

    client.meta.events.register_first("before-send.s3.PutObject", meanwhile)
    outer.put("lake", "a", b"x")
    wire.clear()
    outer.put("lake", "b", b"x")
    inner.put("vault", "b", b"x")
    assert wire.by_botocore == 0
    assert [urlsplit(one.url).path for one in wire.requests] == ["/lake/b", "/vault/b"]


# Credentials


def test_no_credentials_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    store, _, client = store_on()
    monkeypatch.setattr(client._request_signer, "_credentials", None)
    with pytest.raises(AccessError, match="no AWS credentials"):
        store.put("lake", "k", b"x")


def test_credentials_that_can_not_be_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    store, _, client = store_on()

    def refused() -> None:
        raise ClientError({"Error": {"Code": "Throttling", "Message": "later"}}, "AssumeRole")

    monkeypatch.setattr(client._request_signer._credentials, "get_frozen_credentials", refused)
    with pytest.raises(TransientError, match="later"):
        store.put("lake", "k", b"x")


def test_new_credentials_sign_the_next_request() -> None:
    store, wire, client = store_on()
    store.put("lake", "k", b"x")
    client._request_signer._credentials.access_key = "second"
    store.put("lake", "k", b"x")
    first, second = (text(one.headers["Authorization"]) for one in wire.requests)
    assert "Credential=testing/" in first
    assert "Credential=second/" in second
    assert wire.by_botocore == 0
