"""The undo of a job leaves what the other jobs in effect leave, or says truly why not (I6)."""

import random
import re
from collections import Counter

import pytest

from s3commit.core.model.errors import JobRefusedError
from tests.core.sequences import ALL, FAR, FEW, Sequence, What, Write


def tried(before: Sequence, what: What, ends: Counter[str]) -> Sequence | None:
    """The sequence with one job more; None, where that is refused."""
    said = (before.pace, *before.jobs, what)
    try:
        after = before.then(what)
    except JobRefusedError as error:
        assert isinstance(what, int)
        ends[error.code] += 1
        named = [int(one) for one in re.findall(r"(\d{8})-0000", error.message)]
        advised = (
            named[-1:] if error.message.endswith(("undo that one", "undo that one first")) else []
        )
        assert all(what < one and one in before.in_effect() for one in advised), (said, error)
        if error.code == "NOTHING_TO_UNDO":
            without = Sequence(jobs=(*before.jobs, what), places=before.places)
            is_none = what not in before.in_effect() or without.expected() == before.expected()
            assert is_none or advised, (said, error)
        else:
            assert error.code == "REPLACED_SINCE", (said, error)
            assert (before.pace < FAR) or advised, (said, error)
            assert advised or "can't tell" in error.message, (said, error)
        return None
    assert after.visible() == after.expected(), said
    ends["done" if isinstance(what, int) else "written"] += 1
    return after


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


@pytest.mark.parametrize(("writes", "length", "pace"), [(FEW, 6, FAR), (FEW, 5, 0), (ALL, 4, 0)])
def test_i6_all_short_sequences(writes: tuple[Write, ...], length: int, pace: int) -> None:
    """Of jobs that S3's clocks tell apart, and of those at one moment."""
    searched(writes, length, pace)


@pytest.mark.long
@pytest.mark.parametrize(("writes", "length", "pace"), [(FEW, 6, 0), (ALL, 5, FAR), (ALL, 5, 0)])
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
