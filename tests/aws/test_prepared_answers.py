"""Who sends a request: botocore, or `s3commit.aws.prepared`, by the answers until then."""

import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any, Final

import pytest
from botocore.exceptions import MissingDependencyException
from urllib3 import HTTPConnectionPool
from urllib3.exceptions import ProtocolError, ReadTimeoutError, SSLError

from s3commit.aws import clients, prepared
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.model.errors import InvalidInputError, S3CommitError, TransientError
from tests.aws.wire import CALLS, Call, Given, Wire, store_on


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock by which requests are sent here again."""
    now = [1000.0]
    monkeypatch.setattr(prepared, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


# What is about one object is no reason for a pause, and elsewhere is noted again.
PASSES = {200, 301, 302, 307, 308, 400, 404, 409, 412}
STATUSES: Final = [one.value for one in HTTPStatus if one >= 200]  # those that have a name


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_after_any_other_answer_botocore_sends_it_again(call: Call, now: list[float]) -> None:
    """And the next ones, unless the answer was about that object alone."""
    store, wire, _ = store_on(call)
    call(store, "k")
    assert (len(wire.requests), wire.by_botocore) == (1, 0)
    for status in range(200, 600) if call is CALLS["put"] else STATUSES:
        now[0] += prepared.PAUSE
        wire.clear()
        body = b"<Error><Code>InternalError</Code></Error>" if status == 200 else b"<half"
        wire.answers = [(status, body, {})]
        call(store, "k")
        assert (len(wire.requests), wire.by_botocore) == (2, 1), status
        call(store, "other")
        assert wire.by_botocore == (1 if status in PASSES else 2), status


def test_after_a_minute_it_is_tried_again(now: list[float]) -> None:
    store, wire, _ = store_on()
    wire.answers = [(503, b"", {})]
    store.put("lake", "k", b"x")
    for later, by_botocore in ((59.9, 2), (0.2, 2), (0.0, 2)):
        now[0] += later
        store.put("lake", "k", b"x")
        assert wire.by_botocore == by_botocore


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_no_answer_is_botocores_error(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "TOTAL_MAX_ATTEMPTS", 1)
    store, wire, client = store_on(call)
    client.meta.events.unregister("before-send", wire.answer)
    with pytest.raises(TransientError):
        call(store, "k")
    assert wire.by_botocore == 1


SLOW_DOWN: Final[Given] = (503, b"<Error><Code>SlowDown</Code></Error>", {})


class Virtual:
    """The clock of botocore's limiter, for which nobody waits."""

    now = 0.0


class Conditions(threading.Condition):
    """Waits by that clock."""

    def wait(self, timeout: float | None = None) -> bool:
        Virtual.now += max(timeout or 0, 1e-6)
        return False


THROTTLED: Final[Given] = (400, b"<Error><Code>ThrottlingException</Code></Error>", {})


@pytest.fixture
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore's limiter has a clock of its own, and its retries do not sleep."""
    monkeypatch.setattr("botocore.retries.bucket.Clock.current_time", lambda _: Virtual.now)
    virtual = SimpleNamespace(Lock=threading.Lock, Condition=Conditions)
    monkeypatch.setattr("botocore.retries.bucket.threading", virtual)
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)


@pytest.mark.parametrize("answer", [SLOW_DOWN, THROTTLED], ids=["SlowDown", "Throttling"])
@pytest.mark.parametrize("other", [True, False])
@pytest.mark.usefixtures("no_waits")
def test_a_client_that_slows_down_recovers(now: list[float], other: bool, answer: Given) -> None:
    """Also if another request of it was throttled: its rates grow by what is sent here."""
    store, wire, client = store_on(slows_down=True)
    took = []
    for unit in range(4):
        began = Virtual.now
        for number in range(256):
            if (unit, number) == (1, 100):
                wire.answers = [answer]
                if other:
                    client.get_object(Bucket="lake", Key="k")
            store.put("lake", f"{number}", b"x")
            Virtual.now += 0.02
            now[0] += prepared.PAUSE
        took.append(Virtual.now - began)
    assert wire.by_botocore == 1
    assert max(took[1:]) < 2 * took[0]


@pytest.mark.usefixtures("no_waits")
def test_what_is_sent_here_fills_botocores_quota_of_retries(now: list[float]) -> None:
    store, wire, _ = store_on()
    for _ in range(100):
        wire.answers = [(500, b"", {})] * 10
        with suppress(TransientError):
            store.put("lake", "k", b"x")
    wire.answers = []
    now[0] += prepared.PAUSE
    for _ in range(600):
        store.put("lake", "k", b"x")
    wire.answers = [(500, b"", {})] * 3
    assert store.put("lake", "k", b"x") == '"e"'


@pytest.mark.parametrize("value", ["ü", "a\nb", "a\r\nx-amz-acl: public-read", "\x00", "a\tb"])
def test_what_a_header_can_not_carry_is_left_to_botocore(value: str) -> None:
    store, wire, _ = store_on()
    with suppress(InvalidInputError):
        store.put("lake", "k", b"x", metadata={"who": value})
    assert wire.by_botocore == len(wire.requests)


def test_a_large_body_or_no_key_is_left_to_botocore() -> None:
    store, wire, _ = store_on()
    store.put("lake", "k", b"x" * prepared.SMALL)
    assert wire.by_botocore == 0
    store.put("lake", "k", b"x" * (prepared.SMALL + 1))
    assert wire.by_botocore == 1
    with pytest.raises(InvalidInputError):
        store.put("lake", "", b"x")
    assert len(wire.requests) == 2


DIRECTORY: Final = "lake--use1-az4--x-s3"  # signed for a session of its own
PROXY: Final = {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": ""}
REGIONS: Final = "arn:aws:s3::123456789012:accesspoint/mfzwi23gnjvgw.mrap"  # signed by SigV4A


@pytest.mark.parametrize(
    ("bucket", "settings"), [(DIRECTORY, {}), (REGIONS, {}), ("lake", PROXY), ("no name", {})]
)
def test_what_needs_a_proxy_or_another_signature_is_left_to_botocore(
    bucket: str, settings: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    client: Any = clients.make_client()
    _, store, called = Wire(client), S3ObjectStore(client), list[str]()
    called_by = "provide-client-params.s3.PutObject"
    client.meta.events.register(called_by, lambda model, **_: called.append(model.name))
    for _ in range(3):
        with suppress(S3CommitError, MissingDependencyException, KeyError):
            store.put(bucket, "k", b"x")
    assert called == ["PutObject"] * 3


LOST: Final = (
    ProtocolError("Connection aborted."),
    SSLError(ssl.SSLEOFError(8, "EOF occurred in violation of protocol")),
    SSLError(ssl.SSLZeroReturnError(6, "TLS/SSL connection has been closed")),
)
TROUBLE: Final = (
    SSLError(ssl.SSLCertVerificationError(1, "certificate verify failed")),
    ReadTimeoutError(HTTPConnectionPool("h"), "/", "Read timed out."),
    OSError("no route"),
    RuntimeError("whatever"),
)


@pytest.mark.parametrize("error", [*LOST, *TROUBLE], ids=str)
def test_three_lost_connections_in_a_row_pause_and_trouble_does_at_once(error: Exception) -> None:
    store, wire, client = store_on()
    fails, tried = [True, False, True, True, True], 0

    def fail(**_: Any) -> None:
        nonlocal tried
        if wire.by_botocore == before:  # it is sent here
            tried += 1
            if fails.pop(0):
                raise error

    client.meta.events.register_first("before-send.s3", fail)
    for _ in range(8):
        before = wire.by_botocore
        store.put("lake", "k", b"x")
    assert tried == (5 if error in LOST else 1)


def test_where_successes_can_not_be_counted_botocore_sends_all() -> None:
    """Its handlers of another version may want more than this one's."""

    def wants(*, more: object, **_: object) -> None:
        raise AssertionError(more)

    store, wire, client = store_on()
    client.meta.events.register("needs-retry.s3.PutObject", wants)
    assert store.put("lake", "k", b"x") == '"e"'
    client.meta.events.unregister("needs-retry.s3.PutObject", wants)
    assert store.put("lake", "k", b"x") == '"e"'
    assert wire.by_botocore == 1


@pytest.mark.parametrize("encoding", ["big5", "nope", "utf-16"])
def test_an_answer_in_an_encoding_that_nobody_reads_is_no_success(encoding: str) -> None:
    store, wire, _ = store_on(CALLS["create"])
    body = f'<?xml version="1.0" encoding="{encoding}"?><InitiateMultipartUploadResult/>'
    wire.answers = [(200, body.encode(), {})]
    CALLS["create"](store, "k")
    assert wire.by_botocore == 1
