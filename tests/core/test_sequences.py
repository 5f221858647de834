"""The undo of a job leaves what the other jobs in effect leave, or says truly why not (I6)."""

import random
import re
from collections import Counter
from itertools import product
from operator import invert

import pytest

from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import JobRefusedError
from tests.core.sequences import ALL, FAR, FEW, LOW, Sequence, What, Write


def tried(before: Sequence, what: What, ends: Counter[str]) -> Sequence | None:
    """The sequence with one job more; None, where that is refused."""
    said = (before.pace, *before.jobs, what)
    try:
        after = before.then(what)
    except JobRefusedError as error:
        assert isinstance(what, int)
        ends[error.code] += 1
        advised = to_undo(error)
        assert all(what < one and one in before.in_effect() for one in advised), (said, error)
        if error.code == "NOTHING_TO_UNDO":
            without = Sequence(jobs=(*before.jobs, what), places=before.places)
            is_none = what not in before.in_effect() or without.expected() == before.expected()
            assert is_none or advised, (said, error)
        else:
            assert error.code == "REPLACED_SINCE", (said, error)
            assert advised or AGAIN in error.message or LEAVE in error.message, (said, error)
        return None
    assert after.visible() == after.expected(), said
    ends["done" if isinstance(what, int) else "written"] += 1
    return after


AGAIN = "write it again"
LEAVE = "leave_removed=True"


def to_undo(error: JobRefusedError) -> list[int]:
    """The job that the line says to undo, if it does."""
    found = re.search(r"(\d{8})-\S+ (took that back: undo that one$|of \S+ first\.)", error.message)
    return [int(found[1])] if found else []


def walk(before: Sequence, writes: tuple[Write, ...], length: int, ends: Counter[str]) -> None:
    """All sequences that go on from there; the last job of each is an undo."""
    for what in before.steps(writes):
        if length > 1 or isinstance(what, int):
            after = tried(before, what, ends)
            if after is not None and length > 1:
                walk(after, writes, length - 1, ends)


def searched(writes: tuple[Write, ...], length: int, pace: int) -> None:
    ends = Counter[str]()
    walk(Sequence(pace), writes, length, ends)
    assert min(ends[one] for one in ("done", "NOTHING_TO_UNDO", "REPLACED_SINCE")) > 100, ends


@pytest.mark.parametrize(("writes", "length", "pace"), [(FEW, 5, FAR), (FEW, 5, 0), (ALL, 4, 0)])
def test_i6_all_short_sequences(writes: tuple[Write, ...], length: int, pace: int) -> None:
    """Of jobs that S3's clocks tell apart, and of those at one moment."""
    searched(writes, length, pace)


def test_i6_undos_of_undos_of_two_jobs() -> None:
    for two in product(FEW, repeat=2):
        walk(Sequence(FAR).then(two[0]).then(two[1]), (), 4, Counter())


@pytest.mark.long
@pytest.mark.parametrize("pace", [FAR, 0])
@pytest.mark.parametrize(("writes", "length"), [(FEW, 6), (ALL, 5)])
def test_i6_more_sequences(writes: tuple[Write, ...], length: int, pace: int) -> None:
    searched(writes, length, pace)


@pytest.mark.long
@pytest.mark.parametrize("pace", [FAR, 3, 0])
def test_i6_random_long_sequences(pace: int) -> None:
    ends = Counter[str]()
    for seed in range(3_000):
        rng, sequence = random.Random(seed), Sequence(pace)
        for _ in range(15):
            what = rng.choice([rng.choice(ALL), *range(len(sequence.jobs))])
            sequence = tried(sequence, what, ends) or sequence
    assert min(ends[one] for one in ("done", "NOTHING_TO_UNDO", "REPLACED_SINCE")) > 1000, ends


CIRCLE = 15  # jobs: who has followed that many lines would never come to an end


def follow(before: Sequence, what: int, ways: Counter[str]) -> Sequence | None:
    """The undo, done by what the lines say; None, where they say that it can't be."""
    assert len(before.jobs) < CIRCLE, before.jobs
    try:
        return before.then(what)
    except JobRefusedError as error:
        said = (*before.jobs, what, error.message)
        for first in to_undo(error):
            after = follow(before, first, ways)
            assert after is not None, said
            done = follow(after, what, ways)
            assert done is not None, said
            ways["undo first"] += 1
            return done
        has_files = LEAVE in error.message
        assert has_files != (AGAIN in error.message) or error.code == "NOTHING_TO_UNDO", said
        if has_files:
            assert before.then(~what), said
        ways[LEAVE if has_files else AGAIN] += 1
        return None


def walk_advised(
    before: Sequence, writes: tuple[Write, ...], length: int, ways: Counter[str]
) -> None:
    for what in (*before.steps(writes), *map(invert, range(len(before.jobs)))):
        try:
            after = before.then(what)
        except JobRefusedError as error:
            assert isinstance(what, int)
            if what >= 0 and error.code == "REPLACED_SINCE":
                follow(before, what, ways)
        else:
            if length > 1:
                walk_advised(after, writes, length - 1, ways)


TINY = (Write(LOW, ("",)), Write(LOW, ("",), Conflict.REPLACE), Write(LOW, (), Conflict.REPLACE))


@pytest.mark.parametrize(
    ("writes", "length"),
    [
        (TINY, 5),
        *(pytest.param(*more, marks=pytest.mark.long) for more in ((TINY, 6), (FEW, 5), (ALL, 4))),
    ],
)
def test_i6_what_a_refused_undo_advises_leads_to_it_or_is_another_way(
    writes: tuple[Write, ...], length: int
) -> None:
    """Also where an undo before has left what its job replaced removed."""
    ways = Counter[str]()
    walk_advised(Sequence(), writes, length, ways)
    assert min(ways[one] for one in ("undo first", AGAIN)) > 20, ways
