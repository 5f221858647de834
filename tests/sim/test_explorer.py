"""The small worlds, each explored to its last state (docs/proof.md)."""

from dataclasses import replace

import pytest

from s3commit.core.commit import acquire_destination, decide_commit
from s3commit.core.jobs.replaced import Appends
from tests.engines.explorer.explorer import Explorer
from tests.engines.explorer.worlds import EVERYDAY, LONG
from tests.engines.sim.scheduler import Violation


@pytest.mark.parametrize(
    "name", [*EVERYDAY, *(pytest.param(name, marks=pytest.mark.long) for name in LONG)]
)
def test_i1_to_i6_i9_to_i11_in_every_state_of_a_small_world(name: str) -> None:
    explorer = Explorer({**EVERYDAY, **LONG}[name])
    explorer.run()
    print(f"{name}: {explorer.states} states, {explorer.moves} moves, {explorer.ends}")
    assert explorer.states > 500
    assert all(set(end.split()) <= {"COMMITTED", "ABORTED", "ROLLED_BACK"} for end in explorer.ends)


@pytest.mark.parametrize(
    ("world", "found"),
    [
        ("replace beside replace", "I6: both jobs are under way"),
        ("replace beside append", "I6: .* no order of the jobs leaves them"),
    ],
)
def test_the_explorer_sees_a_bug(world: str, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks that nobody takes, and appends that are not left alone."""
    monkeypatch.setattr(acquire_destination, "nodes_to_lock", lambda *_args: ())
    monkeypatch.setattr(decide_commit, "bool", lambda _: True, raising=False)
    monkeypatch.setattr(Appends, "to_leave", lambda _self: {})
    with pytest.raises(Violation, match=found):
        Explorer(replace({**EVERYDAY, **LONG}[world], zombies=False)).run()
