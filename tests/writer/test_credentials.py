"""`boto3_session`: who signs each request of a call, by what is sent, and what never leaves."""

import gc
import os
import pickle
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

import boto3
import botocore.session
import pytest
from botocore.credentials import RefreshableCredentials
from pyarrow import table
from pyspark.serializers import CloudPickleSerializer
from urllib3.connectionpool import HTTPConnectionPool

import s3commit
from s3commit.core.model.errors import AccessError, InvalidInputError
from s3commit.spark import batch_writer
from s3commit.writer.access import MAX_CLIENTS, OWN, Access, shared_client
from s3commit.writer.job import Job
from s3commit.writer.system import Environment
from tests.lake import Lake

TABLE = table({"n": [1, 2], "dt": ["a", "b"]})
REGION = "eu-west-3"
SIGNED = re.compile(r"Credential=([^/]+)/\d+/([^/]+)/s3/")
SECRETS = ("SECRET-OF-A", "TOKEN-OF-A", "KEY-A")
# The lake's own requests, whose client is older than the environment of the call.
PIPELINE = "testing"


def session_of(name: str = "A") -> boto3.Session:
    keys = (f"KEY-{name}", f"SECRET-OF-{name}", f"TOKEN-OF-{name}")
    return boto3.Session(*keys, region_name=REGION)


class Sent:
    """The requests of this process but for the pipeline's: key, region, token and address."""

    def __init__(self) -> None:
        self.all: list[tuple[str, str, str, str]] = []

    def note(self, url: str, headers: Any) -> None:
        plain = {
            name.lower(): one.decode() if isinstance(one, bytes) else one
            for name, one in dict(headers).items()
        }
        found = SIGNED.search(plain.get("authorization", ""))
        key, region = found.groups() if found else ("nobody", "")
        if key != PIPELINE:
            self.all.append((key, region, plain.get("x-amz-security-token", ""), unquote(url)))

    def keys(self) -> set[str]:
        found = {key for key, *_ in self.all}
        self.all.clear()
        return found


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    sent, real = Sent(), HTTPConnectionPool.urlopen

    def urlopen(pool: Any, method: str, url: str, *given: Any, **named: Any) -> Any:
        sent.note(url, named["headers"])
        return real(pool, method, url, *given, **named)

    monkeypatch.setattr(HTTPConnectionPool, "urlopen", urlopen)
    return sent


def set_default(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("AWS_ACCESS_KEY_ID", "DEFAULT")
    patch.setenv("AWS_SECRET_ACCESS_KEY", "of-the-default")
    shared_client.cache_clear()


def remove_default(patch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        patch.delenv(name)


def write(path: str, session: Any, **how: Any) -> s3commit.CommitResult:
    return s3commit.write_table(TABLE, path, mode="append", boto3_session=session, **how)


def keyed(path: str, session: Any) -> object:
    write(path, session, idempotency_key="k")
    assert write(path, session, idempotency_key="k").already_committed
    with s3commit.open_job(path, idempotency_key="k", boto3_session=session) as job:
        with job.task("0") as task, task.open("b") as file:
            file.write(b"x")
        return job.commit([task.counted])


def aborted(path: str, session: Any) -> object:
    with s3commit.open_job(path, mode="overwrite", boto3_session=session) as job:
        task = job.task("0")
        with task.open("a", rows=1) as file:
            file.write(bytes(1 << 23))
        task.abort()
        return job.abort("enough")


def undone(path: str, session: Any) -> object:
    job_id = write(path, session).job_id
    s3commit.undo(path, job_id, dry_run=True, boto3_session=session)
    return s3commit.undo(path, job_id, boto3_session=session)


CALLS: dict[str, Callable[[str, Any], object]] = {
    "a table": write,
    "a second one": lambda *to: [write(*to, partition_by="dt") for _ in range(2)],
    "a dry run": lambda *to: write(*to, dry_run=True),
    "encrypted": lambda *to: write(*to, encryption=s3commit.Encryption("AES256")),
    "with a key": keyed,
    "a job that is aborted": aborted,
    "an undo": undone,
}


@pytest.mark.parametrize(
    ("call", "of_the_process"), [*((c, "DEFAULT") for c in CALLS), ("a table", "")]
)
def test_each_request_of_a_call_is_signed_by_its_session_and_no_secret_stays(
    lake: Lake,
    sent: Sent,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    call: str,
    of_the_process: str,
) -> None:
    if of_the_process:
        set_default(monkeypatch)
        OWN.store(None).head(lake.bucket, "k")  # its client is there
        assert sent.keys() == {of_the_process}
    else:
        remove_default(monkeypatch)
    before = (boto3.DEFAULT_SESSION, dict(os.environ))
    said = repr(CALLS[call](f"s3://{lake.bucket}/t/", session_of()))
    assert {one[:3] for one in sent.all} == {("KEY-A", REGION, "TOKEN-OF-A")}
    assert (boto3.DEFAULT_SESSION, dict(os.environ)) == before
    left = [lake.body(one.key).decode(errors="replace") for one in lake.store.list(lake.bucket, "")]
    shown = said + "".join(capfd.readouterr()) + "".join(left)
    assert [secret for secret in SECRETS if secret in shown] == []


@pytest.mark.parametrize("call", CALLS)
def test_each_request_of_a_call_is_signed_by_the_variables_of_its_time(
    lake: Lake, sent: Sent, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """A notebook sets new keys once the old ones have expired, and goes on."""
    for key in ("FIRST", "SECOND"):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
        CALLS[call](f"s3://{lake.bucket}/{key}/", None)
        assert sent.keys() == {key}


def test_a_driver_that_often_has_new_keys_keeps_few_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    for number in range(3 * MAX_CLIENTS):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", f"KEY{number}")
        OWN.client()
    assert shared_client.cache_info().currsize == MAX_CLIENTS


def test_threads_have_a_session_each(
    lake: Lake, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, start = threading.Lock(), threading.Barrier(4)

    def pipeline(*_: object) -> None:
        with alone:
            lake.run_pipeline()

    monkeypatch.setattr(Environment, "sleep", pipeline)
    sessions = {"A": session_of("A"), "B": session_of("B")}

    def run(name: str) -> None:
        start.wait()
        for _ in range(2):
            write(f"s3://{lake.bucket}/of-{name[0]}/", sessions[name[0]])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(run, ["A1", "A2", "B1", "B2"]))
    whose = {(key, found[1]) for key, *_, url in sent.all if (found := re.search("of-(.)/", url))}
    assert whose == {("KEY-A", "A"), ("KEY-B", "B")}


@pytest.fixture
def travelled(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Job, Job]]:
    """A job, and what another process makes of it, whose own configuration leads elsewhere."""
    with s3commit.open_job(f"s3://{lake.bucket}/t/", boto3_session=session_of()) as job:
        whole = pickle.dumps([job, job.task("0")]) + repr([job, job.task("0")]).encode()
        assert [secret for secret in SECRETS if secret.encode() in whole] == []
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        set_default(monkeypatch)
        yield job, pickle.loads(pickle.dumps(job))


def test_another_process_has_its_own_keys_or_a_session_and_the_same_store(
    travelled: tuple[Job, Job], sent: Sent
) -> None:
    job, there = travelled
    own = (there.task("0"), pickle.loads(pickle.dumps(job.task("1"))))
    given = there.task("2", boto3_session=session_of("B"))
    for tasks, key in ((own, "DEFAULT"), ((given,), "KEY-B")):
        for number, task in enumerate(tasks):
            with task, task.open(f"{key}-{number}") as file:
                file.write(b"x")
        assert {one[:2] for one in sent.all} == {(key, REGION)}
        sent.keys()
    assert job.commit([one.counted for one in (*own, given)]).files == 3
    assert sent.keys() == {"KEY-A"}


def test_keys_that_expire_are_renewed_in_the_middle(lake: Lake, sent: Sent) -> None:
    now, made = [datetime.now(UTC)], iter(range(1, 9))

    def renew() -> dict[str, str]:
        until = (now[0] + timedelta(hours=1)).isoformat()
        keys = {"access_key": f"KEY-{next(made)}", "secret_key": "s", "token": "t"}
        return {**keys, "expiry_time": until}

    core: Any = botocore.session.get_session()
    core._credentials = RefreshableCredentials.create_from_metadata(renew(), renew, "test")
    core._credentials._time_fetcher = lambda: now[0]
    session = boto3.Session(botocore_session=core, region_name=REGION)
    with s3commit.open_job(f"s3://{lake.bucket}/t/", boto3_session=session) as job:
        with job.task("0") as task:
            for number in (1, 2, 3):
                with task.open(f"{number}") as file:
                    file.write(b"x")
                assert sent.keys() == {f"KEY-{number}"}
                now[0] += timedelta(hours=2)
        assert job.commit([task.counted]).files == 3
    assert sent.keys() == {"KEY-4"}


def test_a_session_never_travels_and_what_is_none_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = "s3://lake/t/"
    serializer: Any = CloudPickleSerializer
    sends = serializer()  # as Spark Connect's foreachBatch does
    with pytest.raises(pickle.PicklingError, match="boto3_session cannot be sent"):
        sends.dumps(batch_writer(place, query="q", boto3_session=session_of()))
    assert sends.dumps(batch_writer(place, query="q"))
    keys: Any = {"aws_secret_access_key": "SECRET-OF-A"}
    with pytest.raises(InvalidInputError, match=r"boto3_session=dict: give boto3\.Session") as bad:
        s3commit.open_job(place, boto3_session=keys)
    assert "SECRET" not in str(bad.value)
    remove_default(monkeypatch)
    with pytest.raises(AccessError, match="boto3_session has no credentials") as none:
        write(place, boto3.Session(region_name=REGION))
    assert none.value.code == "NO_CREDENTIALS"


def test_a_forked_process_shares_no_connection_and_none_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    access = Access(session_of())
    client = access.client()
    assert access.client() is client
    assert access.store(None) is access.store(None)
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert access.client() is not client
    gone = weakref.ref(client)
    del access, client
    gc.collect()
    assert gone() is None
