"""The fakes behind a door at which the scheduler, the faults and the observer stand."""

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import greenlet

from s3commit.core.model.errors import PreconditionError, S3CommitError, TransientError
from s3commit.core.model.states import JobState
from tests.engines.sim.decisions import Decisions
from tests.engines.sim.deletions import shown_by
from tests.engines.sim.faults import READS, Faults
from tests.engines.sim.observer import Observer
from tests.engines.sim.scheduler import Process, Scheduler
from tests.fakes.faults import Crash
from tests.fakes.memory import MemoryLedger, MemoryObjectStore

OBSERVED = frozenset(
    {"put", "delete", "delete_seen", "create_upload", "abort_upload", "complete_upload"}
)
_MOVES = frozenset({"open_job", "take_over", "advance", "decide", "note", "lock", "release"})


@dataclass
class Door:
    """Every port call goes through `call`."""

    scheduler: Scheduler
    faults: Faults
    observer: Observer
    decisions: Decisions
    store: MemoryObjectStore
    ledger: MemoryLedger
    rng: random.Random
    announce: Callable[[Process, str], None]
    page: int = 1000
    late_uploads: bool = False
    trace: list[str] | None = None  # a line a call, where somebody reads it
    strokes: int = 0

    def call(self, verb: str, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """One call: others may run first, then it may fail, and all are told what it did."""
        self.scheduler.pause()
        self._live_on()
        process = self.scheduler.current
        assert process is not None
        conditional = verb in {"put", "complete_upload"} and bool(
            kwargs.get("if_absent") or kwargs.get("if_match")
        )
        kind = self.faults.draw(verb.partition(" ")[0], conditional=conditional)
        process.writes += verb.partition(" ")[0] not in READS
        self.strokes += bool(kind)
        outcome: Any = None

        def perform(*given: Any) -> Any:
            return self._perform(process, verb, partial(method, *given, **kwargs), given)

        try:
            outcome = self._struck(kind, verb, args, perform)
            return outcome
        except BaseException as error:
            outcome = error
            raise
        finally:
            if self.trace is not None and not isinstance(outcome, greenlet.GreenletExit):
                said = [_brief(one) for one in args] + [f"{n}={_brief(kwargs[n])}" for n in kwargs]
                self.trace.append(
                    f"{self.scheduler.seconds:10.3f} {process.name:26} {verb}({', '.join(said)})"
                    f" -> {_brief(outcome)} {kind}"
                )

    def is_late(self, upload_id: str) -> bool:
        """Whether listings of the pipeline lack this upload: a planned one of a job rolled back.

        AWS promises strong consistency for objects, and says nothing of listings of uploads
        (docs/adr/0007). All others are listed: of those nothing else tells.
        """
        file = self.observer.files.get(upload_id)
        if not self.late_uploads or file is None:
            return False
        job = self.observer.jobs[file.job]
        is_undone = job.record_state in {JobState.ROLLING_BACK, JobState.ROLLED_BACK}
        is_planned = is_undone and job.planned.get(file.key) is file
        return is_planned and not job.reset

    def _struck(
        self, kind: str, verb: str, args: tuple[Any, ...], perform: Callable[..., Any]
    ) -> Any:
        if kind == "crash before":
            raise Crash(f"before {verb}")
        if kind in {"error", "throttled"}:
            raise TransientError("500" if kind == "error" else "503 Slow Down")
        if kind == "conflict 409":
            return self._conflict(verb, args)
        if kind == "clock jump":
            self.scheduler.seconds += self.faults.stall()
        if kind == "stall before":
            self._stall()
        if kind == "sent twice":
            with suppress(S3CommitError):
                perform(*args)
            self.scheduler.pause()
        if kind == "answer lost" and verb == "delete_seen":
            self.faults.strike("half done")
            many = list(args[-1])
            args = (*args[:-1], many[: len(many) // 2])
        result = perform(*args)
        if kind == "crash after":
            raise Crash(f"after {verb}")
        if kind == "answer lost":
            raise TransientError("the answer was lost")
        if kind == "stall after":
            self._stall()
        return result

    def _stall(self) -> None:
        """For most of the time that the process has left, at most."""
        self.scheduler.sleep(min(self.faults.stall(), 0.9 * self.scheduler.left()))
        self._live_on()

    def _live_on(self) -> None:
        """Lambda ends a call after its time. I6, I8 and a rollback count on that."""
        if self.scheduler.left() < 0:
            self.faults.strike("timed out")
            self.strokes += 1
            raise Crash("timed out")

    def _conflict(self, verb: str, args: tuple[Any, ...]) -> Any:
        """S3's 409: nothing has happened; after a completion the parts have to be sent again."""
        if verb == "put":
            raise TransientError("409", code="CONFLICT")
        file = self.observer.files.get(args[2])
        if file is not None:
            self.observer.jobs[file.job].sabotaged.add("409")
        self.store.abort_upload(*args[:3])
        raise PreconditionError("409", code="CONFLICT")

    def _perform(
        self, process: Process, verb: str, call: Callable[[], Any], args: tuple[Any, ...]
    ) -> Any:
        if verb in OBSERVED:
            result = getattr(self.observer, verb)(process, call, args)
            if verb == "put":
                self.observer.note_request(args[1])
                self.announce(process, args[1])
            return result
        result = call()
        process.shown.update(shown_by(result))
        if verb in _MOVES:
            self.decisions.moved(process, result, opened=verb == "open_job")
        elif verb == "start":
            process.effects[verb] += bool(result)
        return result


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"
