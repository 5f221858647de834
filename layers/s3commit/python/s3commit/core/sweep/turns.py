"""Whose turn it is in a sweep: call by call, pass by pass, and one sweep at a time.

A step goes through all it has in one walk, of any number of calls; what costs much is put off, and
has its turn when the walk is through. A pass gives each step so many calls, and the next pass goes
on where this one stopped, so no step waits for another. How far each has come the ledger keeps,
where only the pipeline writes, together with which sweep is at work.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from s3commit.core.ports.ledger import Ledger, SweepNote
from s3commit.core.sweep.sweep import Step, Sweep, shifted

CALLS_A_PASS: Final = 6  # of each step: of ten minutes at most, so a pass of four takes four hours
LEASE_SECONDS: Final = 1_800  # a call ends within 900 (Lambda), and its repetition begins soon


@dataclass(frozen=True, slots=True)
class SweepTurn:
    """How far a step has come.

    ``cursor`` is the walk's, ``put_off`` what waits for its end; ``waiting`` are those of them that
    have not had their turn in this pass. ``before`` is when the walk before this one began.
    ``broken_off``: a call has begun, and not ended.
    """

    cursor: str = ""
    walked: bool = True
    put_off: dict[str, str] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()
    calls: int = 0
    began: str = ""
    before: str = ""
    broken_off: bool = False

    @property
    def more(self) -> bool:
        """Whether there is something left to do in this pass."""
        return not self.walked or bool(self.waiting)

    def opened(self, now: str) -> SweepTurn:
        """The first turn of a pass: a walk that is through begins anew, another one goes on.

        Save one that was broken off: what is behind the place where it breaks waits, as long as it
        does, and what is before it does not.
        """
        turn = replace(self, calls=0, waiting=(), broken_off=False)
        if not (self.walked or self.broken_off):
            return turn
        before = self.began if self.walked else self.before
        return replace(turn, cursor="", walked=False, began=now, before=before)


def take_turn(make: Callable[[SweepTurn], Sweep], step: Step, turn: SweepTurn) -> SweepTurn:
    """One call of the step; ``make`` gives it its `Sweep`, with times and put off things of it."""
    calls = turn.calls + 1
    if not turn.walked:
        sweep = make(turn)
        cursor = step(sweep, turn.cursor)
        waiting = () if cursor else tuple(sweep.put_off)
        walked = not cursor
        return replace(
            turn,
            cursor=cursor,
            walked=walked,
            put_off=dict(sweep.put_off),
            waiting=waiting,
            calls=calls,
        )
    name, *waiting_still = turn.waiting
    left = {other: cursor for other, cursor in turn.put_off.items() if other != name}
    sweep = make(replace(turn, put_off=left))
    sweep.alone = True
    step(sweep, turn.put_off[name])
    return replace(turn, put_off=dict(sweep.put_off), waiting=tuple(waiting_still), calls=calls)


@dataclass(frozen=True, slots=True)
class Sitting:
    """One sweep's hold on the ledger's note of sweeps; ``holder`` is its execution."""

    ledger: Ledger
    holder: str
    now: str

    def may_begin(self, note: SweepNote) -> bool:
        """Whether no other sweep is at work."""
        return note.holder in {"", self.holder} or note.until <= self.now

    def put(self, note: SweepNote, name: str, turn: SweepTurn) -> SweepNote | None:
        """Note how far the step has come, and hold the note until well after the call's end.

        None if another sweep was faster. Two calls of different sweeps never run at once: each
        begins with a write that succeeds only if the note was its own sweep's, or had not been
        written for longer than a call can last.
        """
        held = replace(
            note,
            holder=self.holder,
            until=shifted(self.now, LEASE_SECONDS),
            turns={**note.turns, name: json.dumps(asdict(turn))},
        )
        return replace(held, version=held.version + 1) if self.ledger.put_sweep_note(held) else None

    def leave(self) -> None:
        """End the sweep, so that the next one need not wait for the time to pass."""
        note = self.ledger.sweep_note()
        if note.holder == self.holder:
            self.ledger.put_sweep_note(replace(note, holder="", until=""))


def kept_turn(note: SweepNote, name: str) -> SweepTurn:
    """How far the step had come; the very beginning if nobody knows."""
    if name not in note.turns:
        return SweepTurn()
    found = json.loads(note.turns[name])
    return SweepTurn(**{**found, "waiting": tuple(found["waiting"])})


def call_step(
    sitting: Sitting, make: Callable[[SweepTurn], Sweep], name: str, step: Step, *, first: bool
) -> bool:
    """One call of a step in a scheduled pass; whether it is to be called again in this pass.

    ``first`` is the step's first call of the pass. False too where another sweep is at work.
    """
    note = sitting.ledger.sweep_note()
    turn = kept_turn(note, name)
    turn = turn.opened(sitting.now) if first else turn
    if not turn.more or not sitting.may_begin(note):
        return False
    held = sitting.put(note, name, replace(turn, broken_off=True))
    if held is None:
        return False
    turn = replace(take_turn(make, step, turn), broken_off=False)
    is_kept = sitting.put(held, name, turn) is not None
    return is_kept and turn.more and turn.calls < CALLS_A_PASS
