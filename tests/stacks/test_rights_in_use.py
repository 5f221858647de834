"""The handlers, on S3 and DynamoDB of a real server, call nothing that their roles forbid.

The server asks nobody for rights, so each call is noted and held against `stacks.access`; nothing
is granted that no job of any fate needs.
"""

from __future__ import annotations

import importlib
import json
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from s3commit.aws import env, ledger_notes
from s3commit.aws.clock import SystemClock
from s3commit.aws.ledger import DynamoLedger
from s3commit.aws.notifications import SUFFIXES
from s3commit.aws.s3 import S3ObjectStore
from s3commit.aws.session import make_client
from s3commit.aws.wiring import make_ports
from s3commit.core.commit import acquire_destination
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.ticket import execution_input
from s3commit.core.model.errors import TransientError
from s3commit.core.model.job import Conditions, Conflict, CountedAttempt, Scope
from s3commit.core.model.limits import SMALLEST_UNIT
from s3commit.core.ports.bundle import Workers
from stacks.access import ACCESS
from stacks.definition import STEPS
from tests.core.world import BUCKET, World, job_directory
from tests.fakes.executions import MemoryExecutions
from tests.stacks.synthesized import Assembly, only

T0 = "2026-11-21T22:00:00.000Z"
Needed = tuple[str, str]  # an action, and the key, or "" for the bucket and for the ledger

S3_ACTIONS = {
    "GetObject": "GetObject",
    "HeadObject": "GetObject",
    "PutObject": "PutObject",
    "CreateMultipartUpload": "PutObject",
    "UploadPart": "PutObject",
    "CompleteMultipartUpload": "PutObject",
    "AbortMultipartUpload": "AbortMultipartUpload",
    "ListParts": "ListMultipartUploadParts",
    "DeleteObject": "DeleteObject",
}
S3_BUCKET_ACTIONS = {
    "GetBucketVersioning": "GetBucketVersioning",
    "GetBucketNotificationConfiguration": "GetBucketNotification",
    "ListObjectsV2": "ListBucket",
    "ListMultipartUploads": "ListBucketMultipartUploads",
}
TRANSACTION_ACTIONS = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}


class Recorder:
    """Which rights each function has needed."""

    def __init__(self) -> None:
        self.needed: dict[str, set[Needed]] = defaultdict(set)
        self._function = ""

    @contextmanager
    def as_function(self, name: str) -> Iterator[None]:
        self._function = name
        try:
            yield
        finally:
            self._function = ""

    def note(self, service: str, operation: str, parameters: dict[str, Any]) -> None:
        if self._function:
            rights = _s3 if service == "s3" else _dynamodb
            self.needed[self._function] |= set(rights(operation, parameters))

    def note_missing(self, operation: str) -> None:
        # S3 answers 403 instead of 404 to one who may not list the bucket.
        if self._function and operation in {"GetObject", "HeadObject"}:
            self.needed[self._function].add(("ListBucket", ""))


def _s3(operation: str, parameters: dict[str, Any]) -> Iterator[Needed]:
    if operation in S3_BUCKET_ACTIONS:
        yield S3_BUCKET_ACTIONS[operation], ""
        return
    if operation == "DeleteObjects":
        for named in parameters["Delete"]["Objects"]:
            yield from _s3("DeleteObject", {"Key": named["Key"], "IfMatch": named["ETag"]})
        return
    action = S3_ACTIONS[operation]
    yield action + ("Version" if "VersionId" in parameters else ""), parameters["Key"]
    if "IfMatch" in parameters:
        # https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-delete-enforce.html
        yield "GetObject", parameters["Key"]


def _dynamodb(operation: str, parameters: dict[str, Any]) -> Iterator[Needed]:
    if operation != "TransactWriteItems":
        yield operation, ""
        return
    for item in parameters["TransactItems"]:
        for kind in item:
            yield TRANSACTION_ACTIONS[kind], ""


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    call: Any = vars(BaseClient)["_make_api_call"]

    def noting(self: BaseClient, operation: str, parameters: dict[str, Any]) -> Any:
        recorder.note(self.meta.service_model.service_name, operation, parameters)
        try:
            return call(self, operation, parameters)
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
                recorder.note_missing(operation)
            raise

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", noting)
        yield recorder


class Server(World):
    """The world of the protocol's tests, on S3 and DynamoDB; the handlers' real modules."""

    def __init__(self, recorder: Recorder, table: str) -> None:
        super().__init__()
        self._recorder = recorder
        self._real = replace(make_ports(), workers=Workers(of_all=40, of_one=40))
        self.client = make_client()
        self.store = S3ObjectStore(self.client)  # type: ignore[assignment]
        self.ledger = DynamoLedger(table)  # type: ignore[assignment]
        self.clock = SystemClock()  # type: ignore[assignment]
        self._executions = MemoryExecutions()

    def sweep(self, **limits: int) -> dict[str, Any]:
        """With limits of nothing: whatever is there is old enough."""
        names = ("stuckMinutes", "abandonedHours", "retentionDays")
        report = self.call("sweep", dict.fromkeys(names, 0) | limits)
        assert report["failed"] == 0, report["notes"]
        return report

    def call(self, name: str, event: dict[str, Any]) -> dict[str, Any]:
        module = importlib.import_module(f"lambdas.{name}")
        with pytest.MonkeyPatch.context() as patch, self._recorder.as_function(name):
            patch.setattr(ledger_notes, "REMEMBERED", 0.0)
            patch.setattr(module, "ports", self._real)
            if name == "sweep":
                patch.setattr(module, "client", self.client)
            if name in {"sweep", "ingest"}:
                patch.setattr(module, "machine", self._executions)
            answer: dict[str, Any] = module.handler(json.loads(json.dumps(event)), _Context())
        return answer

    def arrive(self, directory: JobDirectory, attempt: CountedAttempt) -> None:
        key = {"key": directory.prefix + attempt.manifest}
        record = {"s3": {"bucket": {"name": BUCKET}, "object": key}}
        message = {"messageId": "1", "body": json.dumps({"Records": [record]})}
        answer = self.call("ingest", {"Records": [message]})
        assert answer == {"batchItemFailures": []}

    def steps(self, ticket: dict[str, Any], *names: str) -> dict[str, Any]:
        for name in names:
            event = {"step": name, "execution": "arn", "ticket": ticket}
            ticket = self.call(STEPS[name], event)
        return ticket

    def decide(self, directory: JobDirectory) -> dict[str, Any]:
        return self.steps(self.prepare(directory), "DecideCommit")

    def prepare(self, directory: JobDirectory) -> dict[str, Any]:
        ticket = self.steps(execution_input(directory), "SealJob", "VerifyManifests")
        return self.steps(ticket, "AcquireDestination", "CheckConditions")

    def complete(self, ticket: dict[str, Any]) -> dict[str, Any]:
        units = self.json(ticket["plan"])
        done = [self.call("complete", {"unit": unit, "ticket": ticket}) for unit in units]
        return ticket | {"completed": done}


class _Context:
    function_name = "function"
    memory_limit_in_mb = 256
    invoked_function_arn = "arn:aws:lambda:eu-central-1:111122223333:function:function"
    aws_request_id = "request"


@pytest.fixture(scope="module")
def server(moto_endpoint: str, assembly: Assembly, recorder: Recorder) -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
        table = f"ledger-{uuid.uuid4().hex}"
        patch.setenv(env.TABLE, table)
        patch.setenv(env.BUCKET, BUCKET)
        patch.setenv(env.LEDGER_TTL_DAYS, "90")
        patch.setenv(env.REPLACE_BELOW, '[""]')
        patch.setenv(env.WORKERS, "[40, 40]")
        patch.setenv(env.STATE_MACHINE, "arn:aws:states:eu-central-1:111122223333:stateMachine:x")
        patch.setenv(env.POWERTOOLS_SERVICE_NAME, env.SERVICE)
        patch.setenv(env.POWERTOOLS_METRICS_NAMESPACE, env.METRICS_NAMESPACE)
        described = only(assembly.storage, "AWS::DynamoDB::Table")["Properties"]
        shape = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")
        boto3.client("dynamodb").create_table(
            TableName=table, **{name: described[name] for name in shape}
        )
        world = Server(recorder, table)
        world.client.create_bucket(
            Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
        )
        sqs = boto3.client("sqs")
        queue = sqs.create_queue(QueueName=table)["QueueUrl"]
        admit = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [admit]})
        sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": policy})
        notified: list[Any] = [
            {
                "QueueArn": f"arn:aws:sqs:eu-central-1:123456789012:{table}",
                "Events": ["s3:ObjectCreated:*"],
                "Filter": {"Key": {"FilterRules": [{"Name": "suffix", "Value": suffix}]}},
            }
            for suffix in SUFFIXES
        ]
        world.client.put_bucket_notification_configuration(
            Bucket=BUCKET, NotificationConfiguration={"QueueConfigurations": notified}
        )
        yield world


@pytest.fixture(scope="module")
def needed(server: Server, recorder: Recorder) -> dict[str, set[Needed]]:
    """Jobs of every fate, and what their functions called."""
    server.sweep()  # the first look at the empty ledger
    for fate in (
        _committed,
        _aborted,
        _refused_inside,
        _refused,
        _rolled_back,
        _in_rounds,
        _replaced_by_partition,
        _took_over_from_the_dead,
        _rolled_back_by_version,
        _swept,
    ):
        fate(server, job_directory(job_id=str(uuid.uuid4())))
    return recorder.needed


def _committed(server: Server, directory: JobDirectory) -> None:
    """Each step twice, as after a lost answer; one loser in time and one after the end."""
    server.open(directory)
    server.attempt(directory, "t1", "loser")
    attempts = [server.attempt(directory, task) for task in ("t0", "t1")]
    for attempt in attempts:
        server.arrive(directory, attempt)
    server.request(directory, *attempts)
    server.complete(server.decide(directory))
    ticket = server.steps(execution_input(directory), "SealJob")
    ticket = server.steps(server.complete(ticket), "BeginPublish", "RemoveReplaced")
    ticket = server.steps(ticket, "PublishSuccess", "PublishSuccess", "TidyUp", "TidyUp")
    assert ticket["outcome"] == "COMMITTED"
    server.arrive(directory, server.attempt(directory, "t1", "late"))
    server.steps(execution_input(directory), "SealJob", "PublishSuccess", "TidyUp")
    assert server.open_uploads(directory.destination.prefix) == []


def _aborted(server: Server, directory: JobDirectory) -> None:
    server.attempt(directory, "t0")
    server.request_abort(directory)
    ticket = server.steps(execution_input(directory), "SealJob", "AbortJob", "AbortJob", "TidyUp")
    assert ticket["outcome"] == "ABORTED"


def _refused_inside(server: Server, directory: JobDirectory) -> None:
    """A directory above has a job of its id."""
    inside = job_directory(directory.job_id, f"{directory.destination.prefix}inside/")
    server.attempt(directory, "t0")
    server.open(inside)
    server.request(inside)
    ticket = server.steps(execution_input(inside), "SealJob", "AbortJob", "AbortJob", "TidyUp")
    assert (ticket["outcome"], ticket["code"]) == ("ABORTED", "JOB_ID_TAKEN")
    server.request_abort(directory)
    server.steps(execution_input(directory), "SealJob", "AbortJob", "TidyUp")


def _refused(server: Server, directory: JobDirectory) -> None:
    """An upload that is gone before the decision."""
    attempt = server.attempt(directory, "t0")
    server.arrive(directory, attempt)
    server.request(directory, attempt)
    ticket = server.steps(execution_input(directory), "SealJob")
    _lose_one_upload(server, directory)
    with pytest.raises(Exception, match="UPLOAD_GONE"):
        server.steps(ticket, "VerifyManifests")
    assert server.steps(ticket, "AbortJob", "TidyUp")["outcome"] == "ABORTED"
    with pytest.raises(TransientError):  # a late twin
        server.steps(ticket, "AcquireDestination")


def _rolled_back(server: Server, directory: JobDirectory) -> None:
    """An upload is gone after the decision."""
    server.request(directory, server.attempt(directory, "t0"), server.attempt(directory, "t1"))
    ticket = server.decide(directory)
    _lose_one_upload(server, directory)
    ticket = server.steps(server.complete(ticket), "BeginPublish", "RollBack", "TidyUp")
    assert ticket["outcome"] == "ROLLED_BACK"


def _in_rounds(server: Server, directory: JobDirectory) -> None:
    """Two units, of which one is not done in the first round: the workers are shared out again."""
    files = {f"part-{number}-{directory.job_id}": b"x" for number in range(SMALLEST_UNIT + 1)}
    server.request(directory, server.attempt(directory, "t0", files=files))
    ticket = server.complete(server.decide(directory))
    assert ticket["workers"] == 2
    ticket = server.steps(ticket | {"completed": ticket["completed"][1:]}, "BeginPublish")
    assert (ticket["state"], ticket["workers"]) == ("COMMITTING", 2)
    server.steps(server.complete(ticket), "BeginPublish", "PublishSuccess", "TidyUp")


def _rolled_back_by_version(server: Server, directory: JobDirectory) -> None:
    server.client.put_bucket_versioning(
        Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"}
    )
    _rolled_back(server, directory)


def _replaced_by_partition(server: Server, directory: JobDirectory) -> None:
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


def _took_over_from_the_dead(server: Server, directory: JobDirectory) -> None:
    """A job that has its locks is silent for too long."""
    dead = job_directory(job_id=str(uuid.uuid4()))
    for each in (dead, directory):
        server.open(each, conflict=Conflict.REPLACE)
        server.request(each, server.attempt(each, "t0"))
    server.prepare(dead)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(acquire_destination, "HOLDER_SECONDS", 0)
        ticket = server.decide(directory)
    record = server.ledger.job(dead.ref)
    assert record is not None and record.failure is not None
    assert record.failure.code == "STALLED"
    ticket = server.steps(server.complete(ticket), "BeginPublish", "RemoveReplaced")
    server.steps(ticket, "PublishSuccess", "TidyUp")
    server.steps(execution_input(dead), "SealJob", "AbortJob", "TidyUp")


def _swept(server: Server, directory: JobDirectory) -> None:
    """What a job left behind that has ended, and jobs that were never asked for."""
    _committed(server, directory)
    server.attempt(directory, "t2", "zombie")
    _abandoned(server)
    known = _abandoned(server)
    server.arrive(known, server.attempt(known, "t1"))
    time.sleep(1.1)  # S3's times are whole seconds
    report = server.sweep(retentionDays=1)
    assert min(report["started"], report["aborted"]) >= 1
    server.steps(execution_input(directory), "SealJob", "PublishSuccess", "TidyUp")
    time.sleep(1.1)
    assert server.sweep()["retired"] >= 1


def _abandoned(server: Server) -> JobDirectory:
    directory = job_directory(job_id=str(uuid.uuid4()))
    server.open(directory)
    server.attempt(directory, "t0")
    return directory


def _lose_one_upload(server: Server, directory: JobDirectory) -> None:
    uploads = server.store.list_uploads(BUCKET, directory.destination.prefix)
    upload = next(one for one in uploads if directory.job_id in one.key)
    server.store.abort_upload(BUCKET, upload.key, upload.upload_id)


@pytest.mark.parametrize("name", sorted(set(ACCESS) - {"dispatch"}))
def test_a_role_allows_what_its_function_calls(needed: dict[str, set[Needed]], name: str) -> None:
    assert needed[name]
    access = ACCESS[name]
    for action, key in needed[name]:
        patterns = [pattern for pattern, granted in access.objects.items() if action in granted]
        allowed = (
            any(fnmatchcase(key, pattern) for pattern in patterns)
            if key
            else action in (*access.bucket, *access.ledger, *access.index)
        )
        assert allowed, f"{name} called {action} on {key or 'the bucket or table'}"


@pytest.mark.parametrize("name", sorted(set(ACCESS) - {"dispatch"}))
def test_a_role_has_no_right_that_its_function_never_needs(
    needed: dict[str, set[Needed]], name: str
) -> None:
    access = ACCESS[name]
    assert {*access.bucket, *access.ledger, *access.index} <= {action for action, _ in needed[name]}
    for pattern, granted in access.objects.items():
        called = {action for action, key in needed[name] if key and fnmatchcase(key, pattern)}
        assert set(granted) <= called, pattern
