"""One run: a world made from a seed, let go, recovered, and judged."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from s3commit.core import locks, plan
from s3commit.core.conditions import Conditions
from s3commit.core.layout import NOTE_SUFFIX, JobDirectory
from s3commit.core.model import Conflict, Destination, JobSpec, Names, Scope
from s3commit.core.protocol import acquire, neighbours, undo, upload
from s3commit.core.protocol import replace as replaced
from s3commit.core.protocol.pipeline import Pipeline
from s3commit.testing.memory import MemoryLedger, MemoryObjectStore
from tests.sim.actors import BUCKET, Actors
from tests.sim.faults import Faults
from tests.sim.judge import judge_end
from tests.sim.model import File, Job
from tests.sim.observer import Observer
from tests.sim.ports import Door, Line
from tests.sim.scheduler import Process, Scheduler, Violation

MAX_STEPS = 40_000
ROUNDS = 12  # of recovery, after which a job that has not ended never will

# Small jobs have all that large ones have: several units, pages, parts and waits.
_SCALED: list[tuple[Any, str, list[int]]] = [
    (plan, "UNIT_FILES", [1, 2]),
    (replaced, "REPLACED_PAGE", [1, 2, 5000]),
    (replaced, "DELETE_AT_ONCE", [1, 1000]),
    (upload, "PUT_BYTES", [300, 8 * 1024 * 1024]),
    (undo, "ABORT_ROUNDS", [2, 5]),
    (acquire, "MAX_WAITS", [12]),
    (locks, "MAX_PARTITION_LOCKS", [2, 90]),
    (locks, "WAITER_SECONDS", [900]),
    (neighbours, "ASKED_ONE_BY_ONE", [1, 64]),
]


@contextmanager
def scaled(rng: random.Random) -> Iterator[None]:
    """The numbers of the protocol, made small for one run."""
    before = [(module, name, getattr(module, name)) for module, name, _ in _SCALED]
    for module, name, values in _SCALED:
        setattr(module, name, rng.choice(values))
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


class World:
    """The world of one seed. After `run`, the counts say what happened."""

    def __init__(
        self,
        seed: int,
        *,
        trace: bool = False,
        store: Callable[..., MemoryObjectStore] = MemoryObjectStore,
        ledger: Callable[[], MemoryLedger] = MemoryLedger,
    ) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        rng = self.rng
        self.scheduler = Scheduler(rng, max_steps=MAX_STEPS)
        versioned = rng.random() < 0.4
        self.store = store(
            BUCKET,
            versioned=versioned,
            repeats_complete=rng.random() < 0.5,
            clock=self.scheduler,
            min_part_bytes=1,
        )
        self.ledger = ledger()
        self.bucket = self.store._buckets[BUCKET]
        self.observer = Observer(self.scheduler, self.bucket)
        self.faults = Faults(rng, rng.choice([0.0, 0.003, 0.01, 0.03, 0.08]))
        self.trace: list[Line] | None = [] if trace else None
        self.door = Door(
            self.scheduler,
            self.faults,
            self.observer,
            self.store,
            self.ledger,
            rng,
            self._announce,
            page=rng.choice([1, 2, 1000]),
            trace=self.trace,
        )
        shuffled = rng.random() < 0.3
        self.pipeline = Pipeline(
            self.door.as_store(),
            self.door.as_ledger(),
            self.scheduler,
            self._shuffled_map if shuffled else map,
        )
        self.actors = Actors(
            self.scheduler,
            self.faults,
            self.pipeline,
            rng,
            self.store,
            self.observer.files,
            self.observer.check_closed,
        )
        self.foreign: dict[str, bytes] = {}
        self.foreign_uploads: set[str] = set()
        self.rounds = 0

    def run(self) -> None:
        """Let everything happen, recover, judge. Raises `Violation`."""
        with scaled(self.rng):
            try:
                self._furnish()
                for _ in range(self.rng.choice([1, 2, 2, 2, 3])):
                    self._add_job()
                self.scheduler.run()
                self._recover()
                judge_end(self)
            finally:
                self.scheduler.stopped = True

    # What there is.

    def _furnish(self) -> None:
        """Files, markers and uploads of others, from before."""
        rng = self.rng
        for key in ("sales/old.parquet", "sales/dt=1/old.parquet", "sales/dt=2/old.parquet"):
            if rng.random() < 0.35:
                self._foreign(key)
        if rng.random() < 0.3:
            self._foreign("sales/part-t0-0.parquet")
        self._foreign("sales/_hidden/keep")
        self._foreign("sales/.keep")
        self._foreign("sales2/theirs.parquet")
        if rng.random() < 0.3:
            self.store.put(BUCKET, "sales/_SUCCESS", b"")
        stranger = "99999999-0000-4000-8000-000000000099"
        for key in ("sales2/theirs", f"sales/part-0-{stranger}.parquet", "sales/upload.bin"):
            upload_id = self.store.create_upload(BUCKET, key, metadata={}, content_type="x")
            etag = self.store.upload_part(BUCKET, key, upload_id, 1, b"theirs")
            self.foreign_uploads.add(upload_id)
            self.actors.prey.append((key, upload_id, etag))

    def _foreign(self, key: str) -> None:
        self.foreign[key] = f"foreign {key}".encode()
        self.store.put(BUCKET, key, self.foreign[key])

    def _add_job(self) -> None:
        rng, number = self.rng, len(self.observer.jobs)
        name = "ABCDEFGH"[number]
        prefix = rng.choice(["sales/"] * 6 + ["sales/dt=1/", "sales2/"])
        job_id = f"{number + 1:08d}-0000-4000-8000-00000000000{number + 1}"
        place = JobDirectory(Destination(BUCKET, prefix), job_id)
        spec = JobSpec(
            job_id,
            place.destination,
            conflict=rng.choice([Conflict.APPEND] * 3 + [Conflict.REPLACE] * 3 + [Conflict.FAIL]),
            scope=rng.choice(list(Scope)),
            idempotency_key="daily" if rng.random() < 0.3 else None,
            conditions=Conditions(min_files=rng.choice([1, 2]))
            if rng.random() < 0.1
            else Conditions(),
            names=Names.EXACT if rng.random() < 0.18 else Names.UNIQUE,
        )
        job = Job(name, place, spec, counts_all=rng.random() < 0.1)
        job.hostile = rng.random() < 0.3 and prefix == "sales/dt=1/" and not job.exact
        self.observer.jobs[name] = job
        tasks = [self._file_names(job, f"t{task}") for task in range(rng.choice([1, 1, 2, 2, 3]))]
        gives_up = rng.random() < 0.08
        self._later(
            f"{name}:driver",
            partial(self.actors.driver, job, tasks, gives_up=gives_up),
            role="driver",
            job=name,
            most=rng.choice([0.0, 0.0, 60.0, 1000.0]),
        )
        if gives_up:
            job.expected_refusal = True
        self._add_troubles(job)

    def _file_names(self, job: Job, task: str) -> list[str]:
        rng = self.rng
        suffix = "" if job.exact else f"-{job.place.job_id}"
        partitions = ["", "dt=1/", "dt=2/", "dt=1/h=3/"]
        if job.prefix == "sales/dt=1/" or (job.exact and rng.random() < 0.5):
            partitions = [""]
        count = rng.choice([0, 1, 1, 1, 2, 2]) or int(job.hostile)
        return [f"{rng.choice(partitions)}part-{task}-{n}{suffix}.parquet" for n in range(count)]

    def _add_troubles(self, job: Job) -> None:
        """Strangers and accidents that are no port calls."""
        rng, faults = self.rng, self.faults
        while faults.chance(0.15):
            again = f"{job.name}:again{rng.randrange(1000)}"
            self._later(f"{again}!", partial(self._execute_again, job, again), job=job.name)
        while faults.chance(0.2):
            again = f"{job.name}:duel{rng.randrange(1000)}"
            begin = partial(self._execute_again, job, again)
            late = partial(self._later, f"{again}!", begin, job=job.name, most=0.05)
            self._at_decision(job, late)
        if faults.chance(0.2 if job.exact else 0.08):
            self._sabotage("upload lost", job, self.actors.lose_upload)
        if faults.chance(0.04):
            self._sabotage("manifest spoiled", job, self.actors.spoil_manifest)
        if faults.chance(0.1):
            self._later(
                f"{job.name}:sweep", partial(self.actors.ask_abort, job), role="driver",
                job=job.name,
            )  # fmt: skip
        if faults.chance(0.1):
            self._later(f"{job.name}:ttl", partial(self._forget, job), role="ttl", job=job.name)

    def _sabotage(self, kind: str, job: Job, deed: Any) -> None:
        """At any time, or right after the decision."""

        def begin(most: float | None = None) -> None:
            self.faults.strike(kind)
            body = partial(deed, job, self.rng.choice)
            self._later(f"{job.name}:{kind}", body, role="saboteur", job=job.name, most=most)

        if self.rng.random() < 0.6:
            self._at_decision(job, partial(begin, 0.01))
        else:
            begin()

    def _at_decision(self, job: Job, begin: Callable[[], object]) -> None:
        self.observer.at_decision.setdefault(job.name, []).append(begin)

    def _execute_again(self, job: Job, name: str) -> None:
        if self.bucket.current(job.place.request) is not None:
            self.faults.strike("duplicate execution")
            self.actors.execute(job, name)

    def _forget(self, job: Job) -> None:
        """The time to live of an ended job's record: longer than any handler or step lives."""
        self.scheduler.sleep(self.rng.choice([10.0, 600.0, 6000.0]))
        self.scheduler.pause()
        roles = {other.role for other in self.scheduler.living if other.job == job.name}
        if roles & {"pipeline", "execution"}:
            return
        holders = [lock.holders for lock in self.ledger._locks.values()]
        has_result = self.bucket.current(job.place.result) is not None
        if job.ended and has_result and not any(job.place.job_id in one for one in holders):
            self.faults.strike("record expired")
            self.ledger._jobs.pop(job.place.job_id, None)
            self.ledger._attempts.pop(job.place.job_id, None)

    def _later(
        self, name: str, body: Any, *, job: str, role: str = "pipeline", most: float | None = None
    ) -> Process:
        delay = self.rng.choice([0.0, 1.0, 30.0, 600.0, 3000.0]) if most is None else most

        def delayed() -> None:
            self.scheduler.sleep(self.rng.random() * delay)
            body()

        return self.scheduler.spawn(name, delayed, role=role, job=job)

    def _announce(self, process: Process, key: str) -> None:
        """S3's notification of a put: once, twice, late, or lost."""
        if process.role not in {"task", "driver"}:
            return
        job = self.observer.jobs[process.job]
        if key.endswith(".pendingset"):
            self.observer.note_manifest(key)
            self._deliver(f"{job.name}:ingest", partial(self.actors.ingest, key), job)
        elif key.endswith(NOTE_SUFFIX):
            self.observer.note_manifest(key)
        elif key == job.place.request:
            self._deliver(f"{job.name}:dispatch", partial(self.actors.dispatch, job), job)

    def _deliver(self, name: str, body: Any, job: Job) -> None:
        times = 1
        if self.faults.chance(0.1):
            self.faults.strike("event lost")
            times = 0
        elif self.faults.chance(0.15):
            self.faults.strike("event twice")
            times = 2
        for _ in range(times):
            most = 0.5
            if self.faults.chance(0.2):
                self.faults.strike("event late")
                most = self.rng.choice([30.0, 600.0, 5000.0])
            self._later(name, body, job=job.name, most=most)

    def _shuffled_map(self, function: Any, items: Any) -> Iterator[Any]:
        found = list(items)
        self.rng.shuffle(found)
        return map(function, found)

    # Afterwards.

    def _recover(self) -> None:
        """What a sweep does, until nothing is left to do; nothing fails any more."""
        self.faults.rate = 0.0
        for self.rounds in range(ROUNDS):
            unfinished = [job for job in self.observer.jobs.values() if self._needs_help(job)]
            if not unfinished:
                return
            for job in unfinished:
                self._help(job)
            self.scheduler.run()
        stuck = ", ".join(f"{job.name} ({job.record_state})" for job in unfinished)
        raise Violation("progress", f"not ended after {ROUNDS} recoveries: {stuck}")

    def _needs_help(self, job: Job) -> bool:
        place = job.place
        open_uploads = any(file.job == job.name for file in self.leaks()) or any(
            one.key == place.commits for one in self.bucket.uploads.values()
        )
        begun = self.bucket.current(place.job) is not None
        if not begun and not open_uploads and job.record_state is None:
            return False
        scratch = any(
            key.startswith(place.scratch) and self.bucket.current(key)
            for key in self.bucket.objects
        )
        held = any(
            place.job_id in lock.holders or place.job_id in lock.waiting
            for lock in self.ledger._locks.values()
        )
        return not job.ended or not job.result or open_uploads or scratch or held

    def leaks(self) -> list[File]:
        """The open uploads of jobs.

        One with an exact name that neither manifest nor note names can't be told from a stranger's,
        by anyone: the bucket's lifecycle rule aborts it, and it is none here.
        """
        found = (self.observer.files.get(upload_id) for upload_id in sorted(self.bucket.uploads))
        return [
            file
            for file in found
            if file is not None
            and (not self.observer.jobs[file.job].exact or self.observer.is_named(file.upload_id))
        ]

    def _help(self, job: Job) -> None:
        def sweep() -> None:
            if self.bucket.current(job.place.request) is None:
                self.actors.ask_abort(job)
            self.actors.execute(job, f"{job.name}:recovery{self.rounds}")

        self.scheduler.seconds += 3000
        self.scheduler.spawn(f"{job.name}:sweep", sweep, role="driver", job=job.name)
