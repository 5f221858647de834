"""How many responses of S3 and the ledger a commit waits for, one after the other, to its result.

The latency of a small job is their number times the latency of one (bench/README.md).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from s3commit.core.commit.complete_unit import complete_unit
from s3commit.core.documents import plan
from s3commit.core.documents.pages import Unit
from s3commit.core.documents.ticket import Ticket, UnitResult
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.ports.bundle import Ports
from tests.core.world import World, job_directory
from tests.fakes.execution import run_execution
from tests.fakes.faults import Call


class Chain:
    """Counts requests as they depend on each other: those of a parallel map begin together."""

    def __init__(self, result: str) -> None:
        self.length = self.to_the_result = 0
        self._result = result

    def asked(self, call: Call) -> bool:
        self.length += 1
        if call.verb == "put" and call.key == self._result:
            self.to_the_result = self.length
        return False

    def parallel(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        """An item begins when it was made, which may have taken requests too."""
        made, longest, left = self.length, self.length, iter(items)
        while True:
            self.length = made
            try:
                item = next(left)
            except StopIteration:
                break
            made = self.length
            done = function(item)
            self.length = longest = max(longest, self.length)
            yield done
        self.length = max(longest, made)


def side_by_side(ports: Ports, ticket: Ticket, units: Sequence[Unit]) -> Iterator[UnitResult]:
    """As the Map has its workers."""
    return ports.parallel(partial(complete_unit, ports, ticket), units)


APPEND: dict[str, Any] = {}
KEYED = {"idempotency_key": "2026-11-21"}
REPLACE = {"conflict": Conflict.REPLACE}
PARTITIONS = {**REPLACE, "scope": Scope.PARTITION}


@pytest.mark.parametrize(
    ("spec", "files", "most"),
    [(APPEND, 3, 14), (APPEND, 1_000, 16), (KEYED, 3, 17), (REPLACE, 3, 34), (PARTITIONS, 3, 41)],
    ids=["append", "1,000 files", "with a key", "replace", "replace partitions"],
)
def test_a_commit_waits_for_so_many_responses(spec: dict[str, Any], files: int, most: int) -> None:
    assert responses(spec, files) == most


def test_a_request_before_its_events_waits_for_few_more() -> None:
    """The ledger does not know the job: what S3 remembers of it is read side by side."""
    assert responses(APPEND, 3, announced=False) == 14 + 2


@pytest.mark.parametrize("lost", [False, True], ids=["committed", "rolled back"])
def test_more_tasks_files_pages_and_directories_above_wait_for_no_more(
    lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by one a hundred thousand would take half an hour: no call of 15 minutes would end."""
    for most in () if lost else ("PAGE_FILES", "UNIT_FILES"):  # a roll back goes unit by unit
        monkeypatch.setattr(plan, most, 1)
    few = responses(APPEND, 2, tasks=2, lost=lost)
    assert responses(APPEND, 2, tasks=12, lost=lost, prefix="a/b/c/d/") == few


def responses(
    spec: dict[str, Any],
    files: int,
    *,
    tasks: int = 1,
    announced: bool = True,
    lost: bool = False,
    prefix: str = "sales/",
) -> int:
    world, directory = World(), job_directory(prefix=prefix)
    world.heal()
    world.store.put("lake", f"{prefix}dt=1/old.csv", b"old")
    world.open(directory, **spec)
    attempts = []
    for task in range(tasks):
        names = {f"dt={n}/part-{task}-{n}-{directory.job_id}.csv": b"x" for n in range(files)}
        attempts.append(world.attempt(directory, f"t{task}", files=names))
    if announced:
        for attempt in attempts:
            world.announce(directory, attempt)
    if lost:
        world.lose_after_decision(f"{prefix}dt=1/part-1-")
    world.request(directory, *attempts)
    chain = Chain(directory.result)
    world.ports = replace(world.ports, parallel=chain.parallel)
    world.plan.run_before(None, lambda: None, where=chain.asked)
    run_execution(world.ports, directory, execution=directory.ref, complete=side_by_side)
    return chain.to_the_result
