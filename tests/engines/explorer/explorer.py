"""Every order of a small world, to the end: the real steps over the fakes, states told by a digest.

A state is what S3 and the ledger hold, and where each execution stands. A move is one step of the
state machine (or, finer, one call to S3 or the ledger), a zombie task that drops its manifest, or
an upload that is lost. An execution that dies is one that never moves again, so a crash between any
two moves is part of every order. Each state is visited once and judged when it is reached. What an
execution does depends on the world and on itself alone: where the others stand, it is the same.

Where a move is one call, a step is run again from its start at each of its calls, fed with the
answers that it got before: so the code under test stands still at any call without a thread.
"""

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from s3commit.core.calls import routes
from s3commit.core.commit.complete_unit import complete_unit
from s3commit.core.documents import plan
from s3commit.core.documents.job_json import JOB_JSON, JobSpec
from s3commit.core.documents.pages import MAX_INDEX_BYTES, UNIT, Unit
from s3commit.core.documents.pendingset import PendingFile, PendingSet, encode_pendingset
from s3commit.core.documents.request_json import CommitRequest, CountedAttempt, encode_request
from s3commit.core.documents.ticket import Ticket
from s3commit.core.formats.layout import META_ATTEMPT, META_JOB, META_TASK, JobDirectory
from s3commit.core.formats.strict_json import digest
from s3commit.core.model.errors import (
    InvalidInputError,
    JobRefusedError,
    NotFoundError,
    TransientError,
)
from s3commit.core.model.outcome import Failure
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.ledger import HeldError, LostRaceError
from tests.engines.explorer.judge import judge
from tests.engines.explorer.small import (
    BUCKET,
    OLD,
    Execution,
    Paused,
    Port,
    Rules,
    State,
    World,
    key_of,
    own_files,
)
from tests.fakes.execution import COMPLETING, call, run_execution
from tests.fakes.memory import ManualClock, MemoryLedger, MemoryObjectStore

COUNTED, ZOMBIE = "a0", "a1"
MOST_KNOWN = 20_000  # of the moves that are kept, for memory's sake

Move = tuple[str, Execution, World]  # its name, and what it leads to


def _directory(spec: JobSpec) -> JobDirectory:
    return JobDirectory(spec.destination, spec.job_id)


class Explorer:
    """Visits every state that the rules can reach, breadth first: a counterexample is shortest."""

    def __init__(self, rules: Rules, *, ledger: Callable[[], MemoryLedger] = MemoryLedger) -> None:
        self.rules = rules
        self.clock = ManualClock()
        self.store = MemoryObjectStore(BUCKET, clock=self.clock, min_part_bytes=1)
        self.ledger = ledger()
        new = self.ledger.healing(BUCKET, now=self.clock.now())
        self.ledger.note_healing(BUCKET, replace(new, whole=True))
        self.bucket = self.store.bucket(BUCKET)
        self.directories = list(map(_directory, rules.jobs))
        self.manifests: dict[tuple[int, str, str], bytes] = {}
        self.states = 0
        self.moves = 0
        self.ends = Counter[str]()
        self._known: dict[tuple[bytes, bytes], list[Move]] = {}

    def run(self, *, most: int = 10**9) -> None:
        """Explore. Raises `Violation` with the way there as its last word."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plan, "UNIT_FILES", 1)  # two files are two units
            self._explore(most)

    def _explore(self, most: int) -> None:
        first = self._first()
        seen = {_key(first)}
        waiting = deque([first])
        while waiting and self.states < most:
            state = waiting.popleft()
            self.states += 1
            following = False
            for reached in self._moves(state):
                following = True
                self.moves += 1
                key = _key(reached)
                if key not in seen:
                    seen.add(key)
                    judge(self, reached)
                    waiting.append(reached)
            if not following:
                self._at_an_end(state)

    def _at_an_end(self, state: State) -> None:
        judge(self, state, at_an_end=True)
        records = state.world.records
        found = [records[directory.ref].state.value for directory in self.directories]
        self.ends[" ".join(found)] += 1

    # The first state: everything is written, and the drivers have spoken.

    def _first(self) -> State:
        if self.rules.old:
            self.store.put(BUCKET, OLD, b"old")
        for spec in self.rules.before:
            self._ask(-1, spec)
            run_execution(Ports(self.store, self.ledger, self.clock), _directory(spec))
            self.clock.advance(60)
        zombies = set[tuple[int, str]]()
        for index, spec in enumerate(self.rules.jobs):
            self._ask(index, spec)
            for task in own_files(spec) if self.rules.zombies else ():
                self._write(index, spec, task, ZOMBIE, finish=False)
                zombies.add((index, task))
            self.clock.advance(self.rules.apart)
        executions = tuple(
            Execution(
                f"{'AB'[index]}{number}",
                "SealJob",
                Ticket(directory.job_id, BUCKET, directory.prefix, execution=f"{index}-{number}"),
            ).keyed()
            for index, directory in enumerate(self.directories)
            for number in range(self.rules.executions[index])
        )
        return State(self._there(), executions, frozenset(zombies), self.rules.losses)

    def _ask(self, index: int, spec: JobSpec) -> None:
        directory = _directory(spec)
        self.store.put(BUCKET, directory.job, JOB_JSON.encode(spec))
        counted = [self._write(index, spec, task, COUNTED) for task in own_files(spec)]
        request = encode_request(CommitRequest(directory.job_id, tuple(counted)))
        self.store.put(BUCKET, directory.request, request)

    def _write(
        self, index: int, spec: JobSpec, task: str, attempt: str, *, finish: bool = True
    ) -> CountedAttempt:
        directory, key = _directory(spec), own_files(spec)[task]
        metadata = {META_JOB: directory.job_id, META_TASK: task, META_ATTEMPT: attempt}
        upload_id = self.store.create_upload(BUCKET, key, metadata=metadata, content_type="x")
        body = b"old" if spec.undoes else f"{task} {attempt}".encode()
        etag = self.store.upload_part(BUCKET, key, upload_id, 1, body)
        names = (directory.job_id, task, attempt)
        origin = OLD if spec.undoes else ""
        file = PendingFile(BUCKET, key, upload_id, (etag,), len(body), *names, origin=origin)
        manifest = encode_pendingset(PendingSet(directory.job_id, (file,), task, attempt))
        self.manifests[index, task, attempt] = manifest
        name = directory.manifest_name(task, attempt)
        if finish:
            self.store.put(BUCKET, directory.prefix + name, manifest)
        return CountedAttempt(task, attempt, name, digest(manifest), 1, len(body))

    # Moves.

    def _moves(self, state: State) -> Iterator[State]:
        for index, execution in enumerate(state.executions):
            for label, after, world in self._advance(state.world, execution):
                executions = list(state.executions)
                executions[index] = after
                done = f"{execution.name} {label}"
                yield _reached(state, done, world, executions=tuple(executions))
        for index, task in sorted(state.to_finish):
            self._restore(state.world)
            key = self.directories[index].manifest(task, ZOMBIE)
            self.store.put(BUCKET, key, self.manifests[index, task, ZOMBIE])
            done = f"zombie of {'AB'[index]} finishes {task}"
            left = state.to_finish - {(index, task)}
            yield _reached(state, done, self._there(), to_finish=left)
        if state.losses:
            yield from self._lose(state)

    def _lose(self, state: State) -> Iterator[State]:
        for upload_id, upload in sorted(state.world.uploads.items()):
            if upload.metadata[META_JOB] == self.directories[0].job_id:
                self._restore(state.world)
                self.store.abort_upload(BUCKET, upload.key, upload_id)
                done, losses = f"{upload_id} is lost", state.losses - 1
                yield _reached(state, done, self._there(), losses=losses)

    def _advance(self, world: World, execution: Execution) -> list[Move]:
        """Each move of an execution in that world."""
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        key = (world.key, execution.key)
        if key not in self._known:
            moves = self._advances(world, execution)
            self._known[key] = [(said, to.keyed(), self._there()) for said, to in moves]
        return self._known[key]

    def _advances(self, world: World, execution: Execution) -> Iterator[tuple[str, Execution]]:
        """One move, or one for each unit that is left; the fakes then stand where it has led."""
        if not execution.step:
            return
        self._restore(world)
        if execution.step not in COMPLETING:
            yield self._step(execution, goes_on=True)
            # A call may stop after each step. Where a move is one call to S3 or the ledger, others
            # come in between anyway.
            if not self.rules.by_call:
                self._restore(world)
                yield self._step(execution, goes_on=False)
            return
        if execution.planned is None:
            execution = replace(execution, planned=self._units(execution.ticket))
        done = {one.unit for one in execution.results}
        left = [unit for unit in execution.planned or () if unit.number not in done]
        if not left:
            ticket = replace(execution.ticket, completed=execution.results)
            counted = self._at(execution, "BeginPublish", ticket)
            yield "counts", replace(counted, results=(), planned=None)
            return
        for unit in [execution.unit] if execution.unit else left:
            self._restore(world)
            yield self._complete(execution, unit)

    def _units(self, ticket: Ticket) -> tuple[Unit, ...]:
        try:
            stored = self.store.get(BUCKET, ticket.plan, max_bytes=MAX_INDEX_BYTES)
        except NotFoundError:
            return ()  # the machine's catch of States.ItemReaderFailed
        return tuple(UNIT.read(unit) for unit in json.loads(stored.body))

    def _complete(self, execution: Execution, unit: Unit) -> tuple[str, Execution]:
        port = Port(self, execution)
        label = f"CompleteUploads/{unit.number}"
        try:
            result = complete_unit(port.ports(), execution.ticket, unit)
        except Paused:
            return port.label(label), replace(execution, unit=unit, **port.known)
        results = tuple(sorted((*execution.results, result), key=lambda one: one.unit))
        done = self._at(execution, execution.step, execution.ticket)
        return port.label(label), replace(done, results=results, unit=None)

    def _step(self, execution: Execution, *, goes_on: bool) -> tuple[str, Execution]:
        name, ticket = execution.step, execution.ticket
        port = Port(self, execution)
        try:
            ticket, following = call(port.ports(), name, ticket, goes_on=goes_on)
        except Paused:
            return port.label(name), replace(execution, **port.known)
        except LostRaceError:
            return port.label(f"{name}: superseded"), self._at(execution, "", ticket)
        except HeldError:
            return port.label(f"{name}: held"), self._at(execution, "AcquireDestination", ticket)
        except TransientError:
            again = self._at(execution, name if execution.failures < 3 else "", ticket)
            return port.label(f"{name}: again"), replace(again, failures=execution.failures + 1)
        except (JobRefusedError, InvalidInputError) as error:
            if name not in routes.REFUSING:
                raise
            ticket = replace(ticket, refusal=Failure(error.code, ""))
            return port.label(f"{name}: refused {error.code}"), self._at(
                execution, "AbortJob", ticket
            )
        return port.label(name), self._at(execution, following, ticket)

    @staticmethod
    def _at(execution: Execution, step: str, ticket: Ticket) -> Execution:
        step = routes.WAITS.get(step, "" if step in routes.ENDS.values() else step)
        return replace(execution, step=step, ticket=ticket, answers=(), told=b"")

    # Worlds.

    def _there(self) -> World:
        """What is there now."""
        return World(
            dict(self.bucket.objects),
            dict(self.bucket.uploads),
            dict(self.bucket.completed),
            tuple(map(dict, self.ledger.parts())),
        ).keyed()

    def _restore(self, world: World) -> None:
        self.bucket.objects = dict(world.objects)
        self.bucket.uploads = dict(world.uploads)
        self.bucket.completed = dict(world.completed)
        for mine, then in zip(self.ledger.parts(), world.ledger, strict=True):
            mine.clear()
            mine.update(then)


def _reached(state: State, done: str, world: World, **changes: Any) -> State:
    """What a move from that state leads to."""
    return replace(state, world=world, path=(state.path, done), **changes)


def _key(state: State) -> bytes:
    executions = [one.key for one in state.executions]
    return key_of((state.world.key, executions, sorted(state.to_finish), state.losses))
