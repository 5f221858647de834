"""Requests that botocore does not send are the ones that it would send; and who sends when."""

import http.server
import io
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit
from xml.etree import ElementTree

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import MissingDependencyException
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from s3commit.aws import clients, prepared
from s3commit.aws.clients import Encryption
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.model.errors import AccessError, InvalidInputError, S3CommitError, TransientError
from tests.aws.conftest import Raw

Call = Callable[[S3ObjectStore, str], object]

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
KEYS: Final = (
    *(f"t/{chr(code)}/x{chr(code)}" for code in range(1, 0x180)),
    *("/a", "//a", "a//b", "a/", "./a", "a/../b", "..", "a/.", "~/*'()!", "ü/日本/😀", "k", "k/k"),
)
ENCRYPTIONS: Final = (
    None,
    Encryption("AES256"),
    Encryption("aws:kms", "arn:aws:kms:eu-west-1:1:key/a", bucket_key=True),
    Encryption("aws:kms:dsse", bucket_key=False),
)
# What differs each time; and botocore asks before it sends a body, and waits for that response too.
_OWN: Final = {
    *("amz-sdk-invocation-id", "amz-sdk-request", "expect"),
    *("authorization", "x-amz-date"),
}


class Wire:
    """Answers each request instead of S3; with a success unless ``answers`` says otherwise."""

    def __init__(self, client: Any) -> None:
        self.requests: list[AWSPreparedRequest] = []
        self.by_botocore = 0
        self.answers: list[tuple[int, bytes]] = []
        client.meta.events.register("before-send.s3", self._answer)
        client.meta.events.register("before-call.s3", self._count)

    def _count(self, **_: Any) -> None:
        self.by_botocore += 1

    def _answer(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        self.requests.append(request)
        status, body = self.answers.pop(0) if self.answers else (200, success(request))
        headers = HTTPHeaders.from_dict({"ETag": '"e"'})
        return AWSResponse(request.url, status, headers, Raw(body))


def success(request: AWSPreparedRequest) -> bytes:
    query = urlsplit(request.url).query
    if request.method == "PUT":
        return b""
    root = (
        "InitiateMultipartUploadResult" if "uploads" in query else "CompleteMultipartUploadResult"
    )
    return f"<{root} xmlns='x'><UploadId>id</UploadId><ETag>&quot;e&quot;</ETag></{root}>".encode()


def store_on(
    encryption: Encryption | None = None, **settings: Any
) -> tuple[S3ObjectStore, Wire, Any]:
    client: Any = clients.make_client(**settings)
    wire = Wire(client)
    return S3ObjectStore(client, encryption=encryption), wire, client


def plain(request: AWSPreparedRequest) -> tuple[object, ...]:
    """What of a request S3 acts upon."""
    parts = urlsplit(request.url)
    body: Any = request.body or b""
    body = body.getvalue() if isinstance(body, io.BytesIO) else body
    if isinstance(body, bytes) and body.startswith(b"<"):
        body = str(sorted((one.tag, one.text) for one in ElementTree.fromstring(body).iter()))
    headers = {name.lower(): _text(value) for name, value in request.headers.items()}
    if isinstance(body, str):  # the parts, whose order and spelling may differ
        del headers["x-amz-content-sha256"], headers["content-length"]
    query = sorted(parse_qsl(parts.query, keep_blank_values=True))
    named = {name: value for name, value in headers.items() if name not in _OWN}
    return request.method, parts.scheme, parts.netloc, parts.path, query, body, named


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


@pytest.mark.parametrize("encryption", ENCRYPTIONS, ids=str)
def test_each_request_is_what_botocore_would_send(encryption: Encryption | None) -> None:
    store, wire, _ = store_on(encryption)
    for name, call in CALLS.items():
        for key in KEYS if encryption is None else KEYS[-1:]:
            wire.requests.clear()
            wire.answers = [(404, b"")]  # it is about one object, so the next one is tried again
            call(store, key)
            ours, theirs = wire.requests
            assert plain(ours) == plain(theirs), (name, key)


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_a_success_takes_no_work_of_botocore(call: Call) -> None:
    store, wire, _ = store_on()

    call(store, "k")

    assert (len(wire.requests), wire.by_botocore) == (1, 0)


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_after_any_other_answer_botocore_sends_it_again(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the next ones, unless the answer was about that object alone."""
    monkeypatch.setattr(clients, "TOTAL_MAX_ATTEMPTS", 1)
    bodies = {200: b"<Error><Code>InternalError</Code></Error>"}
    for status in range(200, 600):
        store, wire, _ = store_on()
        wire.answers = [(status, bodies.get(status, b"<half"))]
        if status == 200 and success_by_headers(store, call):
            continue
        call(store, "k")
        assert (len(wire.requests), wire.by_botocore) == (2, 1), status
        call(store, "other")
        told = status == 200 or status in {404, 409, 412}
        assert wire.by_botocore == (1 if told else 2), status


def success_by_headers(store: S3ObjectStore, call: Call) -> bool:
    """True for the requests whose success is in a header."""
    return call in {one for name, one in CALLS.items() if name.startswith(("put", "part"))}


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_where_nothing_answers_the_error_is_botocores(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "TOTAL_MAX_ATTEMPTS", 1)
    store = S3ObjectStore(clients.make_client())

    with pytest.raises(TransientError):
        call(store, "k")


def test_after_a_minute_it_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(prepared, "time", SimpleNamespace(monotonic=lambda: now[0]))
    store, wire, _ = store_on()
    wire.answers = [(503, b"")]
    store.put("lake", "k", b"x")
    for later, by_botocore in ((59.9, 2), (0.2, 2), (0.0, 2)):
        now[0] += later
        store.put("lake", "k", b"x")
        assert wire.by_botocore == by_botocore


@pytest.mark.parametrize("value", ["ü", "a\nb", "a\r\nx-amz-acl: public-read", "\x00", "a\tb"])
def test_what_a_header_can_not_carry_is_left_to_botocore(value: str) -> None:
    store, wire, _ = store_on()

    with suppress(InvalidInputError):
        store.put("lake", "k", b"x", metadata={"who": value})
    assert wire.by_botocore == len(wire.requests)


def test_no_credentials_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    store, _, client = store_on()
    monkeypatch.setattr(client._request_signer, "_credentials", None)

    with pytest.raises(AccessError, match="no AWS credentials"):
        store.put("lake", "k", b"x")


def test_new_credentials_sign_the_next_request() -> None:
    store, wire, client = store_on()
    store.put("lake", "k", b"x")
    client._request_signer._credentials.access_key = "second"
    store.put("lake", "k", b"x")

    first, second = (_text(one.headers["Authorization"]) for one in wire.requests)
    assert "Credential=testing/" in first
    assert "Credential=second/" in second
    assert wire.by_botocore == 0


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
    store, wire, _ = store_on()

    with suppress(S3CommitError, MissingDependencyException):
        store.put(bucket, "k", b"x")
    assert wire.by_botocore == len(wire.requests)


@pytest.mark.parametrize(
    "bucket", ["lake", "la.ke", "arn:aws:s3:eu-west-1:123456789012:accesspoint/lake"]
)
def test_aws_itself_is_sent_to_without_botocore(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    store, wire, _ = store_on()

    store.put(bucket, "k", b"x")

    (request,) = wire.requests
    assert wire.by_botocore == 0
    assert request.url.startswith("https://")
    assert urlsplit(request.url).netloc.endswith(".amazonaws.com")


class Server(http.server.BaseHTTPRequestHandler):
    """Answers each request with a success."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("ETag", '"e"')
        self.send_header("Content-Length", "0")
        self.end_headers()

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


@pytest.mark.parametrize("name", ["AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
def test_certificates_are_those_of_the_settings(
    name: str, https: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "TOTAL_MAX_ATTEMPTS", 1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", https)
    for other in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(other, raising=False)

    with pytest.raises(TransientError, match="CERTIFICATE_VERIFY_FAILED"):
        S3ObjectStore(clients.make_client()).put("lake", "k", b"x")

    monkeypatch.setenv(name, str(certificate))
    client: Any = clients.make_client()
    called: list[str] = []
    client.meta.events.register("before-call", lambda model, **_: called.append(model.name))
    assert S3ObjectStore(client).put("lake", "k", b"x") == '"e"'
    assert called == []


def test_a_host_of_another_name_is_refused(
    https: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "TOTAL_MAX_ATTEMPTS", 1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", https.replace("localhost", "127.0.0.1"))
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))

    with pytest.raises(TransientError, match="doesn't match 'localhost'"):
        S3ObjectStore(clients.make_client()).put("lake", "k", b"x")
