"""I6 as a model: the visible files are those of one serial order of the jobs.

Each move is one request of one job, so every interleaving is searched to the end. A job that stops
for ever between two moves is part of every order, and a repeated step reads again from its start.
The model has what the other searches are too large for: four jobs, several partitions, and readings
of the ledger that take several requests.

Where jobs have an order of their requests, that is the order of those that replace the same. Each
may then lose its execution at any move before its decision, and be resumed at any later one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, permutations

import pytest

Files = frozenset[tuple[str, str]]  # directory, job
SEAL, LOCK, BELOW, OVERTAKEN, LOOK, LIST, LEAVE, DECIDED = range(8)  # moves of one that replaces
END = 99


@dataclass(frozen=True)
class Job:
    """It writes a file to each of ``files``; one that replaces locks ``nodes``, and lists them.

    ``asked`` is the place of its request, 0 if there is no order. It may lock ``wider`` in place of
    the nodes, as one does that has waited for long. Its execution may be lost if it ``dies``.
    """

    name: str
    files: tuple[str, ...]
    nodes: tuple[str, ...] = ()
    asked: int = 0
    wider: tuple[str, ...] = ()
    dies: bool = False


@dataclass(frozen=True)
class Rules:
    """What may be left out, to see that the search finds it."""

    looks_below: bool = True
    leaves_appends: bool = True
    reads_until_two_agree: bool = True
    asks_after_listing: bool = True
    waits_for_its_turn: bool = True
    refuses_overtaken: bool = True
    looks_with_its_locks: bool = True


@dataclass(frozen=True)
class Read:
    """What a job that replaces has read since it began to look."""

    readings: tuple[frozenset[str], ...] = ()  # who had ended, by each whole reading
    part: frozenset[str] = frozenset()  # by the reading that is under way
    seen: Files = frozenset()
    removes: Files = frozenset()


@dataclass(frozen=True)
class State:
    at: tuple[int, ...]
    visible: Files = frozenset()
    decided: frozenset[str] = frozenset()  # appends, listed until long after their end
    ended: frozenset[str] = frozenset()
    locks: Files = frozenset()  # node, job
    read: tuple[Read, ...] = ()
    lost: frozenset[str] = frozenset()  # no execution works on them now
    excused: frozenset[str] = frozenset()  # lost once, or taken up after a later one had locked
    done: frozenset[tuple[int, str]] = frozenset()  # request, node: of those that are committed
    refused: frozenset[str] = frozenset()


def meets(node: str, other: str) -> bool:
    return node.startswith(other) or other.startswith(node)


class World:
    """Every state that the jobs can reach."""

    def __init__(self, jobs: list[Job], rules: Rules) -> None:
        self.jobs, self.rules = jobs, rules
        self.appends = [job.name for job in jobs if not job.nodes]

    def explore(self) -> Iterator[State]:
        first = State((0,) * len(self.jobs), read=(Read(),) * len(self.jobs))
        seen, todo = {first}, [first]
        while todo:
            state = todo.pop()
            yield state
            following = {
                reached for number in range(len(self.jobs)) for reached in self.moves(state, number)
            }
            todo += following - seen
            seen |= following

    def moves(self, state: State, number: int) -> Iterator[State]:
        job = self.jobs[number]
        return (self._replace if job.nodes else self._append)(state, number, job)

    def _append(self, state: State, number: int, job: Job) -> Iterator[State]:
        at = state.at[number]
        if at == 0:
            yield _on(state, number, decided=state.decided | {job.name})
        elif at <= len(job.files):
            shown = state.visible | {(job.files[at - 1], job.name)}
            yield _on(state, number, visible=shown)
        elif at == len(job.files) + 1:
            yield _on(state, number, ended=state.ended | {job.name})

    def _replace(self, state: State, number: int, job: Job) -> Iterator[State]:
        at, read = state.at[number], state.read[number]
        others = [node for node, holder in state.locks if holder != job.name]
        if job.name in state.lost:
            again = replace(state, lost=state.lost - {job.name})
            yield _to(again, number, LOCK, read=Read())  # from the start, with its locks
            return
        if job.dies and SEAL < at < DECIDED and job.name not in state.excused:
            excused = state.excused | {job.name}
            yield replace(state, lost=state.lost | {job.name}, excused=excused)
        if at == SEAL:
            asked = {one.name: one.asked for one in self.jobs}
            taken = {(asked[name], node) for node, name in state.locks} | state.done
            late = self._is_met(job, taken)
            excused = state.excused | ({job.name} if late else set())
            yield _on(state, number, excused=excused)
        elif at == LOCK:
            yield from self._lock(state, number, job, others)
        elif at == BELOW:
            mine = [node for node, holder in state.locks if holder == job.name]
            below = any(lock.startswith(tuple(mine)) for lock in others)
            if not (below and self.rules.looks_below):
                yield _on(state, number)
        elif at == OVERTAKEN:
            if self._is_overtaken(state, job) and self.rules.looks_with_its_locks:
                yield self._refuse(state, number, job)
            else:
                yield _on(state, number)
        elif at == LOOK:
            yield from self._look(state, number, read)
        elif at == LIST:
            seen = {one for one in state.visible if one[0].startswith(job.nodes)}
            yield _on(state, number, read=replace(read, seen=frozenset(seen)))
        elif at == LEAVE:  # asked after the listing: who has been decided, and had not ended then
            known = state.decided if self.rules.asks_after_listing else frozenset[str]()
            leave = known - read.readings[-1] if self.rules.leaves_appends else frozenset[str]()
            removes = frozenset(one for one in read.seen if one[1] not in leave)
            yield _on(state, number, read=replace(read, removes=removes))
        elif at < DECIDED + len(job.files):
            shown = state.visible | {(job.files[at - DECIDED], job.name)}
            yield _on(state, number, visible=shown)
        elif at == DECIDED + len(job.files):
            yield _on(state, number, visible=state.visible - read.removes)
        elif at == DECIDED + len(job.files) + 1:
            done = {(job.asked, node) for node, holder in state.locks if holder == job.name}
            locks = frozenset(one for one in state.locks if one[1] != job.name)
            ended = state.ended | {job.name}
            yield _on(state, number, ended=ended, locks=locks, done=state.done | done)

    def _lock(self, state: State, number: int, job: Job, others: list[str]) -> Iterator[State]:
        """One transaction: all locks, unless one stands at a node or above; those it has stay."""
        if any(holder == job.name for _, holder in state.locks):
            yield _on(state, number)
            return
        if self._is_overtaken(state, job) and not self.rules.looks_with_its_locks:
            yield self._refuse(state, number, job)
            return
        for nodes in filter(None, (job.nodes, job.wider)):
            waits = self.rules.waits_for_its_turn and any(
                SEAL < state.at[other] < DECIDED and theirs.name not in {*state.lost, *state.ended}
                for other, theirs in self._earlier(job, nodes)
            )
            if not waits and not any(node.startswith(lock) for node in nodes for lock in others):
                yield _on(state, number, locks=state.locks | {(node, job.name) for node in nodes})

    def _earlier(self, job: Job, nodes: tuple[str, ...]) -> Iterator[tuple[int, Job]]:
        """The jobs that replace the same and were requested earlier."""
        for number, other in enumerate(self.jobs):
            is_earlier = 0 < other.asked < job.asked
            if is_earlier and any(meets(a, b) for a in nodes for b in other.nodes):
                yield number, other

    def _is_overtaken(self, state: State, job: Job) -> bool:
        return self._is_met(job, state.done) and self.rules.refuses_overtaken

    def _is_met(self, job: Job, taken: Iterable[tuple[int, str]]) -> bool:
        later = [node for asked, node in taken if asked > job.asked > 0]
        return any(meets(node, own) for node in later for own in job.nodes)

    def _refuse(self, state: State, number: int, job: Job) -> State:
        locks = frozenset(one for one in state.locks if one[1] != job.name)
        ended, refused = state.ended | {job.name}, state.refused | {job.name}
        return _to(state, number, END, locks=locks, ended=ended, refused=refused)

    def _look(self, state: State, number: int, read: Read) -> Iterator[State]:
        """One request of a reading: the appends of one half, each as it is then."""
        pages = 2 * len(read.readings) + (1 if read.part else 0)
        half = set(self.appends[pages % 2 :: 2])
        # "" marks that the first half is read, whoever is in it.
        part = read.part | (state.ended & half) | {""}
        if not read.part:
            yield _stay(state, number, replace(read, part=frozenset(part)))
            return
        found = frozenset(part - {""})
        agree = bool(read.readings) and found <= read.readings[-1]
        if agree or not self.rules.reads_until_two_agree:
            before = read.readings[-1] if agree else found
            yield _on(state, number, read=Read((before,)))
        else:
            yield _stay(state, number, Read((found,)))


def _on(state: State, number: int, *, read: Read | None = None, **changes: object) -> State:
    return _to(state, number, state.at[number] + 1, read=read, **changes)


def _to(
    state: State, number: int, place: int, *, read: Read | None = None, **changes: object
) -> State:
    at = (*state.at[:number], place, *state.at[number + 1 :])
    if read is not None:
        changes["read"] = (*state.read[:number], read, *state.read[number + 1 :])
    return replace(state, at=at, **changes)  # type: ignore[arg-type]


def _stay(state: State, number: int, read: Read) -> State:
    return replace(state, read=(*state.read[:number], read, *state.read[number + 1 :]))


def in_order(jobs: tuple[Job, ...]) -> bool:
    """Whether those that replace the same stand as they were requested."""
    return all(
        earlier.asked <= later.asked or not later.asked
        for earlier, later in combinations(jobs, 2)
        if any(meets(a, b) for a in earlier.nodes for b in later.nodes)
    )


def serial(jobs: list[Job], visible: Files) -> bool:
    """Whether some order of the jobs, one after the other, leaves these files."""
    for order in filter(in_order, permutations(jobs)):
        files: set[tuple[str, str]] = set()
        for job in order:
            files = {one for one in files if not (job.nodes and one[0].startswith(job.nodes))}
            files |= {(directory, job.name) for directory in job.files}
        if files == visible:
            return True
    return False


def verdict(jobs: list[Job], rules: Rules = Rules()) -> set[str]:
    """What goes wrong in some interleaving: nothing should."""
    world, wrong = World(jobs, rules), set()
    for state in world.explore():
        past = [
            job
            for job, at in zip(jobs, state.at, strict=True)
            if job.nodes and OVERTAKEN <= at < DECIDED + len(job.files) + 2
        ]
        if any(
            one is not other and any(meets(a, b) for a in one.nodes for b in other.nodes)
            for one in past
            for other in past
        ):
            wrong.add("two that replace the same are under way")
        if state.refused - state.excused:
            wrong.add("one that lived was overtaken")
        if not any(True for number in range(len(jobs)) for _ in world.moves(state, number)):
            committed = [job for job in jobs if job.name not in state.refused]
            if len(state.ended) < len(jobs):
                wrong.add("nobody moves")
            elif not serial(committed, state.visible):
                wrong.add("no serial order")
    return wrong


WORLDS = {
    "two replace, one appends": [
        Job("r1", ("a/b/",), ("a/",)),
        Job("r2", ("a/c/",), ("a/",)),
        Job("x", ("a/b/", "a/c/")),
    ],
    "one replaces all, one a part, two append": [
        Job("r1", ("a/b/", "a/c/"), ("a/",)),
        Job("r2", ("a/b/",), ("a/b/",)),
        Job("x", ("a/b/", "a/c/")),
        Job("y", ("a/b/",)),
    ],
    "three replace several partitions": [
        Job("r1", ("a/b/", "a/c/"), ("a/b/", "a/c/")),
        Job("r2", ("a/c/", "a/d/"), ("a/c/", "a/d/")),
        Job("r3", ("a/b/",), ("a/",)),
    ],
    "three replace, one inside the other": [
        Job("r1", ("a/b/",), ("a/",)),
        Job("r2", ("a/b/",), ("a/b/",)),
        Job("r3", ("a/b/c/",), ("a/b/c/",)),
    ],
    "crosswise": [
        Job("r1", ("a/",), ("a/", "b/c/")),
        Job("r2", ("b/",), ("b/", "a/c/")),
    ],
    "two replace a part each, two append to both": [
        Job("r1", ("a/b/",), ("a/b/",)),
        Job("r2", ("a/c/",), ("a/c/",)),
        Job("x", ("a/b/", "a/c/")),
        Job("y", ("a/b/", "a/c/")),
    ],
    "an old one comes back, one appends": [
        Job("r1", ("a/b/",), ("a/",), asked=1, dies=True),
        Job("r2", ("a/b/",), ("a/b/",), asked=2),
        Job("x", ("a/b/",)),
    ],
    "three in order, one inside the other, any may die": [
        Job("r1", ("a/b/",), ("a/b/",), asked=1, dies=True),
        Job("r2", ("a/b/",), ("a/",), asked=2, dies=True),
        Job("r3", ("a/b/c/",), ("a/b/c/",), asked=3, dies=True),
    ],
    "partitions in order, one locks all of them": [
        Job("r1", ("a/b/",), ("a/b/",), asked=1, dies=True),
        Job("r2", ("a/c/",), ("a/c/",), asked=2, wider=("a/",)),
        Job("r3", ("a/b/", "a/c/"), ("a/b/", "a/c/"), asked=3),
    ],
}


@pytest.mark.parametrize("name", WORLDS)
def test_i6_whatever_the_order_of_the_requests_the_files_are_those_of_one_order_of_the_jobs(
    name: str,
) -> None:
    assert verdict(WORLDS[name]) == set()


@pytest.mark.parametrize(
    ("rules", "world", "found"),
    [
        (
            Rules(looks_below=False),
            "three replace, one inside the other",
            "two that replace the same are under way",
        ),
        (Rules(leaves_appends=False), "two replace, one appends", "no serial order"),
        (Rules(asks_after_listing=False), "two replace, one appends", "no serial order"),
        (
            Rules(reads_until_two_agree=False),
            "two replace a part each, two append to both",
            "no serial order",
        ),
        (Rules(refuses_overtaken=False), "an old one comes back, one appends", "no serial order"),
        (
            Rules(looks_with_its_locks=False),
            "three in order, one inside the other, any may die",
            "no serial order",
        ),
        (
            Rules(waits_for_its_turn=False),
            "partitions in order, one locks all of them",
            "one that lived was overtaken",
        ),
    ],
)
def test_without_one_of_its_rules_the_search_finds_what_goes_wrong(
    rules: Rules, world: str, found: str
) -> None:
    assert found in verdict(WORLDS[world], rules)
