"""The small worlds, each explored to its last state (docs/proof.md)."""

from __future__ import annotations

import pytest

from s3commit.core.model import locks
from s3commit.core.model.locks import LockMode
from tests.engines.explorer.explorer import Explorer
from tests.engines.explorer.worlds import EVERYDAY, LONG, explore, units_of_one_file
from tests.engines.sim.scheduler import Violation


@pytest.mark.parametrize(
    "name", [*EVERYDAY, *(pytest.param(name, marks=pytest.mark.long) for name in LONG)]
)
def test_i1_to_i6_i9_to_i11_in_every_state_of_a_small_world(name: str) -> None:
    explorer = explore({**EVERYDAY, **LONG}[name])
    print(f"{name}: {explorer.states} states, {explorer.moves} moves, {explorer.ends}")
    assert explorer.states > 500
    assert all(set(end.split()) <= {"COMMITTED", "ABORTED", "ROLLED_BACK"} for end in explorer.ends)


def test_the_explorer_sees_what_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """With locks that stand beside each other two jobs replace one destination together."""
    everything = frozenset(LockMode)
    monkeypatch.setattr(locks, "COMPATIBLE", dict.fromkeys(LockMode, everything))
    with units_of_one_file(), pytest.raises(Violation, match="I6: both jobs are under way"):
        Explorer(EVERYDAY["replace beside replace"]).run()
