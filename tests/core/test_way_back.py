"""An undo of a committed job: what it removes and brings back (I2, I5, I6)."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from s3commit.core.commit.note_arrivals import note_job
from s3commit.core.documents import commit_manifest
from s3commit.core.documents.commit_manifest import read_commit_header
from s3commit.core.fsck import check
from s3commit.core.jobs import healing
from s3commit.core.jobs.idempotency import hinted_job, note_key
from s3commit.core.jobs.past_commits import undone_by
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.errors import (
    InvalidInputError,
    JobFailedError,
    JobRefusedError,
    S3CommitError,
)
from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.model.locks import key_digest
from s3commit.core.model.outcome import Outcome
from s3commit.core.undo.back_to import plan_way_back
from s3commit.core.undo.job import plan_undo
from s3commit.writer import undo as undoing
from tests.core.enumerated import Run, every_order
from tests.core.test_check import SALES
from tests.core.way_back import OPTIONS, PARTITIONS, REPLACE, Table, code_of
from tests.core.world import World, job_directory
from tests.fakes.execution import run_execution
from tests.fakes.faults import Call, FaultPlan
from tests.writer.support import fake_id


def step(table: Table, rng: random.Random, refused: Counter[str]) -> None:
    some = rng.sample(PARTITIONS, rng.randint(1, 2))
    key = rng.choice(["a", "b", None, None])
    match rng.randrange(10):
        case 0 | 1:
            table.write(*some, key=key)
        case 2:
            table.write(*some[:1], conflict=Conflict.REPLACE, key=key)
        case 3:
            table.write(*some[:1], conflict=Conflict.REPLACE, scope=Scope.PARTITION)
        case 4:
            conflict = rng.choice([Conflict.APPEND, Conflict.REPLACE])
            table.write("", conflict=conflict, place=f"sales/{some[0]}")
        case _ if table.jobs:
            known = [job for job, *_ in table.jobs] + list(table.undone.values())
            before = table.world.visible()
            try:
                table.undo(rng.choice(known))
            except S3CommitError as error:
                refused[str(error.code)] += 1
                assert isinstance(error, JobRefusedError | JobFailedError)
                assert table.world.visible() == before
            else:
                refused["done"] += 1


@pytest.mark.parametrize(
    "seeds", [range(30), pytest.param(range(30, 120), marks=pytest.mark.long)], ids=str
)
def test_i6_what_stands_is_what_a_replay_without_the_undone_jobs_gives(seeds: range) -> None:
    """Appends, overwrites of the table, of partitions and of tables inside, undos and their undos.

    An undo is taken whole or refused; what it leaves is as if the job had never been.
    """
    refused = Counter[str]()
    for seed in seeds:
        rng = random.Random(seed)
        table = Table(pace=rng.choice([0, 2 * S3_CLOCKS]))
        for number in range(12):
            step(table, rng, refused)
            assert table.visible() == table.replayed(), (seed, number)
            report = check(table.world.store, None, map, SALES)
            assert report.is_sound or not table.pace, (seed, number, report.findings)
        assert not table.world.open_uploads()
    assert refused["done"] > 2 * len(seeds), refused
    keys = {"ALREADY_COMMITTED", "KEY_TAKEN"}  # of an undo's undo, when the key has a new job
    assert refused.keys() - keys == {"done", "NOTHING_TO_UNDO", "REPLACED_SINCE"}, refused


def test_the_removed_stays_removed_if_one_says_so() -> None:
    table = Table(World())  # a bucket that keeps no versions
    table.write("dt=1/")
    over = table.write("dt=1/", **REPLACE)
    assert code_of(table, over) == "VERSIONS_GONE"
    with pytest.raises(JobRefusedError, match="bucket lake kept no versions when"):
        table.undo(over)
    result = table.undo(over, leave_removed=True)
    assert (result.files, result.replaced) == (0, 1)
    assert table.visible() == set()
    assert code_of(table, over, leave_removed=True) == "NOTHING_TO_UNDO"


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize("over", [{}, REPLACE])
def test_the_list_of_an_undo_says_if_all_is_restored_by_the_pipelines_own_look(
    over: dict[str, Any], leaves: bool
) -> None:
    """A client that has nothing restored where nothing was replaced has left nothing out."""
    table = Table()
    table.write("dt=1/")
    wrong = table.write("dt=1/", **over)
    table.undo(wrong, leave_removed=leaves)
    header = read_commit_header(table.world.store, table.undone[wrong])
    assert header.leaves_removed is (leaves and over == REPLACE)


def test_counts_rows_and_bytes_come_back_as_they_were() -> None:
    table = Table()
    table.write("dt=1/", "dt=2/")
    summary = "sales/dt=1/_metadata"
    table.world.store.put("lake", summary, b"of Parquet files")
    over = table.write("dt=1/", **REPLACE)
    before = {body for _, body in table.jobs[0][3]}
    result = table.undo(over)
    assert summary not in table.world.all_keys()  # no reader needs it
    assert {body for _, body in table.visible()} == before
    size = sum(map(len, before))
    assert (result.files, result.bytes, result.rows, result.replaced) == (2, size, size, 1)
    assert all(key.endswith(".c000.csv") for key in table.world.visible())


def test_i11_an_undo_frees_the_key_and_an_undo_of_it_takes_the_key_again() -> None:
    table = Table()
    wrong = table.write("dt=1/", key="today")
    table.undo(wrong)
    early = plan_undo(table.world.unplanned, table.undone[wrong], leave_removed=False)
    again = table.write("dt=1/", "dt=2/", key="today")
    with pytest.raises(JobFailedError) as failed:
        undoing.carry_out(table.world.unplanned, early, OPTIONS, table.environment)
    assert failed.value.code == "KEY_TAKEN"
    with pytest.raises(JobRefusedError, match=f"job {again.job_id} has since written") as refused:
        table.undo(table.undone[wrong])
    assert refused.value.code == "KEY_TAKEN"
    table.undo(again)
    table.undo(table.undone[wrong])
    third = job_directory(table.environment.new_id())
    table.world.commit(third, idempotency_key="today")
    assert table.world.ended(third) == (Outcome.ABORTED, "KEY_TAKEN")


@pytest.mark.parametrize("back", ["healed", "event", "execution", "no _job.json"])
@pytest.mark.parametrize("late", [False, True])
def test_i11_a_freed_key_stays_free_when_its_job_or_note_comes_back(late: bool, back: str) -> None:
    """PublishSuccess of the undone job may have stalled before it notes the key."""
    table = Table()
    wrong = table.write("dt=1/", key="today")
    record = table.world.record(wrong)

    def stalled() -> None:
        if late:
            note_key(table.world.unplanned, record, "today")

    for _ in range(2):
        table.undo(wrong)
        stalled()
        assert hinted_job(table.world.store, wrong.destination, "today") is None
        if back == "healed":
            table.world.ledger.lose()
            table.world.heal()
        else:
            table.world.ledger.expire(wrong.ref)
        if back == "event":
            note_job(table.world.ports, "lake", wrong.job)
        elif back != "healed":
            if back != "execution":
                table.world.store.delete("lake", wrong.job)
            table.world.run(wrong, "execution-again")
        wrong = table.write("dt=1/", key="today")
        stalled()
        assert hinted_job(table.world.store, wrong.destination, "today") == wrong
        assert table.world.json(wrong.key_note(key_digest("today")))["jobId"] == wrong.job_id


@pytest.mark.parametrize("late", ["event", "execution", "healing", "note"])
def test_i11_a_freed_key_is_one_later_jobs_whenever_late_calls_of_the_undone_job_act(
    late: str,
) -> None:
    """They bring that back from its decision record, or note its key, while the undo frees it."""

    def begin() -> tuple[list[Run], Callable[[], None]]:
        table = Table()
        world, wrong = table.world, table.write("dt=1/", key="today")
        record = world.record(wrong)
        if late != "note":
            world.ledger._jobs.pop(wrong.ref)

        def undo(wait: Callable[[], None]) -> None:
            world.plan.run_before(None, wait, where=of_the_key, times=None)
            table.undo(wrong)

        def comes(wait: Callable[[], None]) -> None:
            plan = FaultPlan().run_before(None, wait, where=of_the_key, times=None)
            store, ledger = plan.wrap(world.store), plan.wrap(world.ledger)
            ports = replace(world.unplanned, store=store, ledger=ledger)
            if late == "event":
                note_job(ports, "lake", wrong.job)
            elif late == "execution":
                run_execution(ports, wrong, execution="late")
            elif late == "healing":
                healing._bring_back(ports, "lake", [wrong.decision])
            else:
                note_key(ports, record, "today")

        def is_committed(number: int) -> bool:
            later = job_directory(fake_id(number))
            world.ask(later, idempotency_key="today")
            run_execution(world.unplanned, later)
            return world.ended(later)[0] is Outcome.COMMITTED

        def beside(wait: Callable[[], None]) -> None:
            wait()
            is_committed(97)

        def check() -> None:
            beside = world.ended(job_directory(fake_id(97)))[0] is Outcome.COMMITTED
            assert [beside, is_committed(98), is_committed(99)] in (
                [True, False, False],
                [False, True, False],
            )

        return [undo, comes, beside], check

    assert every_order(begin) > 20


def of_the_key(call: Call) -> bool:
    return "/_keys/" in call.key or call.verb in {"open_job", "key_holder", "free_key"}


@pytest.mark.parametrize("put_bytes", [8 * 1024 * 1024, 10])
def test_i6_a_manifest_that_is_put_again_keeps_its_place_among_the_commits(
    put_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_manifest, "PUT_BYTES", put_bytes)
    world, job = World(), job_directory()
    world.store.least_part = 1
    world.ask(job)
    world.plan.crash_before("put", where=lambda call: call.key == job.success)
    world.dies(job)
    before = world.store.head("lake", job.commits)
    world.clock.advance(60)
    world.run(job, "execution-2")
    after = world.store.head("lake", job.commits)
    assert before and after and after.modified == before.modified
    assert world.open_uploads() == []


@pytest.mark.parametrize(
    ("name", "back"),
    [
        ("part-0-x_00003.c000.parquet", "part-00000-ID._00003.c000.parquet"),
        ("plain", "part-00000-ID"),
        ("a.tar.gz", "part-00000-ID.tar.gz"),
    ],
)
def test_a_copy_has_the_ends_of_its_name_that_readers_go_by(name: str, back: str) -> None:
    """Of an object of no bytes too."""
    table = Table()
    table.world.store.put("lake", f"sales/dt=1/{name}", b"")
    over = table.write("dt=1/", **REPLACE)
    copy = table.undo(over).job_id
    assert table.world.visible() == {f"sales/dt=1/{back.replace('ID', copy)}": b""}


def test_an_undo_of_many_files_has_tasks_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undoing, "FILES_OF_A_TASK", 2)
    monkeypatch.setattr(undoing, "COPIED_BYTES", 5)
    table = Table()
    table.world.store.least_part = 1
    table.write(*[f"dt={number}/" for number in range(7)])
    over = table.write("dt=1/", **REPLACE)
    assert table.undo(over).files == 7
    assert table.visible() == table.replayed()


def test_the_pipeline_keeps_the_list_of_the_removed_of_committed_jobs_alone() -> None:
    table = Table()
    table.write("dt=1/")
    over = table.write("dt=1/", **REPLACE)
    assert len(table.world.all_keys(over.replaced)) == 2
    refused = job_directory(table.environment.new_id())
    table.world.plan.fail("decide", InvalidInputError("too large"), times=50)
    table.world.commit(refused, **REPLACE)
    assert table.world.ended(refused)[0] is Outcome.ABORTED
    assert table.world.all_keys(refused.replaced) == []


# Which jobs are undone, by the pairs of undo and job alone


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
    chain = [(number + 1, number) for number in range(10_001)]
    assert undone_by(chain) == {even: even + 1 for even in range(0, 10_002, 2)}
    assert len(undone_by([("b", "a"), ("a", "b")])) == 1
    assert undone_by([("a", "a")]) == {}


def test_i11_a_way_back_undoes_who_has_the_key_before_its_data_comes_back() -> None:
    table = Table()
    first = table.write("dt=1/", key="today")
    table.undo(first)
    again = table.write("dt=2/", key="today")
    last = table.write("dt=1/")
    way = plan_way_back(table.world.unplanned, first)
    undone = [job.directory for job, _ in way.undos]
    assert undone == [last, again, table.undone[first]]
    for job in undone:
        table.undo(job)
    assert table.visible() == table.replayed() == table.jobs[0][3]
