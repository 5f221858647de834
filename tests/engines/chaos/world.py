"""A run: the embedded runtime with everything that is deployed, the clients, and the adversary."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from typing import Any

import boto3.session
from botocore.config import Config

from s3commit.core.formats.layout import is_data
from s3commit.local.moto_patches import Patcher
from s3commit.local.server import REGION, LocalRuntime
from s3commit.local.synth import synthesize
from s3commit.local.worker import CallOutcome, FunctionSpec
from tests.engines.chaos import mail
from tests.engines.chaos.adversary import KILLS, Adversary, executions
from tests.engines.chaos.ageing import Calls, Clock, age_everything
from tests.engines.chaos.clients import Client
from tests.engines.chaos.history import History
from tests.engines.chaos.judge import Judge
from tests.engines.chaos.plans import Plan, draw
from tests.engines.chaos.played import Register
from tests.engines.chaos.wire import Wire

PROJECT = Path(__file__).parents[3]
MINUTE, HOUR = 60, 3600
# What passes between two sweeps, until all is over: the schedule's hour, and longer,
# since a job that failed is tried again later each time, and an abandoned one is given a day.
PAUSES = (61 * MINUTE, 2 * HOUR, 4 * HOUR, 25 * HOUR)
ROUNDS = 5  # times all of these
QUIET_SECONDS = 5.0  # to wait for the executions that run to end, before time passes
START_SECONDS = 10.0  # that the runtime takes to start; a machine that takes longer is given more
SWEEP_SECONDS = 120.0
CLIENTS = 24  # at a time
# The adversary goes when that share of the clients has its answer, or when time has passed, with a
# sweep, so often; so long, in seconds, it waits for either.
ENOUGH, SWEEPS_UNDER_FIRE, AFTERMATH = 0.7, 2, 12.0
READ_EVERY = 0.4  # seconds


class World:
    """One seed. ``spread`` is in how many seconds all jobs begin."""

    def __init__(self, seed: int, jobs: int, spread: float) -> None:
        self.seed = seed
        self.plans = draw(seed, jobs)
        self.spread = spread
        self.clock = Clock()
        self.calls = Calls()
        self.sweeps = 0
        self.swept = 0  # calls of the sweep that have ended
        self.passed = 0
        self.took: dict[str, float] = {}
        self.slow = 1.0
        self._over = threading.Event()

    def run(self) -> None:
        """Begin, suffer, recover, judge; what does not hold is in ``history.violations``."""
        self.register = Register("")
        self.history = History(self.register, "")
        self.adversary = Adversary(self.seed, self.history.trace)
        wire = Wire(self.adversary, self.history)
        began = time.monotonic()
        with LocalRuntime(
            synthesize(PROJECT, PROJECT / ".s3commit" / "assembly"),
            now=self.clock.now,
            middleware=wire.around,
            observe=self._observe,
        ) as runtime:
            self.runtime, self.wire = runtime, wire
            wire.workers = runtime.workers
            patcher = Patcher(runtime)
            self.calls.count(patcher)
            mail.meddle_with_mail(patcher, self.adversary, self.register)
            try:
                self._play(began)
            finally:
                self.adversary.stop()
                self._over.set()
                patcher.undo()

    def _play(self, began: float) -> None:
        self.register.bucket, self.history.table = self.runtime.bucket, self.runtime.table
        self._until(self._is_warm, SWEEP_SECONDS)
        self.history.began = time.monotonic()
        mail.hurry()
        self._foreign()
        self.judge = Judge(self.history, self.register)
        self.adversary.begin(self.runtime, self.register)
        self.took["start"] = time.monotonic() - began
        self.slow = max(1.0, self.took["start"] / START_SECONDS)
        with ThreadPoolExecutor(CLIENTS, thread_name_prefix="client") as pool:
            s3 = _client(self.runtime, "client")
            playing = [pool.submit(self._one, plan, s3) for plan in self._by_start()]
            reading = pool.submit(self._read)
            self._suffer(playing)
            self.adversary.stop()
            self.took["chaos"] = time.monotonic() - self.history.began
            self._recover(playing)
            self._over.set()
            for future in [*playing, reading]:
                future.result()
        self.took["recovery"] = time.monotonic() - self.history.began - self.took["chaos"]
        self.dead_letters = mail.dead_letters()
        self.judge.judge()

    def _is_warm(self) -> bool:
        workers = self.runtime.workers()
        return len(workers) >= len(KILLS) and all(worker.wait_ready() for worker in workers)

    def _by_start(self) -> list[Plan]:
        return sorted(self.plans, key=lambda plan: plan.start)

    def _one(self, plan: Plan, s3: Any) -> None:
        left = self.history.began + plan.start * self.spread - time.monotonic()
        self._over.wait(max(0.0, left))
        client = Client(plan, self.register, s3, self.seed, self._over)
        self.history.trace(plan.name, f"begins at {plan.prefix}: {plan.policy}")
        client.play()
        self.history.trace(plan.name, "client ends")

    def _suffer(self, playing: list[Future[None]]) -> None:
        """Everything runs, the sweep too, while the adversary is awake."""
        aftermath = AFTERMATH * self.slow
        self._until(lambda: self._has_seen_enough(playing), self.spread + aftermath)
        for pause in PAUSES[:SWEEPS_UNDER_FIRE]:
            if self._has_seen_enough(playing):
                return
            self._sweep(pause)
            self._until(lambda: self._has_seen_enough(playing), aftermath)

    def _has_seen_enough(self, playing: list[Future[None]]) -> bool:
        if time.monotonic() - self.history.began < self.spread:
            return False
        return sum(future.done() for future in playing) >= ENOUGH * len(playing)

    def _is_quiet(self) -> bool:
        return not mail.waiting() and all(one.status != "RUNNING" for one in executions())

    def _until(self, condition: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if condition():
                return True
            time.sleep(0.1)
        return False

    def _recover(self, playing: list[Future[None]]) -> None:
        """Nothing but time passes: redelivery, the executions' own retries, the scheduled sweep."""
        recovered = False
        for pause in PAUSES * ROUNDS:
            self._until(self._is_quiet, QUIET_SECONDS * self.slow)
            done = all(future.done() for future in playing)
            if done and recovered and not self.judge.unended() and not self.judge.left_over():
                return
            recovered = True
            self._sweep(pause)
        self._until(self._is_quiet, QUIET_SECONDS * self.slow)

    def _sweep(self, pause: int) -> None:
        """Let time pass; the schedule starts the sweep."""
        self.sweeps += 1
        before = self.swept
        with self.calls.none(), self.wire.turn:
            age_everything(self.runtime.bucket, self.runtime.table, pause)
            self.passed += pause
            self.clock.pass_by(pause)
        self.history.trace("TIME", f"{pause // MINUTE} minutes pass")

        if not self._until(lambda: self.swept > before, SWEEP_SECONDS * self.slow):
            self.history.fail("sweep", "the scheduled sweep does not end")

    def _observe(self, spec: FunctionSpec, _outcome: CallOutcome) -> None:
        self.swept += spec.handler == "sweep.handler"

    def _read(self) -> None:
        """A reader who lists one table after the other, again and again (I1)."""
        s3 = _client(self.runtime, "reader")
        for prefix in cycle(sorted({plan.prefix for plan in self.plans})):
            if self._over.wait(READ_EVERY):
                return
            pages = s3.get_paginator("list_objects_v2").paginate(
                Bucket=self.register.bucket, Prefix=prefix
            )
            keys = {one["Key"] for page in pages for one in page.get("Contents", [])}
            self.history.look(prefix, {key for key in keys if is_data(key)})

    def _foreign(self) -> None:
        """What was there before, and belongs to nobody here: data, hidden files, open uploads."""
        s3 = _client(self.runtime, "stranger")
        for number, prefix in enumerate(sorted({plan.prefix for plan in self.plans})):
            names = ["_notes/theirs.txt", "dt=2/.theirs.crc", "dt=1/theirs.csv"]
            for name in names[: 2 + number % 2]:  # data in every other one
                self._put_foreign(s3, prefix + name)
            self._put_foreign(s3, f"{prefix.removesuffix('/')}0/dt=1/theirs.csv")
            where = {"Bucket": self.register.bucket, "Key": f"{prefix}dt=1/uploading.csv"}
            upload = s3.create_multipart_upload(**where)["UploadId"]
            s3.upload_part(**where, UploadId=upload, PartNumber=1, Body=b"theirs")
            self.register.foreign_uploads[upload] = where["Key"]

    def _put_foreign(self, s3: Any, key: str) -> None:
        body = f"foreign {key}".encode()
        s3.put_object(Bucket=self.register.bucket, Key=key, Body=body)
        self.register.foreign[key] = body

    def outcomes(self) -> Counter[str]:
        """Jobs by how they ended."""
        counted: Counter[str] = Counter()
        for job in self.register.jobs:
            result = self.judge.results.get(job.job_id)
            code = f" {result.error.code}" if result and result.error else ""
            counted[f"{result.outcome}{code}" if result else job.answer] += 1
        return counted


def _client(runtime: LocalRuntime, who: str) -> Any:
    """An S3 client as the writer makes one, whose requests say who asks."""
    session: Any = boto3.session.Session(
        aws_access_key_id=who, aws_secret_access_key="chaos", region_name=REGION
    )
    return session.client(
        "s3",
        endpoint_url=runtime.endpoint,
        config=Config(
            retries={"mode": "standard", "total_max_attempts": 6},
            max_pool_connections=64,
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )
