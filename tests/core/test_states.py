"""The table of states; tests/contract/test_ledger.py has what a ledger makes of it."""

from __future__ import annotations

from s3commit.core.model.states import ENDED, TRANSITIONS, JobState


def test_every_state_can_be_reached_and_can_end() -> None:
    reached, frontier = {JobState.OPEN}, [JobState.OPEN]
    while frontier:
        for following in TRANSITIONS[frontier.pop()] - reached:
            reached.add(following)
            frontier.append(following)
    assert reached == set(JobState)
    assert {JobState.COMMITTED, JobState.ABORTED, JobState.ROLLED_BACK} == ENDED
