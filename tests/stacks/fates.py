"""Jobs of every fate, played by the handlers' real modules on S3 and DynamoDB of a server."""

import importlib
import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import boto3
import pytest

from s3commit.aws import env, ledger_notes
from s3commit.aws.clients import make_client
from s3commit.aws.clock import SystemClock
from s3commit.aws.ledger import DynamoLedger
from s3commit.aws.notifications import SUFFIXES
from s3commit.aws.s3 import S3ObjectStore
from s3commit.aws.wiring import make_ports, owning
from s3commit.core.calls.routes import STEPS
from s3commit.core.commit import acquire_destination
from s3commit.core.documents.bucket_owner import OWNER
from s3commit.core.documents.decision_json import read_decision
from s3commit.core.documents.job_json import Conditions
from s3commit.core.documents.request_json import CountedAttempt
from s3commit.core.documents.ticket import execution_input
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.errors import TransientError
from s3commit.core.model.limits import SMALLEST_UNIT
from s3commit.core.ports.bundle import Workers
from tests.contract.given import make_bucket
from tests.core.world import BUCKET, World, job_directory
from tests.fakes.executions import MemoryExecutions
from tests.lake import QUEUE, notify
from tests.lambdas.conftest import ENVIRONMENT, Context, there
from tests.lambdas.test_queues import message
from tests.stacks.recorder import Recorder, recording
from tests.stacks.synthesized import Assembly, only


class Server(World):
    """The world of the protocol's tests, on S3 and DynamoDB; the handlers' real modules."""

    def __init__(self, recorder: Recorder, table: str) -> None:
        super().__init__()
        self.recorder = recorder
        self.real = replace(make_ports(), workers=Workers(of_all=40, of_one=40))
        self.client = make_client()
        self.store = S3ObjectStore(self.client)  # type: ignore[assignment]
        self.ledger = DynamoLedger(table)  # type: ignore[assignment]
        self.clock = SystemClock()  # type: ignore[assignment]
        self.executions = MemoryExecutions()

    def sweep(self, **limits: int) -> dict[str, Any]:
        """With limits of nothing: whatever is there is old enough."""
        names = ("stuckMinutes", "abandonedHours", "retentionDays")
        report = self.call("sweep", dict.fromkeys(names, 0) | limits)
        assert report["failed"] == 0, report["notes"]
        return report

    def call(self, name: str, event: dict[str, Any]) -> dict[str, Any]:
        module = importlib.import_module(f"lambdas.{name}")
        with pytest.MonkeyPatch.context() as patch, self.recorder.as_function(name):
            patch.setattr(ledger_notes, "REMEMBERED", 0.0)
            asks = name in {"decide", "ingest", "sweep"}
            real = owning(self.real, claims=name != "ingest") if asks else self.real
            patch.setattr(module, "ports", real)
            if name == "sweep":
                patch.setattr(module, "client", self.client)
                patch.setattr(module, "connect", there)
            if name in {"sweep", "ingest"}:
                patch.setattr(module, "machine", self.executions)
            answer: dict[str, Any] = module.handler(json.loads(json.dumps(event)), Context())
        return answer

    def arrive(self, directory: JobDirectory, attempt: CountedAttempt) -> None:
        event = {"Records": [message("1", directory.prefix + attempt.manifest)]}
        assert self.call("ingest", event) == {"batchItemFailures": []}

    def steps(self, ticket: dict[str, Any], *names: str) -> dict[str, Any]:
        for name in names:
            event = {"step": name, "execution": "arn", "ticket": ticket}
            ticket = self.call(STEPS[name], event)
        return ticket

    def decide(self, directory: JobDirectory) -> dict[str, Any]:
        ticket = self.prepare(directory)
        return ticket if ticket["state"] == "COMMITTING" else self.steps(ticket, "DecideCommit")

    def prepare(self, directory: JobDirectory) -> dict[str, Any]:
        """Until its conditions are judged; a small append is decided in the same call."""
        ticket = self.steps(execution_input(directory), "SealJob")
        following = ("VerifyManifests", "AcquireDestination", "CheckConditions")
        return self.steps(ticket, *(following if ticket["state"] == "SEALED" else ()))

    def complete(self, ticket: dict[str, Any]) -> dict[str, Any]:
        units = self.json(ticket["plan"])
        done = [self.call("complete", {"unit": unit, "ticket": ticket}) for unit in units]
        return ticket | {"completed": done}


def committed(server: Server, directory: JobDirectory) -> None:
    """Each step twice, as after a lost answer; one loser in time and one after the end."""
    server.open(directory, idempotency_key=directory.job_id)
    server.attempt(directory, "t1", "loser")
    attempts = [server.attempt(directory, task) for task in ("t0", "t1")]
    for attempt in attempts:
        server.arrive(directory, attempt)
    server.request(directory, *attempts)
    server.complete(server.decide(directory))
    ticket = server.steps(execution_input(directory), "SealJob")
    ticket = server.complete(ticket)
    ticket = server.steps(ticket, "BeginPublish", "BeginPublish", "PublishSuccess")
    assert ticket["outcome"] == "COMMITTED"
    server.steps(ticket, "PublishSuccess", "TidyUp", "TidyUp")
    server.arrive(directory, server.attempt(directory, "t1", "late"))
    server.steps(execution_input(directory), "SealJob", "PublishSuccess", "TidyUp")
    assert server.open_uploads(directory.destination.prefix) == []


def aborted(server: Server, directory: JobDirectory) -> None:
    server.attempt(directory, "t0")
    server.request_abort(directory)
    ticket = server.steps(execution_input(directory), "SealJob", "AbortJob", "AbortJob", "TidyUp")
    assert ticket["outcome"] == "ABORTED"


def refused_inside(server: Server, directory: JobDirectory) -> None:
    """A directory above has a job of its id."""
    inside = job_directory(directory.job_id, f"{directory.destination.prefix}inside/")
    server.attempt(directory, "t0")
    server.open(inside)
    server.request(inside)
    ticket = server.steps(execution_input(inside), "SealJob", "AbortJob", "AbortJob", "TidyUp")
    assert (ticket["outcome"], ticket["code"]) == ("ABORTED", "JOB_ID_TAKEN")
    server.request_abort(directory)
    server.steps(execution_input(directory), "SealJob", "AbortJob", "TidyUp")


def refused(server: Server, directory: JobDirectory) -> None:
    """An upload that is gone before the decision."""
    attempt = server.attempt(directory, "t0")
    server.arrive(directory, attempt)
    server.request(directory, attempt)
    lose_one_upload(server, directory)
    ticket = server.steps(execution_input(directory), "SealJob")
    with pytest.raises(Exception, match="UPLOAD_GONE"):
        server.steps(ticket, "VerifyManifests")
    assert server.steps(ticket, "AbortJob", "TidyUp")["outcome"] == "ABORTED"
    with pytest.raises(TransientError):  # a late twin
        server.steps(ticket, "AcquireDestination")


def rolled_back(server: Server, directory: JobDirectory) -> None:
    """An upload is gone after the decision."""
    server.ask(directory, "t0", "t1")
    ticket = server.decide(directory)
    lose_one_upload(server, directory)
    ticket = server.steps(server.complete(ticket), "BeginPublish", "RollBack", "TidyUp")
    assert ticket["outcome"] == "ROLLED_BACK"


def in_rounds(server: Server, directory: JobDirectory) -> None:
    """Two units, of which one is not done in the first round: the workers are shared out again."""
    files = {f"part-{number}-{directory.job_id}": b"x" for number in range(SMALLEST_UNIT + 1)}
    server.request(directory, server.attempt(directory, "t0", files=files))
    ticket = server.complete(server.decide(directory))
    assert ticket["workers"] == 2
    ticket = server.steps(ticket | {"completed": ticket["completed"][1:]}, "BeginPublish")
    assert (ticket["state"], ticket["workers"]) == ("COMMITTING", 2)
    server.steps(server.complete(ticket), "BeginPublish", "PublishSuccess", "TidyUp")


def rolled_back_by_version(server: Server, directory: JobDirectory) -> None:
    server.client.put_bucket_versioning(
        Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"}
    )
    rolled_back(server, directory)


def replaced_by_partition(server: Server, directory: JobDirectory) -> None:
    """Under a key that an earlier job had, which was not committed."""
    another = job_directory(job_id=str(uuid.uuid4()))
    policy: Any = {"conflict": Conflict.REPLACE, "scope": Scope.PARTITION, "idempotency_key": "k"}
    for ending, each in (("AbortJob", another), ("RemoveReplaced", directory)):
        server.open(each, **policy, conditions=Conditions(min_rows=1))
        files = {f"dt=1/part-0-{each.job_id}.parquet": b"new"}
        server.request(each, server.attempt(each, "t0", files=files))
        server.store.put(BUCKET, "sales/dt=1/old.parquet", b"old")
        ticket = server.prepare(each)
        if ending == "AbortJob":
            assert server.steps(ticket, ending, "TidyUp")["outcome"] == "ABORTED"
    ticket = server.complete(server.steps(ticket, "DecideCommit"))
    server.steps(ticket, "BeginPublish", "RemoveReplaced", "RemoveReplaced")
    server.steps(ticket, "PublishSuccess", "TidyUp")
    assert list(server.visible("sales/dt=1/")) == [f"sales/dt=1/part-0-{directory.job_id}.parquet"]


def took_over_from_the_dead(server: Server, directory: JobDirectory) -> None:
    """A job that has its locks is silent for too long."""
    dead = job_directory(job_id=str(uuid.uuid4()))
    for each in (dead, directory):
        server.ask(each, conflict=Conflict.REPLACE)
    server.prepare(dead)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(acquire_destination, "HOLDER_SECONDS", 0)
        ticket = server.decide(directory)
    failure = server.record(dead).failure
    assert failure is not None and failure.code == "STALLED"
    ticket = server.steps(server.complete(ticket), "BeginPublish", "RemoveReplaced")
    server.steps(ticket, "PublishSuccess", "TidyUp")
    server.steps(execution_input(dead), "SealJob", "AbortJob", "TidyUp")


def swept(server: Server, directory: JobDirectory) -> None:
    """What a job left behind that has ended, and jobs that were never asked for."""
    committed(server, directory)
    server.attempt(directory, "t2", "zombie")
    abandoned(server)
    known = abandoned(server)
    server.arrive(known, server.attempt(known, "t1"))
    time.sleep(1.1)  # S3's times are whole seconds
    report = server.sweep(retentionDays=1)
    assert min(report["started"], report["aborted"]) >= 1
    server.steps(execution_input(directory), "SealJob", "PublishSuccess", "TidyUp")
    time.sleep(1.1)
    assert server.sweep()["expired"] >= 1


def brought_back(server: Server, directory: JobDirectory) -> None:
    """What an empty ledger asks, in an event's call, of a committed job."""
    committed(server, directory)
    with server.recorder.as_function("ingest"):
        assert read_decision(server.real, BUCKET, directory.decision) is not None


def abandoned(server: Server) -> JobDirectory:
    directory = job_directory(job_id=str(uuid.uuid4()))
    server.open(directory)
    server.attempt(directory, "t0")
    return directory


def lose_one_upload(server: Server, directory: JobDirectory) -> None:
    uploads = server.store.list_uploads(BUCKET, directory.destination.prefix)
    upload = next(one for one in uploads if directory.job_id in one.key)
    server.store.abort_upload(BUCKET, upload.key, upload.upload_id)


FATES: tuple[Callable[[Server, JobDirectory], None], ...] = (
    committed,
    aborted,
    refused_inside,
    refused,
    rolled_back,
    in_rounds,
    replaced_by_partition,
    took_over_from_the_dead,
    rolled_back_by_version,
    brought_back,
    swept,
)


@contextmanager
def played(endpoint: str, assembly: Assembly) -> Iterator[Recorder]:
    """What the functions call in jobs of every fate, on that server."""
    table = f"ledger-{uuid.uuid4().hex}"
    with pytest.MonkeyPatch.context() as patch, recording() as recorder:
        given = {**ENVIRONMENT, "AWS_ENDPOINT_URL": endpoint, env.TABLE: table}
        for name, value in given.items():
            patch.setenv(name, value)
        described = only(assembly.storage, "AWS::DynamoDB::Table")
        shape = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")
        boto3.client("dynamodb").create_table(
            TableName=table, **{name: described[name] for name in shape}
        )
        server = Server(recorder, table)
        make_bucket(server.client, BUCKET)
        notify(server.client, BUCKET, QUEUE, *SUFFIXES)
        server.sweep()  # the first look at the empty ledger
        server.store.delete(BUCKET, OWNER)  # it belongs to the deployment; so says a job's step now
        for fate in FATES:
            fate(server, job_directory(job_id=str(uuid.uuid4())))
        yield recorder
