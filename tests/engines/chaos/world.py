"""A run: the embedded runtime with everything that is deployed, the clients, and the adversary."""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import boto3.session
from botocore.config import Config
from botocore.exceptions import ClientError, HTTPClientError

from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.formats.layout import is_data
from s3commit.core.model.states import JobState
from s3commit.local import REGION
from s3commit.local.moto_patches import Patcher
from s3commit.local.runtime import LocalRuntime
from s3commit.local.synth import synthesize
from tests.engines.chaos.adversary import Adversary, executions, hurry, meddle_with_mail, waiting
from tests.engines.chaos.left import Left, s3, state_of
from tests.engines.chaos.programs import Programs, draw
from tests.engines.chaos.wire import Call, Wire, workers_of
from tests.engines.sim.clients import BUCKET
from tests.engines.sim.model import DECIDED, Job
from tests.engines.sim.scheduler import Violation

PROJECT = Path(__file__).parents[3]
# S3's clock can't be turned back, so it is the limits that are moved: all that is not new is old.
IMPATIENT = {"stuckMinutes": 0, "abandonedHours": 0, "retentionDays": 30}
MOST_SWEEPS = 20
QUIET_SECONDS = 15.0  # to wait for the executions that run to end, before the next sweep
# The adversary goes when that share of the jobs has a result, or after so many sweeps; before
# each it waits so long, in seconds.
ENOUGH, SWEEPS_UNDER_FIRE, AFTERMATH = 0.7, 2, 15.0


def sweep(functions: Any, **limits: int) -> Mapping[str, Any]:
    """Call the deployed sweep by a client of Lambda; what it reports, or how it failed."""
    time.sleep(1.1)  # S3's times are whole seconds: what was just written is new
    listed = functions.list_functions()["Functions"]
    (name,) = [one["FunctionName"] for one in listed if one["Handler"] == "sweep.handler"]
    answer = functions.invoke(FunctionName=name, Payload=json.dumps(IMPATIENT | limits))
    report: Mapping[str, Any] = json.loads(answer["Payload"].read())
    return report


class World:
    """One seed. ``spread`` is in how many seconds all jobs begin.

    After `run` ``violations`` says what does not hold, and ``lines`` what happened.
    """

    def __init__(self, seed: int, jobs: int, spread: float) -> None:
        self.seed = seed
        self.drawn = draw(seed, jobs)
        self.jobs = [program.job for program in self.drawn]
        files = [file for program in self.drawn for file in program.files()]
        self.files = {(file.key, file.body): file for file in files}
        self.spread = spread
        self.foreign: dict[str, bytes] = {}
        self.foreign_uploads: set[str] = set()
        self.lines: list[str] = []
        self.violations: list[str] = []
        self.began = time.monotonic()

    def run(self) -> None:
        """Begin, suffer, recover, judge."""
        self.adversary = Adversary(self.seed, self.trace)
        wire = Wire(self.adversary.fault, self.adversary.kill, self._notice)
        with LocalRuntime(
            synthesize(PROJECT, PROJECT / ".s3commit" / "assembly"),
            bucket=BUCKET,
            middleware=wire.around,
        ) as runtime:
            self.runtime, self.wire = runtime, wire
            wire.workers = partial(workers_of, runtime.executor)
            patcher = Patcher(runtime)
            meddle_with_mail(patcher, self.adversary)
            try:
                self._play()
            finally:
                self.adversary.stop()
                patcher.undo()

    def trace(self, who: str, what: str) -> None:
        """Keep a line for people."""
        self.lines.append(f"{time.monotonic() - self.began:8.3f}  {who:26}  {what}")

    def outcomes(self) -> Counter[str]:
        """The results of the jobs, with the reasons of those that were refused."""
        return Counter(f"{job.result or 'no result'} {job.failure}".strip() for job in self.jobs)

    def _play(self) -> None:
        self._warm_up()
        hurry()
        self._put_foreign()
        self.programs = Programs(S3ObjectStore(self._client("client")), self.adversary, self.seed)
        self.adversary.begin(self.runtime, lambda: self._with("request"))
        self.began = time.monotonic()
        for program in self.drawn:
            time.sleep(max(0.0, self.began + program.start * self.spread - time.monotonic()))
            self.trace(program.job.name, f"{program.kind}: {program.job.spec}")
            self.programs.start(program)
        self._suffer()
        self.adversary.stop()
        self._recover()
        try:
            self._left().judge()
        except Violation as violation:
            self.violations.append(str(violation))
        self.violations += self.programs.threads.failures

    def _warm_up(self) -> None:
        """Call each function once: a start may take longer than `hurry` lets a message wait."""
        functions = self.runtime.client("lambda")
        for each in functions.list_functions()["Functions"]:
            functions.invoke(FunctionName=each["FunctionName"], Payload=b"{}")

    def _with(self, document: str) -> list[Job]:
        """The jobs that have one of their documents."""
        there = s3(BUCKET).keys
        return [job for job in self.jobs if getattr(job.directory, document) in there]

    def _left(self) -> Left:
        with self.wire.turn:
            return Left(
                self.jobs, self.files, self.runtime.table, self.foreign, self.foreign_uploads
            )

    def _notice(self, call: Call, status: int) -> None:
        """A request has changed something. A job that is to lose an upload loses it here."""
        who = f"{call.function} {call.who[:6]}" if call.function else call.who
        self.trace(who, f"{call.operation} {call.key} -> {status}")
        for program in self.drawn:
            job = program.job
            job_id = job.directory.job_id
            if job_id not in call.key and job_id.encode() not in call.body:
                continue
            state = state_of(self.runtime.table, job.directory)
            if state is not job.record_state:
                self.trace(who, f"{job.name} : {job.record_state or 'unknown'} -> {state}")
                job.record_state = state
                if program.kind == "loses an upload" and state is JobState.COMMITTING:
                    self._lose_upload(job)
            completed = call.operation == "POST uploadId" and status == 200 and is_data(call.key)
            if completed and state not in DECIDED:
                self.violations.append(f"I1: {call.key} is visible, and its job is {state}")

    def _lose_upload(self, job: Job) -> None:
        uploads = s3(BUCKET).multiparts
        mine = [one for one in uploads.values() if job.directory.job_id in one.key_name]
        if mine and not job.sabotaged:
            job.sabotaged.add("upload")
            key = mine[0].key_name
            self.trace("SABOTEUR", f"aborts every upload of {key}")
            for one in [one for one in mine if one.key_name == key]:
                del uploads[one.id]

    def _suffer(self) -> None:
        """Everything runs, the sweep too, while the adversary is awake."""
        for _ in range(SWEEPS_UNDER_FIRE + 1):
            self._until(self._has_seen_enough, AFTERMATH)
            if self._has_seen_enough():
                return
            self._sweep(abandonedHours=24)

    def _has_seen_enough(self) -> bool:
        return len(self._with("result")) >= ENOUGH * len(self.jobs)

    def _is_quiet(self) -> bool:
        return not waiting() and all(one.status != "RUNNING" for one in executions())

    def _until(self, condition: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not condition():
            time.sleep(0.1)

    def _recover(self) -> None:
        """Redelivery, the executions' own retries, and the sweep: nothing else helps."""
        for _ in range(MOST_SWEEPS):
            self._until(self._is_quiet, QUIET_SECONDS)
            if self.programs.threads.is_over() and not self._left().unfinished():
                return
            self._sweep()

    def _sweep(self, **limits: int) -> None:
        # The adversary throttles this call, too; on a busy machine the sweep takes its time.
        with suppress(ClientError, HTTPClientError):
            self.trace("SWEEP", f"{sweep(self.runtime.client('lambda'), **limits)}")

    def _put_foreign(self) -> None:
        """What was there before, and is no job's: data, hidden files, open uploads."""
        client = self._client("stranger")
        for number, prefix in enumerate(sorted({job.prefix for job in self.jobs})):
            names = ["_notes/theirs.txt", "dt=2/.theirs.crc", "dt=1/theirs.csv"]
            keys = [prefix + name for name in names[: 2 + number % 2]]  # data in every other one
            for key in (*keys, f"{prefix.removesuffix('/')}0/dt=1/theirs.csv"):
                self.foreign[key] = f"foreign {key}".encode()
                client.put_object(Bucket=BUCKET, Key=key, Body=self.foreign[key])
            where = {"Bucket": BUCKET, "Key": f"{prefix}dt=1/uploading.csv"}
            upload = client.create_multipart_upload(**where)["UploadId"]
            client.upload_part(**where, UploadId=upload, PartNumber=1, Body=b"theirs")
            self.foreign_uploads.add(upload)

    def _client(self, who: str) -> Any:
        """An S3 client whose requests say who asks; it tries again as the writer's does."""
        session: Any = boto3.session.Session(who, "chaos", region_name=REGION)
        config = Config(
            retries={"mode": "standard", "total_max_attempts": 6},
            max_pool_connections=64,
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        return session.client("s3", endpoint_url=self.runtime.endpoint, config=config)
