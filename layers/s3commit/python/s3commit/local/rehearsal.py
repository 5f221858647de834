"""Faults of the embedded runtime, as a deployment has them, made and undone by AWS's own calls.

A broken part shows its former state, so that `Rehearsal.repair` needs no memory.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from s3commit.aws.clients import make_session
from s3commit.core.documents.request_json import CountedAttempt
from s3commit.core.formats.layout import PIPELINE, JobDirectory, parse_destination
from s3commit.core.model.errors import OutcomeUnknownError
from s3commit.core.model.locks import key_digest
from s3commit.core.sweep.sweep import DEFAULTS
from s3commit.local import BUCKET
from s3commit.writer.job import Job
from s3commit.writer.start import open_job

BROKEN: Final = "broken."  # before a handler's module
LOST: Final = ".lost"  # behind a suffix of which the bucket notifies
SPOILT: Final = b"not the pipeline's"
SILENCE: Final = 2.0  # seconds: a sweep starts no job that was not silent for one
Opened = tuple[Job, CountedAttempt | None]


class Rehearsal:
    """The runtime that the environment leads to, and jobs in it."""

    def __init__(self) -> None:
        self._client: Callable[[str], Any] = cache(make_session().create_client)
        self._bucket = os.environ[BUCKET]

    # The jobs of a rehearsal

    def open(self, count: int, key: str | None = None) -> list[Opened]:
        """Jobs that have written a file, and did not request their commit."""
        return [self._open(key) for _ in range(count)]

    def _open(self, key: str | None) -> Opened:
        job = open_job(f"s3://{self._bucket}/rehearsal/", idempotency_key=key)
        task = job.task("0")
        with task.open(f"{job.job_id}.txt") as file:
            file.write(b"rehearsal\n")
        return job, task.finish()

    def request(self, opened: list[Opened]) -> None:
        """Request the commits, and wait for none."""
        for job, counted in opened:
            job.commit_timeout = 0
            with suppress(OutcomeUnknownError):
                job.commit([counted])

    # The faults

    def spoil_key(self) -> None:
        """Another program writes into what is the pipeline's: an execution fails immediately."""
        ((job, counted),) = self.open(1, str(uuid.uuid4()))
        note = job.directory.key_note(key_digest(str(job.spec.idempotency_key)))
        self._client("s3").put_object(Bucket=self._bucket, Key=note, Body=SPOILT)
        self.request([(job, counted)])

    def kill(self, name: str, jobs: int) -> None:
        """A bad deployment of a function that a queue feeds; its messages come again quickly."""
        for function in self._functions(name):
            self._handler(function, BROKEN + function["Handler"].removeprefix(BROKEN))
            self._hide(function, 1)
        self.request(self.open(jobs))

    def throttle(self) -> None:
        """No function can run.

        https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
        """
        for function in self._functions():
            self._client("lambda").put_function_concurrency(
                FunctionName=function["FunctionName"], ReservedConcurrentExecutions=0
            )
        self.request(self.open(3))

    def lose_events(self) -> None:
        """Another program replaces the bucket's notifications while jobs write; a sweep runs."""
        for job, counted in self.open(1):  # so that the sweep looks at their table
            job.commit([counted])
        opened = self.open(4)
        self._notify(lambda suffix: suffix + LOST)
        self.request(opened)
        time.sleep(SILENCE)
        (sweep,) = self._functions("sweep")
        limits = json.dumps({**DEFAULTS, "stuckMinutes": 0})
        self._client("lambda").invoke(FunctionName=sweep["FunctionName"], Payload=limits)

    def refuse(self) -> None:
        """A broken client puts documents that are none."""
        place = parse_destination(f"s3://{self._bucket}/rehearsal/")
        for _ in range(11):
            key = JobDirectory(place, str(uuid.uuid4())).job
            self._client("s3").put_object(Bucket=self._bucket, Key=key, Body=SPOILT)

    def repair(self) -> None:
        """Undo every fault; repeating it is harmless."""
        for function in self._functions():
            self._handler(function, function["Handler"].removeprefix(BROKEN))
            self._client("lambda").delete_function_concurrency(
                FunctionName=function["FunctionName"]
            )
            self._hide(function, 6 * int(function["Timeout"]))  # as it is deployed
        self._notify(lambda suffix: suffix.removesuffix(LOST))
        s3 = self._client("s3")
        for page in s3.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=f"{PIPELINE}_keys/"
        ):
            for found in page.get("Contents", ()):
                named = {"Bucket": self._bucket, "Key": found["Key"]}
                if s3.get_object(**named)["Body"].read() == SPOILT:
                    s3.delete_object(**named)

    # The parts of the runtime

    def _functions(self, name: str = "") -> list[dict[str, Any]]:
        """All functions, or the one whose module has that name."""
        found = self._client("lambda").list_functions()["Functions"]
        return [one for one in found if name in {"", one["Handler"].split(".")[-2]}]

    def _handler(self, function: dict[str, Any], handler: str) -> None:
        self._client("lambda").update_function_configuration(
            FunctionName=function["FunctionName"], Handler=handler
        )

    def _queues(self, function: dict[str, Any]) -> Iterator[str]:
        """The queues that feed the function."""
        sqs, asked = self._client("sqs"), {"FunctionName": function["FunctionName"]}
        for one in self._client("lambda").list_event_source_mappings(**asked)[
            "EventSourceMappings"
        ]:
            yield sqs.get_queue_url(QueueName=one["EventSourceArn"].split(":")[-1])["QueueUrl"]

    def _hide(self, function: dict[str, Any], seconds: int) -> None:
        """For how long a message is hidden that the function failed at."""
        for url in self._queues(function):
            self._client("sqs").set_queue_attributes(
                QueueUrl=url, Attributes={"VisibilityTimeout": str(seconds)}
            )

    def _notify(self, change: Callable[[str], str]) -> None:
        """Change the suffixes of which the bucket notifies."""
        s3 = self._client("s3")
        found = s3.get_bucket_notification_configuration(Bucket=self._bucket)
        found.pop("ResponseMetadata")
        for one in found.get("QueueConfigurations", ()):
            for rule in one["Filter"]["Key"]["FilterRules"]:
                rule["Value"] = change(rule["Value"])
        s3.put_bucket_notification_configuration(
            Bucket=self._bucket, NotificationConfiguration=found
        )


@dataclass(frozen=True, slots=True)
class Fault:
    """One that happens, and the alarms that then ring, by the names in the runbook."""

    does: str
    rings: tuple[str, ...]
    happen: Callable[[Rehearsal], None]


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
        "a client puts documents that can't be read", ("DocumentsRefused",), Rehearsal.refuse
    ),
}
