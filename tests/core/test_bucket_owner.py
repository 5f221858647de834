"""A bucket has one pipeline: another one stops, says whose the bucket is, and can take it over."""

from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from s3commit.core.commit.note_arrivals import note_job
from s3commit.core.documents.bucket_owner import OWNER, Owner, check_owner, read_owner
from s3commit.core.jobs.healing import heal
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import AccessError, NeedsOperatorError
from s3commit.core.model.outcome import Outcome
from s3commit.core.ports.bundle import Ports
from tests.core.enumerated import every_point
from tests.core.world import BUCKET, NEIGHBOUR, OTHER_JOB, World, job_directory
from tests.fakes.execution import run_execution
from tests.fakes.faults import FaultPlan
from tests.fakes.memory import MemoryLedger

ARN = "arn:aws:dynamodb:eu-central-1:123456789012:table/{}"
A, B = (Owner(BUCKET, ARN.format(name)) for name in ("a", "b"))
# As of a bucket that is replicated here.
COPY = b'{"version":1,"bucket":"another-lake","ledger":"arn:c"}'
OF_B = b'{"version":1,"bucket":"lake","ledger":"%s"}' % B.ledger.encode()


def of(
    world: World, owner: Owner, ledger: MemoryLedger | None = None, *, claims: bool = True
) -> Ports:
    """The functions of a deployment that has that ledger."""
    check = partial(check_owner, world.store, owner, claims=claims)
    ledger = ledger or world.ledger
    return replace(world.unplanned, ledger=ledger, check_owner=lambda _bucket: check())


@pytest.mark.parametrize("claims", [True, False])
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (None, None),
        (OF_B.replace(B.ledger.encode(), A.ledger.encode()), None),
        (COPY, None),
        (OF_B, "OTHER_OWNER"),
        (b"{", "PAGE_CHANGED"),
        (OF_B.replace(B.ledger.encode(), b""), "PAGE_CHANGED"),
        (b" " * 17_000 + OF_B, "PAGE_CHANGED"),
    ],
)
def test_who_may_work_in_a_bucket(body: bytes | None, code: str | None, *, claims: bool) -> None:
    world = World()
    if body is not None:
        world.store.put(BUCKET, OWNER, body)
    try:
        is_ours = check_owner(world.store, A, claims=claims)
    except NeedsOperatorError as error:
        assert error.code == code
        assert (B.ledger in error.message and A.ledger in error.message) is (body == OF_B)
    else:
        assert code is None
        assert is_ours == (claims or body not in {None, COPY})
    if code or not claims:  # it stays as it was
        there = world.store.get(BUCKET, OWNER, max_bytes=20_000).body if body else None
        assert there == body
    else:
        assert read_owner(world.store, BUCKET)[0] == A


def test_an_owner_behind_a_key_that_is_gone_can_be_deleted_and_the_job_goes_on() -> None:
    world, directory = World(), job_directory()
    check_owner(world.store, A, claims=True)
    denied = AccessError("KMS.DisabledException")
    world.plan.fail("get", denied, times=None, where=lambda call: call.key == OWNER)
    check = partial(check_owner, world.ports.store, A, claims=True)
    world.request(directory, world.attempt(directory, "t0"))
    with pytest.raises(AccessError, match=f"KMS key of .*{OWNER} was deleted, delete it"):
        run_execution(replace(world.ports, check_owner=lambda _bucket: check()), directory)
    world.store.delete(BUCKET, OWNER)
    run_execution(of(world, A), directory)
    assert world.ended(directory)[0] is Outcome.COMMITTED


def test_of_two_that_take_a_bucket_at_once_one_gets_it_and_one_whose_answer_is_lost_too() -> None:
    for owner, raced in ((A, B), (B, B)):
        world = World()
        faster = partial(world.store.put, BUCKET, OWNER, OF_B)
        world.plan.run_before("put", faster)
        take = partial(check_owner, world.ports.store, owner, claims=True)
        if owner == raced:
            take()
        else:
            with pytest.raises(NeedsOperatorError, match="belongs to the deployment"):
                take()
        assert world.plan.fired
        assert read_owner(world.store, BUCKET)[0] == raced


@pytest.mark.parametrize("was_first", [False, True], ids=["new", "saw an event before any owner"])
def test_a_bucket_is_handed_over_by_the_runbook_to_a_deployment_with_an_empty_ledger(
    was_first: bool,
) -> None:
    """Until then the other one decides nothing; then it knows what was committed, and the old one
    stops."""
    world, later = World(), job_directory(OTHER_JOB)
    ledger = MemoryLedger(world.clock)
    old, new = of(world, A), of(world, B, ledger)
    world.ask(job_directory(), idempotency_key="day-1")
    if was_first:
        note_job(of(world, B, ledger, claims=False), BUCKET, job_directory().job)
    assert heal(old, BUCKET) == 0, "an empty bucket, though it has an owner"
    run_execution(old, job_directory())
    world.ask(later, idempotency_key="day-1")
    for refused in (
        lambda: heal(new, BUCKET),
        lambda: note_job(new, BUCKET, later.job),
        lambda: run_execution(new, later),
    ):
        with pytest.raises(NeedsOperatorError) as stopped:
            refused()
        assert stopped.value.code == "OTHER_OWNER"
    assert ledger.job(later.ref) is None
    assert not ledger.healing(BUCKET, now=world.clock.now()).whole

    world.store.delete(BUCKET, OWNER)  # what the runbook says
    while pause := heal(new, BUCKET):
        world.clock.advance(pause)
    known = ledger.job(job_directory().ref)
    assert known is not None and known.state == "COMMITTED"
    run_execution(new, later)
    assert world.result(later).already_committed
    world.ask(job_directory(NEIGHBOUR))
    with pytest.raises(NeedsOperatorError, match=f"ledger {B.ledger}"):
        run_execution(old, job_directory(NEIGHBOUR))
    run_execution(new, job_directory(NEIGHBOUR))
    assert world.result(job_directory(NEIGHBOUR)).outcome == "COMMITTED"


def test_i6_i8_an_execution_of_the_old_owner_decides_nothing_any_more() -> None:
    """At whichever call the bucket becomes another's; a call that decides already is waited for."""

    def check(point: int) -> FaultPlan:
        world, plan, directory = World(), FaultPlan(), job_directory()
        store, ledger = plan.wrap(world.store), plan.wrap(world.ledger)
        owning = partial(check_owner, store, A, claims=True)
        ports = Ports(store, ledger, world.clock, check_owner=lambda _bucket: owning())
        undecided: list[bool] = []

        def is_undecided() -> bool:
            known = world.ledger.job(directory.ref)
            return known is None or known.decided_at is None

        def handed_over() -> None:
            world.store.put(BUCKET, OWNER, OF_B)
            undecided.append(is_undecided())

        plan.run_before(None, handed_over, nth=point)
        world.ask(directory, conflict=Conflict.REPLACE)
        with suppress(NeedsOperatorError):
            run_execution(ports, directory, alone=True)
        if undecided == [True] and plan.fired[0].verb != "decide":
            assert is_undecided()
            assert world.visible() == {}
        return plan

    every_point(check)
