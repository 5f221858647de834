"""Which jobs are undone, by the pairs of undo and job alone."""

from itertools import permutations

import pytest

from s3commit.core.jobs.past_commits import undone_by

# Undo and job: a chain, two undos of one job of which one is undone, and a stranger's circle.
CASES = {
    "chain": ([("b", "a"), ("c", "b"), ("d", "c")], {"c": "d", "a": "b"}),
    "even chain": ([("b", "a"), ("c", "b")], {"b": "c"}),
    "undone and undone again": ([("b", "a"), ("c", "b"), ("d", "a")], {"b": "c", "a": "d"}),
    "two tables": ([("b", "a"), ("y", "x")], {"a": "b", "x": "y"}),
}


ORDERS = [(name, order) for name, (undos, _) in CASES.items() for order in permutations(undos)]


@pytest.mark.parametrize(("name", "undos"), ORDERS)
def test_i6_the_order_of_the_commits_does_not_say_what_is_undone(
    name: str, undos: tuple[tuple[str, str], ...]
) -> None:
    assert undone_by(undos) == CASES[name][1]


def test_a_long_chain_and_a_circle_of_a_stranger_have_an_end() -> None:
    chain = [(number + 1, number) for number in range(100_001)]
    assert undone_by(chain) == {even: even + 1 for even in range(0, 100_002, 2)}
    assert len(undone_by([("b", "a"), ("a", "b")])) == 1
    assert undone_by([("a", "a")]) == {}
