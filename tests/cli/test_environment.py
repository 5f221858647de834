"""What `s3commit --help` says of the environment holds for every verb, driver, task and worker."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from click.testing import CliRunner

from s3commit.aws import env, wiring
from s3commit.cli.app import app
from s3commit.cli.session import CHANGES, Session
from s3commit.core.model.errors import AccessError, InvalidInputError
from s3commit.writer.access import OWN, shared_client
from tests.cli.account import Account
from tests.cli.support import JOB, NO_JOBS, run
from tests.contract.conftest import create_table
from tests.servers import answering

REGION = "eu-north-1"
KEY = "key-of-the-profile"
MACHINE = f"arn:aws:states:{REGION}:123456789012:stateMachine:Machine"
SIGNED = re.compile(r"Credential=([^/]+)/\d+/([^/]+)/([^/]+)/aws4_request")
PLACE = "s3://lake/t/"
DIRECTORY = f"{PLACE}__magic_job-{JOB}/"

# Each verb, and the services that it asks, whatever they answer.
LIMITS = ["--stuck-after=1h", "--abandoned-after=1d", "--retention=30d"]
VERBS: dict[str, tuple[list[str], set[str]]] = {
    "status": (["status"], {"dynamodb"}),
    "show": (["show", JOB], {"dynamodb"}),
    "ls": (["ls", PLACE], {"s3"}),
    "abort": (["abort", DIRECTORY], {"s3"}),
    "commit": (["commit", DIRECTORY], {"s3"}),
    "undo": (["undo", DIRECTORY], {"s3"}),
    "rescue": (["rescue", PLACE], {"s3"}),
    "uploads": (["uploads", PLACE], {"s3"}),
    "sweep": (["sweep", *LIMITS], {"cloudformation", "dynamodb"}),
    "fsck": (["fsck", PLACE], {"s3"}),
    "doctor": (["doctor"], {"sts"}),
}


@dataclass
class Recorder:
    """Says no to every request, and remembers who signed it and what it was about."""

    url: str = ""
    signed: set[tuple[str, str, str]] = field(default_factory=set)
    bodies: list[str] = field(default_factory=list)

    def answer(self, asked: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        found = SIGNED.search(asked.headers.get("Authorization", ""))
        self.signed.add((found[1], found[2], found[3]) if found else ("", "", ""))
        self.bodies.append(body.decode(errors="replace"))
        return 403, b'{"__type": "AccessDeniedException", "message": "no"}'

    @property
    def services(self) -> set[str]:
        return {service for _, _, service in self.signed}


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    with answering(recorder.answer) as recorder.url:
        yield recorder


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment without any AWS setting."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "S3COMMIT_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    shared_client.cache_clear()
    return monkeypatch


def by_profile(patch: pytest.MonkeyPatch, url: str, directory: Path) -> None:
    """Everything by AWS_PROFILE: credentials, region and endpoint."""
    (directory / "config").write_text(
        f"[profile work]\nregion = {REGION}\nendpoint_url = {url}\n"
        f"aws_access_key_id = {KEY}\naws_secret_access_key = secret\n"
    )
    patch.setenv("AWS_CONFIG_FILE", str(directory / "config"))
    patch.setenv("AWS_PROFILE", "work")


def by_variables(patch: pytest.MonkeyPatch, url: str, _directory: Path) -> None:
    """Each by its own variable; AWS_REGION counts, as in the other SDKs."""
    patch.setenv("AWS_ACCESS_KEY_ID", KEY)
    patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    patch.setenv("AWS_REGION", REGION)
    patch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    patch.setenv("AWS_ENDPOINT_URL", url)


def by_services(patch: pytest.MonkeyPatch, url: str, directory: Path) -> None:
    """Endpoints of single services, and the older name of the region."""
    by_variables(patch, "http://127.0.0.1:9", directory)
    patch.delenv("AWS_REGION")
    patch.setenv("AWS_DEFAULT_REGION", REGION)
    for service in ("S3", "DYNAMODB", "SFN", "STS", "CLOUDFORMATION"):
        patch.setenv(f"AWS_ENDPOINT_URL_{service}", url)


WAYS = [by_profile, by_variables, by_services]
Way = Callable[[pytest.MonkeyPatch, str, Path], None]


# Every verb has its clients of one session, so each goes one way, and one of them all ways.
GOES = [
    (verb, way)
    for number, verb in enumerate(VERBS)
    for way in (WAYS if verb == "status" else [WAYS[number % len(WAYS)]])
]


@pytest.mark.parametrize(("verb", "way"), GOES)
def test_a_verb_asks_whom_the_environment_says_as_whom_it_says(
    verb: str, way: Way, recorder: Recorder, bare: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    way(bare, recorder.url, tmp_path)
    bare.setenv(env.STATE_MACHINE, MACHINE)
    arguments, services = VERBS[verb]
    if verb not in {"abort", "commit", "undo"}:  # with a table they would ask it first
        bare.setenv(env.TABLE, "table-of-the-environment")
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code != 2, result.output
    assert recorder.services >= services
    assert {signed[:2] for signed in recorder.signed} == {(KEY, REGION)}
    if "dynamodb" in services:
        assert any("table-of-the-environment" in body for body in recorder.bodies)


ASKS: dict[str, Callable[[], Any]] = {
    "a Spark driver": lambda: shared_client().list_objects_v2(Bucket="lake"),
    "a process that was sent a task": lambda: OWN.store(None).head("lake", "k"),
    "a function's": lambda: wiring.make_ports().store.head("lake", "k"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("whose", ASKS)
def test_every_process_asks_whom_the_environment_says(
    whose: str, way: Way, recorder: Recorder, bare: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    way(bare, recorder.url, tmp_path)
    bare.setenv(env.TABLE, "ledger")
    bare.setenv(env.LEDGER_TTL_DAYS, "30")
    with pytest.raises((ClientError, AccessError)):
        ASKS[whose]()
    assert recorder.signed == {(KEY, REGION, "s3")}


def test_every_verb_is_tried_here_and_stands_in_the_page_for_people_on_call() -> None:
    """And is one that changes something, of whose lost answers the error line says so, or not."""
    verbs = set(app.commands)
    assert VERBS.keys() | {"log", "pause", "resume", "redrive", "local", "ui"} == verbs
    reads = {"status", "log", "show", "ls", "uploads", "fsck", "doctor", "local", "ui"}
    assert CHANGES | reads == verbs
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
    assert verbs <= set(re.findall(r"s3commit ([a-z]+)", page))


# The command as people run it, without fakes


def test_the_table_is_found_by_the_stack(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", account.endpoint)
    create_table(account.name, account.endpoint)
    account.deploy(env.STORAGE_STACK, **{env.TABLE_OUTPUT: account.name})
    warning, _, said = run("status", "--name", account.name).stderr.partition("\n")
    assert "the ledger's table has no decided job yet" in warning
    assert said == NO_JOBS
    told = run("status", "--name", "other", exit_code=1).stderr
    assert "no stack S3CommitStorage-other in this account and region names the" in told


def test_a_missing_table_or_profile(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    table = ("status", "--table", "no-such-table")
    for arguments, says in (
        (table, "[NO_TABLE]; check"),
        (table, "nobody"),
        (["ls", PLACE], "nobody"),
    ):
        told = run(*arguments, exit_code=1).stderr
        assert (len(told.splitlines()), says in told) == (1, True)
        monkeypatch.setenv("AWS_PROFILE", "nobody")


@pytest.mark.parametrize("of_service", ["", "_S3", "_DYNAMODB", "_CLOUDFORMATION"])
@pytest.mark.parametrize("endpoint", ["nonsense", "localhost:4566", "http://["])
def test_an_endpoint_that_is_no_url_is_one_line(
    bare: pytest.MonkeyPatch, tmp_path: Path, of_service: str, endpoint: str
) -> None:
    by_variables(bare, "http://127.0.0.1:9", tmp_path)
    bare.setenv(f"AWS_ENDPOINT_URL{of_service}", endpoint)
    verb = {"_S3": ("ls", PLACE), "_CLOUDFORMATION": ("pause",)}.get(of_service)
    told = run(*(verb or ("status", "--table", "ledger")), exit_code=1).stderr
    assert len(told.splitlines()) == 1
    assert "Invalid" in told
    assert "; set AWS_ENDPOINT_URL, or the service's own such as" in told
    if of_service in {"", "_S3"}:
        with pytest.raises(InvalidInputError, match="set AWS_ENDPOINT_URL"):
            shared_client()


@pytest.mark.parametrize(
    ("endpoint", "found"),
    [("http://127.0.0.1:4566", False), ("https://amazonaws.com.evil.org", False), ("", True)],
)
def test_only_aws_has_consoles(monkeypatch: pytest.MonkeyPatch, endpoint: str, found: bool) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    if endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SFN", endpoint)
    assert Session().has_console() is found
