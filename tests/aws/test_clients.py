"""Credentials of a machine's role, from a metadata service that throttles; and the clock."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from s3commit.aws import clients
from s3commit.aws.clients import ATTEMPTS, PATIENCE, make_client, make_session
from s3commit.aws.clock import SystemClock
from s3commit.aws.executions import StateMachine
from s3commit.aws.ledger import DynamoLedger
from s3commit.core.model.errors import AccessError, InvalidInputError
from s3commit.writer.access import shared_client
from tests.conftest import REGION
from tests.servers import answering

ROLE = "/latest/meta-data/iam/security-credentials/"
KEYS = {
    "Code": "Success",
    "AccessKeyId": "of-the-role",
    "SecretAccessKey": "secret",
    "Token": "token",
    "Expiration": "2099-01-01T00:00:00Z",
}


@dataclass
class Metadata:
    """An instance's metadata service; it answers the first ``refused`` requests with 503."""

    refused: int = 0
    seen: list[str] = field(default_factory=list)

    def answer(self, asked: BaseHTTPRequestHandler, _body: bytes) -> tuple[int, bytes]:
        self.seen.append(f"{asked.command} {asked.path}")
        if len(self.seen) <= self.refused:
            return 503, b"slow down"
        if asked.command == "PUT":
            return 200, b"session"
        if asked.headers.get("x-aws-ec2-metadata-token") != "session":
            return 401, b"no token"
        return 200, json.dumps(KEYS).encode() if asked.path.endswith("/worker") else b"worker"


@pytest.fixture
def metadata(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Metadata]:
    """A machine whose only credentials are its role's."""
    service = Metadata()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    with answering(service.answer) as url:
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", f"{url}/")
        yield service


@dataclass
class Time:
    """A clock that sleeping alone moves."""

    now: float = 0.0
    pauses: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def monotonic(self) -> float:
        return self.now


def key_of(time: Time) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clients, "time", time)
        found = make_session(REGION).get_credentials()
    assert found is not None
    return str(found.access_key)


def test_a_refused_request_is_repeated_at_once(metadata: Metadata) -> None:
    metadata.refused = ATTEMPTS - 1
    time = Time()
    assert key_of(time) == "of-the-role"
    assert time.pauses == []
    metadata.seen.clear()
    metadata.refused = 20  # it throttles for longer: the pauses grow
    assert key_of(time) == "of-the-role"
    assert 2 <= len(time.pauses) <= 4
    assert time.pauses == sorted(set(time.pauses))


def test_a_service_that_never_answers_ends_in_one_line(metadata: Metadata) -> None:
    metadata.refused = 10**6
    time = Time()
    with pytest.raises(AccessError) as caught:
        key_of(time)
    assert caught.value.code == "NO_CREDENTIALS"
    assert caught.value.message.startswith(
        "no AWS credentials were found, so no request was made and nothing was changed: set "
    )
    assert "AWS_METADATA_SERVICE_NUM_ATTEMPTS" in caught.value.message
    assert "\n" not in caught.value.message
    assert sum(time.pauses[:-1]) < PATIENCE <= sum(time.pauses)


@pytest.mark.parametrize("by", ["environment", "profile"])
def test_what_the_user_sets_counts(
    metadata: Metadata, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, by: str
) -> None:
    if by == "environment":
        monkeypatch.setenv("AWS_METADATA_SERVICE_NUM_ATTEMPTS", "1")
        monkeypatch.setenv("AWS_METADATA_SERVICE_TIMEOUT", "7")
    else:
        (tmp_path / "config").write_text(
            "[default]\nmetadata_service_num_attempts = 1\nmetadata_service_timeout = 7\n"
        )
    metadata.refused = 2
    time = Time()
    with pytest.raises(AccessError):
        key_of(time)
    assert (len(metadata.seen), time.pauses) == (2, [])
    core = make_session(REGION)
    assert core.get_config_variable("metadata_service_timeout") == 7


MACHINE = f"arn:aws:states:{REGION}:123456789012:stateMachine:x"


# pynamodb would make a session of its own, which asks once, at the first request.
MAKES = [make_client, lambda: StateMachine(MACHINE), lambda: DynamoLedger("ledger")]


@pytest.mark.parametrize("make", MAKES, ids=["s3", "stepfunctions", "dynamodb"])
def test_every_client_of_ours_asks_so(metadata: Metadata, make: Callable[[], object]) -> None:
    """At once, when it is made."""
    metadata.refused = ATTEMPTS - 1
    make()
    assert metadata.seen[-1] == f"GET {ROLE}worker"


def test_a_worker_may_find_some_later(metadata: Metadata, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark gives a worker process the next task, and its one client must not be without keys."""
    shared_client.cache_clear()
    monkeypatch.setenv("AWS_METADATA_SERVICE_NUM_ATTEMPTS", "1")
    metadata.refused = 2
    with pytest.raises(AccessError):
        shared_client()
    assert shared_client().meta.region_name == REGION
    asked = len(metadata.seen)
    shared_client()
    assert len(metadata.seen) == asked
    shared_client.cache_clear()


def test_a_ledger_needs_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InvalidInputError, match="connecting to DynamoDB: You must specify a reg"):
        DynamoLedger("ledger")


# The clock of the deployed functions


def test_who_lost_together_does_not_come_again_together(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    for _ in range(8):
        SystemClock().sleep(2)
    assert len(set(waits)) == len(waits)
    assert all(1 <= wait <= 2 for wait in waits)
