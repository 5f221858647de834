"""Requests that botocore does not send are the ones that it would send; and who sends when."""

import http.server
import io
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl, urlsplit
from xml.etree import ElementTree

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ClientError, MissingDependencyException
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from urllib3 import HTTPConnectionPool
from urllib3.exceptions import ProtocolError, ReadTimeoutError, SSLError

from s3commit.aws import clients, prepared
from s3commit.aws.clients import Encryption
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.model.errors import AccessError, InvalidInputError, S3CommitError, TransientError
from tests.aws.conftest import Raw

Call = Callable[[S3ObjectStore, str], object]
Given = tuple[int, bytes, dict[str, str]]

CALLS: Final[dict[str, Call]] = {
    "put": lambda store, key: store.put("lake", key, b"x" * 100),
    "put of nothing": lambda store, key: store.put("lake", key, b""),
    "put if absent": lambda store, key: store.put("lake", key, b"x", if_absent=True),
    "put if it matches": lambda store, key: store.put("lake", key, b"x", if_match='"e"'),
    "put with metadata": lambda store, key: store.put(
        "lake", key, b"x", content_type="text/csv", metadata={"S3commit-Job": "a  b", "n": ""}
    ),
    "create": lambda store, key: store.create_upload(
        "lake", key, metadata={"job": "1"}, content_type="text/csv; charset=utf-8"
    ),
    "part": lambda store, key: store.upload_part("lake", key, "i/+= d", 7, b"x" * 100),
    "complete": lambda store, key: store.complete_upload(
        "lake", key, "i/+= d", ['"a&<>"', "b"], length=5
    ),
    "complete if absent": lambda store, key: store.complete_upload(
        "lake", key, "id", ['"a"'], length=5, if_absent=True
    ),
}
IN_A_BODY: Final = [one for name, one in CALLS.items() if name.startswith(("create", "complete"))]
KEYS: Final = (
    *(f"t/{chr(code)}/x{chr(code)}" for code in range(1, 0x180)),
    *("/a", "//a", "a//b", "a/", "./a", "a/../b", "..", "a/.", "~/*'()!", "ü/日本/😀", "k", "k/k"),
)
ENCRYPTIONS: Final = (
    Encryption("AES256"),
    Encryption("aws:kms", "arn:aws:kms:eu-west-1:1:key/a", bucket_key=True),
    Encryption("aws:kms:dsse", bucket_key=False),
)
SETTINGS: Final[dict[str, dict[str, str]]] = {
    "us-east-1": {"AWS_REGION": "us-east-1"},
    "of Europe": {"AWS_REGION": "eu-west-1"},
    "opted in": {"AWS_REGION": "eu-south-1"},
    "of a government": {"AWS_REGION": "us-gov-west-1"},
    "of China": {"AWS_REGION": "cn-north-1"},
    "by FIPS": {"AWS_REGION": "us-west-2", "AWS_USE_FIPS_ENDPOINT": "true"},
    "by IPv6": {"AWS_USE_DUALSTACK_ENDPOINT": "true"},
    "below a path": {"AWS_ENDPOINT_URL": "http://127.0.0.1:9/stores/one"},
    "with a token": {"AWS_SESSION_TOKEN": "t/+="},
    "in a function": {"AWS_LAMBDA_FUNCTION_NAME": "f", "_X_AMZN_TRACE_ID": "Root=1-2;Sampled=1"},
    "addressed by path": {"config": "[default]\ns3 =\n  addressing_style = path\n"},
    "accelerated": {"config": "[default]\ns3 =\n  use_accelerate_endpoint = true\n"},
    "unsigned bodies": {"config": "[default]\ns3 =\n  payload_signing_enabled = false\n"},
}
# What differs each time; and botocore asks before it sends a body, and waits for that answer too.
_OWN: Final = {
    *("amz-sdk-invocation-id", "amz-sdk-request", "expect"),
    *("authorization", "x-amz-date"),
}
MOVED: Final = (
    301,
    b"<Error><Code>PermanentRedirect</Code></Error>",
    {"x-amz-bucket-region": "sa-east-1"},
)


class Wire:
    """Answers each request instead of S3; with a success unless ``answers`` says otherwise."""

    def __init__(self, client: Any) -> None:
        self.requests: list[AWSPreparedRequest] = []
        self.by_botocore = 0
        self.answers: list[Given] = []
        client.meta.events.register("before-send.s3", self.answer)
        client.meta.events.register("before-call.s3", self._count)

    def _count(self, **_: Any) -> None:
        self.by_botocore += 1

    def answer(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        self.requests.append(request)
        given = self.answers.pop(0) if self.answers else (200, success(request), {})
        status, body, headers = given
        named = HTTPHeaders.from_dict({"ETag": '"e"', **headers})
        return AWSResponse(request.url, status, named, Raw(body))

    def clear(self) -> None:
        self.requests.clear()
        self.by_botocore = 0


def success(request: AWSPreparedRequest) -> bytes:
    query = urlsplit(request.url).query
    if request.method == "PUT":
        return b""
    root = (
        "InitiateMultipartUploadResult" if "uploads" in query else "CompleteMultipartUploadResult"
    )
    return f"<{root} xmlns='x'><UploadId>id</UploadId><ETag>&quot;e&quot;</ETag></{root}>".encode()


def store_on(
    call: Call = CALLS["put"], encryption: Encryption | None = None, **settings: Any
) -> tuple[S3ObjectStore, Wire, Any]:
    """A store that was shown the call, and what it sends from then on."""
    client: Any = clients.make_client(**settings)
    wire, store = Wire(client), S3ObjectStore(client, encryption=encryption)
    call(store, "first/key")
    wire.clear()
    return store, wire, client


def plain(request: AWSPreparedRequest) -> tuple[object, ...]:
    """What of a request S3 acts upon."""
    parts = urlsplit(request.url)
    body: Any = request.body or b""
    body = body.getvalue() if isinstance(body, io.BytesIO) else body
    if isinstance(body, bytes) and body.startswith(b"<"):
        body = str(sorted((one.tag, one.text) for one in ElementTree.fromstring(body).iter()))
    headers = {name.lower(): text(value) for name, value in request.headers.items()}
    if isinstance(body, str):  # the parts, whose order and spelling may differ
        headers |= {"x-amz-content-sha256": "", "content-length": ""}
    query = sorted(parse_qsl(parts.query, keep_blank_values=True))
    scope = headers["authorization"].partition("SignedHeaders")[0]
    named = {name: value for name, value in headers.items() if name not in _OWN}
    return request.method, parts.scheme, parts.netloc, parts.path, query, body, scope, named


def text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def configure(
    monkeypatch: pytest.MonkeyPatch, directory: Path, config: str = "", **settings: str
) -> None:
    if config:
        (directory / "config").write_text(config)
        settings["AWS_CONFIG_FILE"] = str(directory / "config")
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


# The same requests


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


def test_after_a_redirect_requests_go_where_it_led(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    client: Any = clients.make_client()
    wire, store = Wire(client), S3ObjectStore(client)
    wire.answers = [MOVED]
    store.put("lake", "a", b"x")
    wire.clear()
    store.put("lake", "b", b"x")

    (request,) = wire.requests
    assert wire.by_botocore == 0
    assert urlsplit(request.url).netloc == "lake.s3.sa-east-1.amazonaws.com"
    assert "/sa-east-1/s3/" in text(request.headers["Authorization"])


def test_where_a_bucket_has_moved_botocore_finds_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    store, wire, _ = store_on()
    wire.answers = [MOVED, MOVED]

    store.put("lake", "b", b"x")

    assert urlsplit(wire.requests[-1].url).netloc == "lake.s3.sa-east-1.amazonaws.com"


def test_stores_of_one_client_do_not_learn_from_each_other() -> None:
    """Another one sends its first request in another thread while one sends its own."""
    client: Any = clients.make_client()
    wire, plainly = Wire(client), S3ObjectStore(client)
    locked = S3ObjectStore(client, encryption=Encryption("aws:kms", "secret"))
    begun: list[str] = []

    def meanwhile(**_: Any) -> None:
        if not begun:
            begun.append("locked")
            other = threading.Thread(target=lambda: locked.put("vault", "a", b"x"))
            other.start()
            other.join()

    client.meta.events.register_last("before-sign.s3", meanwhile)
    plainly.put("lake", "a", b"x")
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
    ("first", "header"),
    [("put with metadata", "x-amz-meta-n"), ("put if absent", "If-None-Match")],
)
def test_what_only_the_first_request_has_the_next_one_has_not(first: str, header: str) -> None:
    store, wire, _ = store_on(CALLS[first])
    store.put("lake", "k", b"x")

    (request,) = wire.requests
    assert wire.by_botocore == 0
    assert header not in request.headers
    assert text(request.headers["Content-Type"]) == "application/json"


# Who sends


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_a_success_takes_no_work_of_botocore(call: Call) -> None:
    store, wire, _ = store_on(call)

    call(store, "k")

    assert (len(wire.requests), wire.by_botocore) == (1, 0)


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_after_any_other_answer_botocore_sends_it_again(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the next ones, unless the answer was about that object alone."""
    now = [0.0]
    monkeypatch.setattr(prepared, "time", SimpleNamespace(monotonic=lambda: now[0]))
    store, wire, _ = store_on(call)
    for status in range(200, 600):
        if status == 200 and call not in IN_A_BODY:
            continue
        now[0] += prepared.PAUSE
        wire.clear()
        body = b"<Error><Code>InternalError</Code></Error>" if status == 200 else b"<half"
        wire.answers = [(status, body, {})]
        call(store, "k")
        assert (len(wire.requests), wire.by_botocore) == (2, 1), status
        call(store, "other")
        passes = {200, *prepared._OF_ONE_OBJECT, *prepared._NOT_SO}
        assert wire.by_botocore == (1 if status in passes else 2), status


def test_after_a_minute_it_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(prepared, "time", SimpleNamespace(monotonic=lambda: now[0]))
    store, wire, _ = store_on()
    wire.answers = [(503, b"", {})]
    store.put("lake", "k", b"x")
    for later, by_botocore in ((59.9, 2), (0.2, 2), (0.0, 2)):
        now[0] += later
        store.put("lake", "k", b"x")
        assert wire.by_botocore == by_botocore


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_where_nothing_answers_the_error_is_botocores(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "TOTAL_MAX_ATTEMPTS", 1)
    store, wire, client = store_on(call)
    client.meta.events.unregister("before-send.s3", wire.answer)

    with pytest.raises(TransientError):
        call(store, "k")
    assert wire.by_botocore == 1


SLOW_DOWN: Final[Given] = (503, b"<Error><Code>SlowDown</Code></Error>", {})


class Virtual:
    """The clock of botocore's limiter, for which nobody waits."""

    now = 0.0

    def current_time(self) -> float:
        return Virtual.now


class Conditions(threading.Condition):
    """Waits by that clock."""

    def wait(self, timeout: float | None = None) -> bool:
        Virtual.now += max(timeout or 0, 1e-6)
        return False


def test_a_client_that_slows_down_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rates start from what botocore sends, so that is all, once S3 has throttled."""
    monkeypatch.setattr("botocore.retries.bucket.Clock.current_time", Virtual.current_time)
    virtual = SimpleNamespace(Lock=threading.Lock, Condition=Conditions)
    monkeypatch.setattr("botocore.retries.bucket.threading", virtual)
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
    store, wire, _ = store_on(slows_down=True)
    wire.answers = [SLOW_DOWN] * 3
    took = []
    for _ in range(4):
        began = Virtual.now
        for number in range(256):
            store.put("lake", f"{number}", b"x")
            Virtual.now += 0.001
        took.append(Virtual.now - began)
        store._prepared._again = 0.0  # the pause of another thread's request is over
    assert wire.by_botocore == 4 * 256
    assert took[-1] < took[0] < 90  # seconds that a unit of 256 files has


ERROR: Final[Given] = (500, b"<Error><Code>InternalError</Code></Error>", {})


@pytest.mark.parametrize("slows_down", [True, False])
@pytest.mark.parametrize(
    ("answer", "throttles"),
    [
        ((503, b"<Error><Code>SlowDown</Code></Error>", {}), True),
        ((200, b"<Error><Code>SlowDown</Code></Error>", {}), True),
        ((429, b"", {}), True),
        (ERROR, False),
        ((503, b"<Error><Code>ServiceUnavailable</Code></Error>", {}), False),
    ],
)
def test_what_botocore_takes_for_throttling_ends_it_for_a_client_that_slows_down(
    answer: Given, throttles: bool, slows_down: bool
) -> None:
    store, wire, _ = store_on(CALLS["complete"], slows_down=slows_down)
    wire.answers = [answer]
    CALLS["complete"](store, "k")
    store._prepared._again = 0.0
    CALLS["complete"](store, "k")
    assert wire.by_botocore == (2 if throttles and slows_down else 1)


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
REGIONS: Final = "arn:aws:s3::123456789012:accesspoint/mfzwi23gnjvgw.mrap"  # signed by SigV4A
PROXY: Final = {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": ""}


@pytest.mark.parametrize(
    ("bucket", "settings"), [(DIRECTORY, {}), (REGIONS, {}), ("lake", PROXY), ("no name", {})]
)
def test_what_needs_more_than_a_signature_and_a_connection_is_left_to_botocore(
    bucket: str, settings: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    client: Any = clients.make_client()
    wire, store = Wire(client), S3ObjectStore(client)

    for _ in range(3):
        with suppress(S3CommitError, MissingDependencyException, KeyError):
            store.put(bucket, "k", b"x")
    assert store._prepared._templates == {}
    assert len(wire.requests) <= wire.by_botocore + 2  # a directory bucket's session


def test_no_proxy_alone_is_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "169.254.169.254")
    store, wire, _ = store_on()
    store.put("lake", "k", b"x")
    assert wire.by_botocore == 0


# Credentials


def test_no_credentials_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    store, _, client = store_on()
    monkeypatch.setattr(client._request_signer, "_credentials", None)

    with pytest.raises(AccessError, match="no AWS credentials"):
        store.put("lake", "k", b"x")


def test_credentials_that_can_not_be_renewed_are_an_error_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


# TLS


class Server(http.server.BaseHTTPRequestHandler):
    """Answers each request with a success."""

    protocol_version = "HTTP/1.1"
    seen: ClassVar[list[str]] = []
    closes = False  # without a word, as S3 closes what was idle

    def do_PUT(self) -> None:
        self.seen.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("ETag", '"e"')
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.close_connection = self.closes

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of localhost that nobody has signed, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    both = tmp_path / "localhost.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    both.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
    return both


@pytest.fixture
def https(certificate: Path) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"https://localhost:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("name", ["AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "ca_bundle"])
def test_certificates_are_those_of_the_settings(
    name: str, https: str, certificate: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for other in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(other, raising=False)
    config = f"[default]\nca_bundle = {certificate}\n"
    said = {"config": config} if name == "ca_bundle" else {name: str(certificate)}
    configure(monkeypatch, tmp_path, AWS_ENDPOINT_URL=https, **said)
    client: Any = clients.make_client()
    called: list[str] = []
    client.meta.events.register("before-call", lambda model, **_: called.append(model.name))
    store = S3ObjectStore(client)

    assert [store.put("lake", "k", b"x") for _ in range(3)] == ['"e"'] * 3
    assert called == ["PutObject"]


@pytest.mark.parametrize("address", ["localhost", "127.0.0.1"])
def test_a_stranger_is_sent_nothing(
    address: str, https: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose certificate nobody trusts, or is of another name, though botocore was answered."""
    monkeypatch.setattr(clients, "TOTAL_MAX_ATTEMPTS", 1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", https.replace("localhost", address))
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    if address != "localhost":
        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    store, wire, client = store_on()
    client.meta.events.unregister("before-send.s3", wire.answer)
    Server.seen.clear()

    with pytest.raises(TransientError, match=r"CERTIFICATE_VERIFY_FAILED|doesn't match"):
        store.put("lake", "k", b"x")
    assert Server.seen == []
    assert store._prepared._templates != {}


def test_a_connection_that_was_closed_meanwhile_is_no_reason_to_pause(
    https: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", https)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    store = S3ObjectStore(clients.make_client())
    monkeypatch.setattr(Server, "closes", True)

    assert [store.put("lake", "k", b"x") for _ in range(5)] == ['"e"'] * 5
    assert store._prepared._again == 0


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
def test_a_lost_connection_pauses_if_the_next_one_is_lost_too_and_trouble_at_once(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _, _ = store_on()
    sent, fails = prepared.PreparedRequests._tried, [True, False, True, True]

    def tried(*given: Any) -> Any:
        if fails.pop(0):
            raise error
        return sent(*given)

    monkeypatch.setattr(prepared.PreparedRequests, "_tried", tried)
    paused = []
    while fails:
        store.put("lake", "k", b"x")
        paused.append(store._prepared._again > 0)
        store._prepared._again = 0.0
    assert paused == ([False, False, False, True] if error in LOST else [True, False, True, True])


@pytest.mark.parametrize(
    "name",
    [
        "handlers.add_recursion_detection_header",
        "utils.get_environ_proxies",
        "httpsession.create_urllib3_context",
    ],
)
@pytest.mark.parametrize("before", [0, 1, 2])
def test_without_a_name_of_botocores_it_sends_all(
    name: str, before: int, https: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not of its documented interface; a cluster may bring another version."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", https)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    store = S3ObjectStore(clients.make_client())
    puts = [store.put("lake", "k", b"x") for _ in range(before)]
    monkeypatch.delattr(f"botocore.{name}")
    puts += [store.put("lake", "k", b"x") for _ in range(3)]
    assert {*puts} == {'"e"'}


@pytest.mark.parametrize("setting", ["REQUESTS_CA_BUNDLE", "AWS_PROFILE"])
def test_a_setting_that_became_wrong_is_no_failure_of_what_was_done(
    setting: str, monkeypatch: pytest.MonkeyPatch, https: str, certificate: Path
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", https)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    store = S3ObjectStore(clients.make_client())
    monkeypatch.delenv("AWS_CA_BUNDLE")
    monkeypatch.setenv(setting, "nowhere")

    assert [store.put("lake", "k", b"x") for _ in range(3)] == ['"e"'] * 3


def test_a_block_within_a_block_notes_its_own() -> None:
    client: Any = clients.make_client()
    Wire(client)
    outer, inner = (prepared.PreparedRequests(client) for _ in range(2))
    named: Any = {"Bucket": "lake", "Body": b"x"}
    with outer.shown("PutObject", "lake", "a"):
        client.put_object(Key="a", **named)
        with inner.shown("PutObject", "lake", "b"):
            client.put_object(Key="b", **named)
        client.head_object(Bucket="lake", Key="c")
    assert len(outer._templates) == len(inner._templates) == 1


@pytest.mark.parametrize("encoding", ["big5", "nope", "utf-16"])
def test_an_answer_in_an_encoding_that_nobody_reads_is_no_success(encoding: str) -> None:
    store, wire, _ = store_on(CALLS["create"])
    body = f'<?xml version="1.0" encoding="{encoding}"?><InitiateMultipartUploadResult/>'
    wire.answers = [(200, body.encode(), {})]
    CALLS["create"](store, "k")
    assert wire.by_botocore == 1
