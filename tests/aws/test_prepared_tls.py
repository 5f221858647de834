"""Over TLS requests go to whom botocore trusts, by its settings."""

import http.server
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from werkzeug.serving import make_ssl_devcert

from s3commit.aws import clients
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.model.errors import TransientError
from tests.aws.wire import store_on


class Server(http.server.BaseHTTPRequestHandler):
    """Answers each request with a success."""

    protocol_version = "HTTP/1.1"
    seen: ClassVar[list[str]] = []

    def do_PUT(self) -> None:
        self.seen.append(self.path)
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
    made, key = make_ssl_devcert(str(tmp_path / "localhost"), host="localhost")
    both = tmp_path / "localhost.pem"
    both.write_bytes(Path(made).read_bytes() + Path(key).read_bytes())
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


@pytest.fixture
def client(https: str, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """One that trusts the server."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", https)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    return clients.make_client()


@pytest.fixture
def trusting(client: Any) -> S3ObjectStore:
    return S3ObjectStore(client)


def test_requests_go_over_botocores_connections(client: Any, trusting: S3ObjectStore) -> None:
    called, sent = list[str](), list[Any]()
    client.meta.events.register("before-call", lambda model, **_: called.append(model.name))
    client.meta.events.register("before-send", lambda request, **_: sent.append(request))
    assert [trusting.put("lake", "k", b"x") for _ in range(2)] == ['"e"'] * 2
    client._endpoint.http_session._manager.clear()  # as it does for other hosts
    assert trusting.put("lake", "k", b"x") == '"e"'
    assert called == ["PutObject"]
    agents = [request.headers["User-Agent"] for request in sent[1:]]
    assert [type(one) for one in agents] == [str] * 2  # the signer of awscrt takes no bytes


@pytest.mark.parametrize("address", ["localhost", "127.0.0.1"])
def test_a_stranger_is_sent_nothing(
    address: str, https: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose certificate nobody trusts, or is of another name, though botocore was answered."""
    monkeypatch.setattr(clients, "TOTAL_MAX_ATTEMPTS", 1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", https.replace("localhost", address))
    for name in ("REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    if address != "localhost":
        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    store, wire, client = store_on()
    client.meta.events.unregister("before-send", wire.answer)
    tried = list[bool]()
    client.meta.events.register("before-send", lambda **_: tried.append(wire.by_botocore == 0))
    Server.seen.clear()
    with pytest.raises(TransientError, match=r"CERTIFICATE_VERIFY_FAILED|doesn't match"):
        store.put("lake", "k", b"x")
    assert Server.seen == []
    assert tried == [True, False]


@pytest.mark.parametrize("before", [0, 1, 2])
def test_without_a_name_of_botocores_it_sends_all(
    before: int, trusting: S3ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not of the documented interface; a cluster may bring another version."""
    puts = [trusting.put("lake", "k", b"x") for _ in range(before)]
    monkeypatch.delattr("botocore.handlers.add_recursion_detection_header")
    puts += [trusting.put("lake", "k", b"x") for _ in range(3)]
    assert {*puts} == {'"e"'}
