"""Over TLS requests go to whom botocore trusts, by its settings, and over live connections."""

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
from tests.aws.wire import configure, store_on


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
def trusting(https: str, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> S3ObjectStore:
    monkeypatch.setenv("AWS_ENDPOINT_URL", https)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    return S3ObjectStore(clients.make_client())


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
    assert store._prepared._ways != {}


def test_a_connection_that_was_closed_meanwhile_is_no_reason_to_pause(
    trusting: S3ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Server, "closes", True)

    assert [trusting.put("lake", "k", b"x") for _ in range(5)] == ['"e"'] * 5
    assert trusting._prepared._again == 0


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
    name: str, before: int, trusting: S3ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not of its documented interface; a cluster may bring another version."""
    puts = [trusting.put("lake", "k", b"x") for _ in range(before)]
    monkeypatch.delattr(f"botocore.{name}")
    puts += [trusting.put("lake", "k", b"x") for _ in range(3)]
    assert {*puts} == {'"e"'}


@pytest.mark.parametrize("setting", ["REQUESTS_CA_BUNDLE", "AWS_PROFILE"])
def test_a_setting_that_became_wrong_is_no_failure_of_what_was_done(
    setting: str, trusting: S3ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_CA_BUNDLE")
    monkeypatch.setenv(setting, "nowhere")

    assert [trusting.put("lake", "k", b"x") for _ in range(3)] == ['"e"'] * 3
