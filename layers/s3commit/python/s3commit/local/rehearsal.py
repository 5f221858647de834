"""Faults of the embedded runtime, as a deployment has them, made and undone by AWS's own calls.

A broken part shows its former state, so that `Rehearsal.repair` needs no memory.
"""

import json
import os
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from s3commit.aws import env
from s3commit.aws.clients import make_session
from s3commit.core.documents.request_json import CountedAttempt
from s3commit.core.formats.layout import PIPELINE, JobDirectory, parse_destination
from s3commit.core.model.errors import OutcomeUnknownError
from s3commit.core.model.locks import key_digest
from s3commit.local import BUCKET
from s3commit.writer.job import Job
from s3commit.writer.start import open_job

BROKEN: Final = "broken."  # before a handler's module
LOST: Final = ".lost"  # behind a suffix of which the bucket notifies
SPOILT: Final = b"not the pipeline's"
REFUSED: Final = "refused/"  # below the rehearsal's place: no jobs, and what is put can be deleted
SILENCE: Final = 2.0  # seconds: a sweep starts no job that was not silent for one
Opened = tuple[Job, CountedAttempt | None]


class Rehearsal:
    """The runtime that the environment leads to, and jobs in it."""

    def __init__(self) -> None:
        connect: Callable[[str], Any] = make_session().create_client
        self._s3, self._lambda, self._sqs = map(connect, ("s3", "lambda", "sqs"))
        self._bucket = os.environ[BUCKET]
        self._place = f"s3://{self._bucket}/rehearsal/"

    # The jobs of a rehearsal

    def _open(self, key: str | None = None) -> Opened:
        """A job that has written a file, and did not request its commit."""
        job = open_job(self._place, idempotency_key=key)
        task = job.task("0")
        with task.open(f"{job.job_id}.txt") as file:
            file.write(b"rehearsal\n")
        return job, task.finish()

    def _request(self, *opened: Opened) -> None:
        """Request the commits, and wait for none."""
        for job, counted in opened:
            job.commit_timeout = 0
            with suppress(OutcomeUnknownError):
                job.commit([counted])

    # The faults

    def spoil_key(self) -> None:
        """Another program writes into what is the pipeline's: an execution fails immediately."""
        self._commit()  # into an empty ledger, which would first be healed by what is spoilt
        job, counted = self._open(str(uuid.uuid4()))
        self._put(job.directory.key_note(key_digest(str(job._spec.idempotency_key))))
        self._request((job, counted))

    def kill(self, name: str, jobs: int) -> None:
        """A bad deployment of a function that a queue feeds; its messages come again quickly."""
        for function in self._functions(name):
            self._set(function, BROKEN + function["Handler"].removeprefix(BROKEN), 1)
        self._request(*(self._open() for _ in range(jobs)))

    def throttle(self) -> None:
        """No function can run.

        https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
        """
        for function in self._functions():
            named = {"FunctionName": function["FunctionName"]}
            self._lambda.put_function_concurrency(**named, ReservedConcurrentExecutions=0)
        self._request(*(self._open() for _ in range(3)))

    def lose_events(self) -> None:
        """Another program replaces the bucket's notifications while jobs write; a sweep runs."""
        self._commit()  # so that the sweep looks at their table
        opened = [self._open() for _ in range(4)]
        self._notify(lambda suffix: suffix + LOST)
        self._request(*opened)
        time.sleep(SILENCE)
        (sweep,) = self._functions("sweep")
        limits = json.dumps({**env.SWEEP_LIMITS, "stuckMinutes": 0})
        self._lambda.invoke(FunctionName=sweep["FunctionName"], Payload=limits)

    def refuse(self) -> None:
        """A broken client puts documents that are none."""
        for _ in range(11):
            place = parse_destination(f"{self._place}{REFUSED}")
            self._put(JobDirectory(place, str(uuid.uuid4())).job)

    def repair(self) -> None:
        """Undo every fault but refused documents, which stay; repeating it is harmless."""
        for function in self._functions():
            as_deployed = 6 * int(function["Timeout"])
            self._set(function, function["Handler"].removeprefix(BROKEN), as_deployed)
            self._lambda.delete_function_concurrency(FunctionName=function["FunctionName"])
        self._notify(lambda suffix: suffix.removesuffix(LOST))
        notes = {"Bucket": self._bucket, "Prefix": f"{PIPELINE}_keys/"}
        pages = self._s3.get_paginator("list_objects_v2").paginate(**notes)
        for key in filter(None, pages.search("Contents[].Key")):
            named = {"Bucket": self._bucket, "Key": key}
            if self._s3.get_object(**named)["Body"].read() == SPOILT:
                self._s3.delete_object(**named)

    # The parts of the runtime

    def _commit(self) -> None:
        job, counted = self._open()
        job.commit([counted])

    def _put(self, key: str) -> None:
        self._s3.put_object(Bucket=self._bucket, Key=key, Body=SPOILT)

    def _functions(self, name: str = "") -> list[dict[str, Any]]:
        """All functions, or the one whose module has that name."""
        found = self._lambda.list_functions()["Functions"]
        return [one for one in found if name in {"", one["Handler"].split(".")[-2]}]

    def _set(self, function: dict[str, Any], handler: str, hidden: int) -> None:
        """The function's handler, and for how many seconds a message is hidden that failed."""
        named = {"FunctionName": function["FunctionName"]}
        self._lambda.update_function_configuration(**named, Handler=handler)
        for one in self._lambda.list_event_source_mappings(**named)["EventSourceMappings"]:
            queue = self._sqs.get_queue_url(QueueName=one["EventSourceArn"].split(":")[-1])
            attributes = {"VisibilityTimeout": str(hidden)}
            self._sqs.set_queue_attributes(QueueUrl=queue["QueueUrl"], Attributes=attributes)

    def _notify(self, change: Callable[[str], str]) -> None:
        """Change the suffixes of which the bucket notifies."""
        found = self._s3.get_bucket_notification_configuration(Bucket=self._bucket)
        found.pop("ResponseMetadata")
        for one in found.get("QueueConfigurations", ()):
            for rule in one["Filter"]["Key"]["FilterRules"]:
                rule["Value"] = change(rule["Value"])
        self._s3.put_bucket_notification_configuration(
            Bucket=self._bucket, NotificationConfiguration=found
        )


@dataclass(frozen=True, slots=True)
class Fault:
    """One that happens, and the alarms that then fire, by the names in the runbook."""

    does: str
    fires: tuple[str, ...]
    happen: Callable[[Rehearsal], None]
    undo: str = "s3commit local repair"


FAULTS: Final = {
    "stuck-job": Fault(
        "a job's execution fails after its request", ("JobsFailed",), Rehearsal.spoil_key
    ),
    "dead-letter": Fault(
        "dispatch can't start, and a job's request is put aside",
        ("RequestDeadLetters",),
        lambda here: here.kill("dispatch", 1),
    ),
    "dead-function": Fault(
        "ingest can't start, and the messages of three jobs are put aside",
        ("FunctionErrors", "IngestDeadLetters"),
        lambda here: here.kill("ingest", 3),
    ),
    "throttled-account": Fault(
        "no function can run, and jobs wait",
        ("FunctionThrottles", "IngestBacklog", "RequestBacklog"),
        Rehearsal.throttle,
    ),
    "lost-events": Fault(
        "the bucket sends no notifications, and a sweep starts four jobs",
        ("EventsLost", "SweepsFailed"),
        Rehearsal.lose_events,
    ),
    "refused-documents": Fault(
        "a client puts documents that can't be read",
        ("DocumentsRefused",),
        Rehearsal.refuse,
        f"aws s3 rm --recursive s3://$BUCKET/rehearsal/{REFUSED}",
    ),
}
