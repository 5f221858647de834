"""An S3 client that answers what a test says, without a server."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders

from s3commit.aws import clients, ledger, s3
from s3commit.aws.prepared import PreparedRequests
from s3commit.aws.s3 import S3ObjectStore


class Raw:
    """As much of an HTTP response as botocore reads."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, *_: Any, **__: Any) -> list[bytes]:
        return [self._body]

    def read(self, amount: int | None = None) -> bytes:
        raise AssertionError("the body of an object was read")

    def close(self) -> None:
        self._body = b""


@dataclass
class Answers:
    """Canned HTTP answers, used up in order; ``requests`` is what was asked."""

    waiting: list[tuple[int, bytes, dict[str, str]]] = field(default_factory=list)
    requests: list[AWSPreparedRequest] = field(default_factory=list)

    def add(self, status: int, body: str = "", **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.waiting.append((status, body.encode(), named))

    def error(self, status: int, code: str) -> None:
        self.add(status, f"<Error><Code>{code}</Code><Message>in words</Message></Error>")

    def __call__(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        self.requests.append(request)
        status, body, headers = self.waiting.pop(0)
        return AWSResponse(request.url, status, HTTPHeaders.from_dict(headers), Raw(body))


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def pauses() -> list[float]:
    """The pauses that the store makes."""
    return []


@pytest.fixture
def client(answers: Answers, pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client on canned answers; botocore sends all, and does not retry."""
    monkeypatch.setattr(PreparedRequests, "_sent", lambda *_: None)
    monkeypatch.setattr(clients, "TOTAL_MAX_ATTEMPTS", 1)
    client: Any = clients.make_client()
    client.meta.events.register("before-send.s3.*", answers)
    monkeypatch.setattr(s3, "time", SimpleNamespace(sleep=pauses.append))
    return client


@pytest.fixture
def store(client: Any) -> S3ObjectStore:
    return S3ObjectStore(client)


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The sessions that ledgers make from now on; each keeps its last client as ``made``."""
    found, make_session = list[Any](), clients.make_session

    def make() -> Any:
        session: Any = make_session()
        create = session.create_client

        def create_client(*arguments: Any, **how: Any) -> Any:
            session.made = create(*arguments, **how)
            return session.made

        session.create_client = create_client
        found.append(session)
        return session

    monkeypatch.setattr(ledger, "make_session", make)
    return found
