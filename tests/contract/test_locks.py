"""The ledger's claims: what every implementation of them does."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from s3commit.core.model.locks import Claim, Claimed, LockMode
from s3commit.core.ports.ledger import Ledger
from tests.contract.conftest import PAGE, THREADS, at_once
from tests.contract.locking import MOMENT

NODE = "lake/table/"
MANY = 3 * PAGE


def claim(ledger: Ledger, node: str, ref: str = "job-1", mode: str = "X") -> Claimed:
    put = Claimed(Claim(node, LockMode(mode)), ref)
    ledger.put_claim(put)
    return put


def found(ledger: Ledger, node: str, mode: str = "X", *, below: bool = False) -> list[Claimed]:
    return list(ledger.claims(Claim(node, LockMode(mode)), below=below))


def test_a_node_that_nobody_claims_has_no_claims(ledger: Ledger) -> None:
    assert found(ledger, NODE) == found(ledger, NODE, below=True) == []


@pytest.mark.parametrize("mode", LockMode)
def test_a_claim_is_found_in_its_own_mode_alone(ledger: Ledger, mode: LockMode) -> None:
    put = claim(ledger, NODE, mode=mode)

    for other in LockMode:
        assert found(ledger, NODE, other) == ([put] if other is mode else [])


def test_i6_a_node_is_read_by_itself_and_with_what_lies_below(ledger: Ledger) -> None:
    nodes = ["lake/a/", "lake/a/b/", "lake/a/b/.", "lake/a/b/c/", "lake/a/b0/", "lake/a/b-/"]
    put = {node: claim(ledger, node) for node in nodes}

    assert found(ledger, "lake/a/") == [put["lake/a/"]]
    assert found(ledger, "lake/a/b/.") == [put["lake/a/b/."]]
    assert set(found(ledger, "lake/a/", below=True)) == set(put.values())
    below = found(ledger, "lake/a/b/", below=True)
    assert {one.claim.node for one in below} == {"lake/a/b/", "lake/a/b/.", "lake/a/b/c/"}


def test_a_prefix_of_a_name_is_another_node(ledger: Ledger) -> None:
    claim(ledger, "lake/data10/")
    claim(ledger, "lake/x/data10/")

    assert found(ledger, "lake/data1/", below=True) == []
    assert found(ledger, "lake/x/data1/", below=True) == []
    assert found(ledger, "lak/data10/", below=True) == []


def test_a_claim_is_put_again_and_says_then_whether_its_job_waits(ledger: Ledger) -> None:
    first = claim(ledger, NODE)
    assert not first.waits
    waits = Claimed(first.claim, first.ref, waits=True)

    ledger.put_claim(waits)
    assert found(ledger, NODE) == [waits]
    ledger.put_claim(first)
    assert found(ledger, NODE) == [first]


@pytest.mark.parametrize("stands", [3, 5])
def test_i6_a_claim_of_another_epoch_is_not_replaced_by_one_that_waits(
    ledger: Ledger, stands: int
) -> None:
    """A stalled try must not say of a job that holds that it waits."""
    holds = Claimed(Claim(NODE, LockMode.SHARED), "job-1", epoch=stands)
    ledger.put_claim(holds)
    ledger.put_claim(Claimed(holds.claim, "job-1", waits=True, asked=MOMENT, epoch=4))
    assert found(ledger, NODE, "S") == [holds]


def test_a_claim_is_replaced_by_one_of_a_later_epoch_and_by_none_of_an_earlier(
    ledger: Ledger,
) -> None:
    one, two = (Claimed(Claim(NODE, LockMode.SHARED), "job-1", epoch=epoch) for epoch in (1, 2))
    for put in (one, two, one):
        ledger.put_claim(put)
    assert found(ledger, NODE, "S") == [two]


def test_who_waits_is_put_nowhere_that_the_job_has_no_claim(ledger: Ledger) -> None:
    ledger.put_claim(Claimed(Claim(NODE, LockMode.SHARED), "job-1", True, MOMENT, 1))
    assert found(ledger, NODE, "S") == []


def test_who_waits_and_has_asked_later_is_left_out_if_that_is_asked_for(ledger: Ledger) -> None:
    earlier, later = "2026-11-21T21:59:59.999Z", "2026-11-21T22:00:00.001Z"
    asked = {"before": earlier, "at-once": MOMENT, "after": later}
    for ref, moment in asked.items():
        first = claim(ledger, NODE, ref, "S")
        ledger.put_claim(Claimed(first.claim, ref, waits=True, asked=moment))
    claim(ledger, f"{NODE}p/", "holds", "S")
    everything = found(ledger, NODE, "S", below=True)
    assert {one.ref for one in everything} == {*asked, "holds"}
    some = ledger.claims(Claim(NODE, LockMode.SHARED), below=True, asked=MOMENT)
    assert list(some) == [one for one in everything if one.ref != "after"]


def test_who_drops_a_claim_drops_its_own(ledger: Ledger) -> None:
    for ref in ("job-1", "job-10"):
        claim(ledger, NODE, ref)
    other = claim(ledger, NODE, mode="S")

    for _ in range(2):
        ledger.drop_claim("job-1", Claim(NODE, LockMode.EXCLUSIVE))

    assert [one.ref for one in found(ledger, NODE)] == ["job-10"]
    assert found(ledger, NODE, "S") == [other]


@pytest.mark.parametrize(
    "node",
    [
        "lake/table/dt=2026-11-21/länd=語/",
        "lake/a b+c%20/#x/",
        "lake/table/.",
        f"lake/table/?once={'0f' * 32}",
        f"{'b' * 63}/{'x' * 800}/",
        f"{'b' * 63}/{'ä/' * 266}?once={'0f' * 32}",
    ],
)
def test_a_node_has_whatever_name_a_prefix_may_have(ledger: Ledger, node: str) -> None:
    put = claim(ledger, node, f"{'0' * 36}-{'f' * 16}")

    assert found(ledger, node) == [put]


def test_pages_of_jobs_claim_a_node(ledger: Ledger) -> None:
    jobs = [f"{number:08d}-0000-4000-8000-000000000000" for number in range(MANY)]
    for ref in jobs:
        claim(ledger, NODE, ref, "S")

    assert [one.ref for one in found(ledger, NODE, "S")] == jobs


def test_i6_a_claim_that_was_put_is_seen_by_whoever_reads_then(ledger: Ledger) -> None:
    """Each puts its own and reads: of any two at least one sees the other."""

    def put_and_read(ref: str) -> set[str]:
        claim(ledger, NODE, ref)
        return {one.ref for one in found(ledger, NODE)}

    jobs = [f"job-{number}" for number in range(THREADS)]
    seen: list[Any] = at_once([partial(put_and_read, ref) for ref in jobs])

    for number, one in enumerate(jobs):
        for other in range(number):
            assert one in seen[other] or jobs[other] in seen[number]
