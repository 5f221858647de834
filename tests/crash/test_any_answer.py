"""Behind the decision each call of each step may get any answer: the job ends (I2, I12).

The table has a row for each call that a step is seen to make, and a column for each class of
answer. In a cell the job ends by itself, or, where none but an operator can bring the answer about,
when that is mended: no cell is "fails for ever".
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from s3commit.core.documents import commit_manifest
from s3commit.core.documents.ticket import Ticket
from s3commit.core.model.errors import S3CommitError, TransientError
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.ledger import Ledger
from s3commit.core.ports.objects import ObjectStore
from tests.core.world import World, job_directory
from tests.crash.answers import (
    ANSWERS,
    MOMENT,
    NEVER,
    PASSES,
    STRANGERS,
    Cell,
    answer_of,
    bring_about,
    is_possible,
    operators,
    place_of,
)
from tests.crash.scenarios import (
    POLICIES,
    SCENARIOS,
    Scenario,
    check_ended,
    committing,
    parts,
    rolling_back,
)
from tests.fakes import execution
from tests.fakes.execution import STEPS, run_execution
from tests.fakes.faults import Call, Crash, When

DAY = 86_400
ROUNDS = 20  # of a step that comes again, until its execution is given up
BEFORE = frozenset({JobState.OPEN, JobState.SEALED})
DIRECTORY = job_directory()


def resumed(world: World) -> None:
    """A job whose execution dies when it is decided."""
    committing(world)
    world.plan.crash_after("decide")


def forgotten(world: World) -> None:
    """A job whose table is lost when it is decided."""
    committing(world)
    is_decision = When(where=lambda call: call.key == DIRECTORY.decision)
    world.plan.run_after("put", world.ledger.lose, **is_decision)


def undone_again(world: World) -> None:
    """A job whose execution dies in its roll back."""
    rolling_back(world)
    world.plan.crash_before("abort_upload")


def listed_in_parts(world: World) -> None:
    """A job whose list is too long for one PUT."""
    committing(world)
    world.store.least_part = 1


ROWS = [
    *SCENARIOS,
    *POLICIES,
    Scenario(resumed, Outcome.COMMITTED, parts("t0", "t1", "t2")),
    Scenario(forgotten, Outcome.COMMITTED, parts("t0", "t1", "t2")),
    Scenario(undone_again, Outcome.ROLLED_BACK, {}, "UPLOADS_LOST"),
    Scenario(listed_in_parts, Outcome.COMMITTED, parts("t0", "t1", "t2")),
]


@dataclass
class Watch:
    """A world, and which step its execution is in."""

    world: World
    step: str = ""

    def cell(self, call: Call) -> Cell | None:
        """The call's, if the job is decided, or is being aborted."""
        record = self.world.ledger.job(DIRECTORY.ref)
        decided = self.world.store.bucket("lake").current(DIRECTORY.decision)
        if record.state in BEFORE if record else decided is None:
            return None
        return Cell(self.step, call.verb, place_of(DIRECTORY, call))

    def ends(self) -> bool:
        """Run executions as the sweep starts them, until the job has ended; whether it has."""
        for _ in range(MOMENT + 3):  # the first one may only wait for a table that heals
            name, rounds = f"execution-{self.world.clock.now()}", iter(range(ROUNDS))

            def pause(rounds: Iterator[int] = rounds) -> None:
                if next(rounds, None) is None:
                    raise TransientError("the time of the execution is over")
                self.world.clock.advance(60)

            try:
                run_execution(self.world.ports, DIRECTORY, execution=name, pause=pause)
            except (S3CommitError, Crash):
                pass
            else:
                record = self.world.ledger.job(DIRECTORY.ref)
                if record is not None and record.state in ENDED:
                    return True
            self.world.clock.advance(DAY)
        return False


@contextmanager
def watched(scenario: Scenario) -> Iterator[Watch]:
    """The scenario's world, whose steps say when they begin."""
    watch = Watch(World())

    def told(name: str, step: Callable[..., Ticket]) -> Callable[..., Ticket]:
        def begun(*args: Any) -> Ticket:
            watch.step = name
            return step(*args)

        return begun

    with pytest.MonkeyPatch.context() as patch:
        for name, step in STEPS.items():
            patch.setitem(STEPS, name, told(name, step))
        complete = execution.complete_uploads
        patch.setattr(execution, "complete_uploads", told("CompleteUploads", complete))
        if scenario.prepare is listed_in_parts:
            patch.setattr(commit_manifest, "PUT_BYTES", 1)
        scenario.begin(watch.world)
        yield watch


def rows() -> dict[Cell, Scenario]:
    """Every call behind the decision, with a scenario in which it is made."""
    found: dict[Cell, Scenario] = {}
    for scenario in ROWS:
        with watched(scenario) as watch:

            def note(call: Call, watch: Watch = watch, scenario: Scenario = scenario) -> bool:
                cell = watch.cell(call)
                if cell is not None:
                    found.setdefault(cell, scenario)
                return False

            watch.world.plan.run_before(None, lambda: None, where=note)
            assert watch.ends()
    return found


TABLE = rows()


def verbs_of(port: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(port, inspect.isfunction) if name[0] != "_"}


def test_i2_the_table_has_each_verb_of_the_ports_that_a_step_can_call() -> None:
    seen = {cell.verb for cell in TABLE}
    assert seen >= verbs_of(ObjectStore) - NEVER
    assert not seen & NEVER
    assert seen - verbs_of(ObjectStore) <= verbs_of(Ledger)
    behind = {"SealJob", "DecideCommit", "CompleteUploads", "BeginPublish", "RemoveReplaced"}
    assert {cell.step for cell in TABLE} == behind | {
        *("PublishSuccess", "AbortJob", "RollBack", "TidyUp")
    }
    for cell in TABLE:
        for answer in ANSWERS:
            operators(cell, answer)  # raises for a verb that nobody has thought of


def whole(watch: Watch) -> bool:
    """All of the job's files are visible, or none (I2); it holds nothing, and has no upload."""
    record, visible = watch.world.record(DIRECTORY), watch.world.visible()
    own = [
        key
        for key, body in visible.items()
        if DIRECTORY.job_id in key and not body.startswith(STRANGERS)
    ]
    committed = record.state is JobState.COMMITTED
    complete = len(own) == record.planned.files if committed else not own
    held = watch.world.ledger.holders or watch.world.open_uploads("sales/")
    return complete and not held


def strike(watch: Watch, cell: Cell, answer: str) -> list[bool]:
    """Answer the calls of the cell so, as long as the list that is returned says true."""
    world, on = watch.world, [True]

    def give(call: Call) -> Any:
        if not operators(cell, answer) and bring_about(world.store, answer, call):
            return getattr(world.store, call.verb)(**call.arguments)
        return answer_of(world.store, answer, call)

    world.plan.answer(
        cell.verb,
        give,
        where=lambda call: on[0] and watch.cell(call) == cell,
        times=MOMENT if answer in PASSES else None,
    )
    return on


@pytest.mark.parametrize("answer", ANSWERS)
def test_i2_i12_whatever_a_call_behind_the_decision_is_answered_the_job_ends(answer: str) -> None:
    wrong: list[str] = []
    cells = sorted(cell for cell in TABLE if is_possible(cell, answer))
    struck = 0
    for cell in cells:
        scenario = TABLE[cell]
        with watched(scenario) as watch:
            world, on = watch.world, strike(watch, cell, answer)
            ended = watch.ends()
            struck += bool(world.plan.fired)
            if not ended and not operators(cell, answer):
                wrong.append(f"{cell} in {scenario.name}: {world.record(DIRECTORY).state}")
            if ended and answer in PASSES:
                check_ended(world, scenario)
            on[0] = False
            if not watch.ends() or not whole(watch):
                wrong.append(f"{cell} in {scenario.name}: {world.record(DIRECTORY).state} for ever")
    assert not wrong, "\n".join(wrong)
    assert struck == len(cells) > 30
