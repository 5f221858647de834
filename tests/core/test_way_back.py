"""An undo of a committed job: what it removes and brings back, and what it refuses (I2, I5, I6)."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from s3commit.core.formats.documents import CommitHeader, CommittedFile, commit_lines
from s3commit.core.formats.layout import JobDirectory, partition_of
from s3commit.core.job import plan
from s3commit.core.job.idempotency_key import hinted_job, note_key
from s3commit.core.model.errors import (
    InvalidInputError,
    JobFailedError,
    JobRefusedError,
    S3CommitError,
)
from s3commit.core.model.job import Conflict, JobResult, Outcome, Scope
from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.model.locks import key_digest
from s3commit.core.model.record import ReplacedFacts
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import shifted
from s3commit.writer import undo as undoing
from s3commit.writer.undo import carry_out, plan_undo
from tests.core.world import NEIGHBOUR, World, job_directory
from tests.writer.support import ScriptedEnvironment

Content = set[tuple[str, bytes]]  # a key's directory, and the bytes of a file
PARTITIONS = ("dt=1/", "dt=2/")


@dataclass
class Table:
    """Jobs at one table, one after the other, and what a replay of those that stand gives."""

    world: World = field(default_factory=lambda: World(versioned=True))
    jobs: list[tuple[JobDirectory, Conflict, Scope, Content]] = field(default_factory=list)
    keys: dict[JobDirectory, str] = field(default_factory=dict)
    undone: dict[JobDirectory, JobDirectory] = field(default_factory=dict)  # by which job
    pace: int = 2 * S3_CLOCKS  # seconds from one job to the next, which S3's clocks tell apart
    environment: ScriptedEnvironment = field(init=False)

    def __post_init__(self) -> None:
        self.environment = ScriptedEnvironment(lambda _: self.pipeline())

    def pipeline(self) -> None:
        for key in self.world.all_keys("sales/"):
            if key.endswith("_request.json"):
                place, _, rest = key.partition("__magic_job-")
                directory = job_directory(rest.partition("/")[0], place)
                if directory.result not in self.world.all_keys(directory.prefix):
                    self.world.run(directory)

    def write(
        self,
        *partitions: str,
        conflict: Conflict = Conflict.APPEND,
        scope: Scope = Scope.DIRECTORY,
        place: str = "sales/",
        key: str | None = None,
    ) -> JobDirectory:
        """A job that writes a file to each partition, unless a job with its key stands."""
        self.world.clock.advance(self.pace)
        directory = job_directory(self.environment.new_id(), place)
        number = len(self.jobs)
        files = {
            f"{one}part-0-{directory.job_id}.c000.csv": f"{number} {place}{one}".encode()
            for one in partitions
        }
        self.world.open(directory, conflict=conflict, scope=scope, idempotency_key=key)
        attempts = [self.world.attempt(directory, "t", files=files)] if files else []
        self.world.request(directory, *attempts)
        self.world.run(directory)
        same = [
            job for job, one in self.keys.items() if one == key and job.destination.prefix == place
        ]
        if any(map(self.stands, same)):
            assert self.world.ended(directory)[1] in {"ALREADY_COMMITTED", "KEY_TAKEN"}
            return directory
        assert self.world.result(directory).outcome is Outcome.COMMITTED
        if key is not None:
            self.keys[directory] = key
        content = {(place + partition_of(name), body) for name, body in files.items()}
        self.jobs.append((directory, conflict, scope, content))
        return directory

    def undo(self, job: JobDirectory, *, leave_removed: bool = False) -> JobResult:
        self.world.clock.advance(self.pace)
        ports = self.world.unplanned
        planned = plan_undo(ports, job, leave_removed=leave_removed)
        result = carry_out(ports, planned, self.environment, timeout=60)
        self.undone[job] = JobDirectory(job.destination, result.job_id)
        return result

    def stands(self, job: JobDirectory) -> bool:
        return job not in self.undone or not self.stands(self.undone[job])

    def replayed(self) -> Content:
        found: Content = set()
        for directory, conflict, scope, content in self.jobs:
            if not self.stands(directory):
                continue
            place = directory.destination.prefix
            if conflict is Conflict.REPLACE:
                reached = {at for at, _ in content} if scope is Scope.PARTITION else {place}
                found -= {one for one in found if one[0].startswith(tuple(reached) or "/")}
            found |= content
        return found

    def visible(self) -> Content:
        return {(partition_of(key), body) for key, body in self.world.visible().items()}


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


def test_i6_what_stands_is_what_a_replay_without_the_undone_jobs_gives() -> None:
    """Appends, overwrites of the table, of partitions and of tables inside, undos and their undos.

    An undo is taken whole or refused; what it leaves is as if the job had never been.
    """
    refused = Counter[str]()
    for seed in range(60):
        rng = random.Random(seed)
        table = Table(pace=rng.choice([0, 2 * S3_CLOCKS]))
        for number in range(12):
            step(table, rng, refused)
            assert table.visible() == table.replayed(), (seed, number)
        assert not table.world.open_uploads()
    assert refused["done"] > 100, refused
    keys = {"ALREADY_COMMITTED", "KEY_TAKEN"}  # of an undo's undo, when the key has a new job
    assert refused.keys() - keys == {"done", "NOTHING_TO_UNDO", "REPLACED_SINCE"}, refused


REPLACE: Final[dict[str, Any]] = {"conflict": Conflict.REPLACE}
PARTITION: Final[dict[str, Any]] = {**REPLACE, "scope": Scope.PARTITION}


def code_of(table: Table, job: JobDirectory, *, leave_removed: bool = False) -> str:
    """The code with which an undo is refused; nothing was changed."""
    before = table.world.all_keys("sales/")
    with pytest.raises(JobRefusedError) as refused:
        table.undo(job, leave_removed=leave_removed)
    assert table.world.all_keys("sales/") == before
    return str(refused.value.code)


def test_overwrites_are_undone_the_newest_first_and_once_more_after_that() -> None:
    table = Table()
    table.write("dt=1/")
    older = table.write("dt=1/", **REPLACE)
    newer = table.write("dt=1/", "dt=2/", **PARTITION)
    assert code_of(table, older) == "REPLACED_SINCE"
    for job in (newer, older):
        table.undo(job)
        assert table.visible() == table.replayed()
    assert code_of(table, newer) == "NOTHING_TO_UNDO"
    redone = JobDirectory(older.destination, table.undo(table.undone[older]).job_id)
    assert table.stands(older) and table.visible() == table.replayed()
    assert code_of(table, older) == "NOTHING_TO_UNDO"
    table.undo(redone)
    assert table.visible() == table.replayed()


def test_what_an_undone_job_had_written_does_not_come_back() -> None:
    table = Table()
    wrong = table.write("dt=1/", "dt=2/")
    over = table.write("dt=1/", **PARTITION)
    assert table.undo(wrong).replaced == 1
    result = table.undo(over)
    assert (result.files, result.replaced) == (0, 1)
    assert table.visible() == set()


def test_the_removed_stays_removed_if_one_says_so() -> None:
    table = Table(World())  # a bucket that keeps no versions
    table.write("dt=1/")
    over = table.write("dt=1/", **REPLACE)
    assert code_of(table, over) == "VERSIONS_GONE"
    result = table.undo(over, leave_removed=True)
    assert (result.files, result.replaced) == (0, 1)
    assert table.visible() == set()
    assert code_of(table, over, leave_removed=True) == "NOTHING_TO_UNDO"


def test_counts_rows_and_bytes_come_back_as_they_were() -> None:
    table = Table()
    table.write("dt=1/", "dt=2/")
    over = table.write("dt=1/", **REPLACE)
    before = {body for _, body in table.jobs[0][3]}
    result = table.undo(over)
    assert {body for _, body in table.visible()} == before
    size = sum(map(len, before))
    assert (result.files, result.bytes, result.rows, result.replaced) == (2, size, size, 1)
    assert all(key.endswith(".c000.csv") for key in table.world.visible())


def test_i11_an_undo_frees_the_key_and_an_undo_of_it_takes_the_key_again() -> None:
    table = Table()
    wrong = table.write("dt=1/", key="today")
    table.undo(wrong)
    again = table.write("dt=1/", "dt=2/", key="today")
    with pytest.raises(JobFailedError) as refused:
        table.undo(table.undone[wrong])
    assert refused.value.code == "KEY_TAKEN"
    table.undo(again)
    table.undo(table.undone[wrong])
    third = job_directory(table.environment.new_id())
    table.world.commit(third, idempotency_key="today")
    assert table.world.ended(third) == (Outcome.ABORTED, "KEY_TAKEN")


@pytest.mark.parametrize("late", [False, True])
def test_i11_a_freed_key_stays_free_in_an_empty_ledger_and_after_a_late_note(late: bool) -> None:
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
        table.world.ledger.lose()
        table.world.heal()
        wrong = table.write("dt=1/", key="today")
        stalled()
        assert hinted_job(table.world.store, wrong.destination, "today") == wrong
        assert table.world.json(wrong.key_note(key_digest("today")))["jobId"] == wrong.job_id


@pytest.mark.parametrize("put_bytes", [8 * 1024 * 1024, 10])
def test_i6_a_manifest_that_is_put_again_keeps_its_place_among_the_commits(
    put_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "PUT_BYTES", put_bytes)
    world, job = World(), job_directory()
    world.store._least_part = 1
    world.ask(job)
    world.plan.crash_before("put", where=lambda call: call.key == job.success)
    world.dies(job)
    before = world.store.head("lake", job.commits)
    world.clock.advance(60)
    world.run(job, "execution-2")
    after = world.store.head("lake", job.commits)
    assert before and after and after.modified == before.modified
    assert world.open_uploads() == []


def test_i2_what_comes_back_is_what_was_replaced_and_no_other_of_its_size() -> None:
    table = Table()
    first, second = table.write("dt=1/", "dt=2/"), table.write("dt=1/", "dt=2/")
    over = table.write("dt=1/", **PARTITION)
    table.undo(first)
    plan = plan_undo(table.world.unplanned, over, leave_removed=False)
    table.undo(table.undone[first])
    table.undo(second)
    before = table.visible()
    with pytest.raises(JobFailedError) as refused:
        carry_out(table.world.unplanned, plan, table.environment, timeout=60)
    assert refused.value.code == "FILES_CHANGED"
    assert table.visible() == before
    table.undo(over)
    assert table.visible() == table.replayed()


def test_what_came_back_at_another_table_is_known_by_its_first_name() -> None:
    table = Table()
    inner = table.write("", place="sales/dt=1/")
    table.undo(table.write("", place="sales/dt=1/", **REPLACE))
    table.undo(table.write("dt=2/", **REPLACE))
    assert table.visible() == table.replayed() != set()
    table.undo(inner)
    assert table.visible() == set()


def test_i12_a_manifest_that_says_copy_is_an_undos_and_of_the_same_directory() -> None:
    table = Table()
    done = table.write("dt=1/")
    for spec, origin in (
        ({}, "sales/dt=1/x.csv"),
        ({**REPLACE, "undoes": done.job_id}, "sales/x.csv"),
    ):
        liar = job_directory(table.environment.new_id())
        table.world.open(liar, **spec)
        files = {f"dt=1/part-0-{liar.job_id}.csv": b"x"}
        table.world.request(liar, table.world.attempt(liar, "t", files=files, origin=origin))
        table.world.run(liar)
        assert table.world.ended(liar) == (Outcome.ABORTED, "BAD_FIELD")


def test_a_list_that_the_release_before_has_put_is_carried_out() -> None:
    table = Table()
    table.write("dt=1/")
    over = job_directory(table.environment.new_id())
    table.world.open(over, **REPLACE)
    table.world.request(over, table.world.attempt(over, "t"))

    def as_before() -> None:
        for key in table.world.all_keys(over.replaced):
            body = table.world.store.get("lake", key, max_bytes=10**6).body
            table.world.store.put("lake", key.replace("/_replaced/", "/"), body)
            table.world.store.delete("lake", key)

    table.world.plan.run_before("decide", as_before)
    table.world.run(over)
    assert table.world.result(over).replaced == 1
    assert len(table.world.visible()) == 1


@pytest.mark.parametrize(
    ("name", "back"),
    [
        ("part-0-x_00003.c000.parquet", "part-00000-ID._00003.c000.parquet"),
        ("plain", "part-00000-ID"),
        ("a.tar.gz", "part-00000-ID.tar.gz"),
    ],
)
def test_a_copy_has_the_ends_of_its_name_that_readers_go_by(name: str, back: str) -> None:
    table = Table()
    table.world.store.put("lake", f"sales/dt=1/{name}", b"x")
    over = table.write("dt=1/", **REPLACE)
    copy = table.undo(over).job_id
    assert list(table.world.visible()) == [f"sales/dt=1/{back.replace('ID', copy)}"]


def test_a_name_that_a_copy_can_not_have_is_refused_before_anything_is_done() -> None:
    table = Table()
    table.world.store.put(
        "lake", f"sales/{'d' * 250}/" * 1 + "/".join(["e" * 250] * 3) + "/x", b"x"
    )
    over = table.write("dt=1/", **REPLACE)
    assert code_of(table, over) == "NAME_TOO_LONG"


def broken(table: Table, older: JobDirectory, over: JobDirectory, how: str) -> None:
    """Something happens between the plan of an undo of ``over`` and its request."""
    store, world = table.world.store, table.world
    (own,) = [key for key in world.visible() if over.job_id in key]
    match how:
        case "a later overwrite":
            table.write("dt=1/", **PARTITION)
        case "a file deleted by hand":
            store.delete("lake", own)
        case "a file changed":
            store.put("lake", own, b"theirs")
        case "its manifest deleted":
            store.delete("lake", over.commits)
        case "its manifest changed":
            body = store.get("lake", over.commits, max_bytes=10**6).body
            store.put("lake", over.commits, body + body.splitlines()[-1])
        case "the list of the removed changed":
            page = next(key for key in world.all_keys(over.replaced) if "_pages" in key)
            store.put("lake", page, b"{}\n")
        case "what came back undone":
            table.undo(older)


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("a later overwrite", "REPLACED_SINCE"),
        ("a file deleted by hand", "FILES_CHANGED"),
        ("a file changed", "FILES_CHANGED"),
        ("its manifest deleted", "NOT_COMMITTED"),
        ("its manifest changed", "TRUNCATED"),
        ("the list of the removed changed", "LIST_GONE"),
        ("what came back undone", "FILES_CHANGED"),
    ],
)
@pytest.mark.parametrize("planned", [True, False])
def test_i2_i5_what_has_changed_is_not_undone(how: str, code: str, planned: bool) -> None:
    """By the pipeline, whatever the client had planned; and by a client that looks then."""
    table = Table()
    older = table.write("dt=1/", "dt=2/")
    over = table.write("dt=1/", **PARTITION)
    kept = table.write("dt=3/")
    plan = plan_undo(table.world.unplanned, over, leave_removed=False) if planned else None
    if how == "what came back undone" and plan is None:
        return  # then less comes back
    broken(table, older, over, how)
    before = table.world.visible()
    with pytest.raises((JobRefusedError, JobFailedError)) as refused:
        if plan is None:
            table.undo(over)
        else:
            carry_out(table.world.unplanned, plan, table.environment, timeout=60)
    assert refused.value.code == code
    assert table.world.visible() == before
    assert not table.world.open_uploads()
    assert table.stands(kept)


def test_i12_an_undo_of_a_job_that_is_under_way_is_refused() -> None:
    table = Table()
    directory = job_directory(table.environment.new_id())
    table.world.ask(directory)
    table.world.plan.crash_before("advance", nth=3)  # all is visible, and its manifest there
    table.world.dies(directory)
    assert table.world.record(directory).state is JobState.PUBLISHING
    plan = plan_undo(table.world.unplanned, directory, leave_removed=False)
    table.environment.on_sleep = lambda _: run_request(table, directory)
    with pytest.raises(JobFailedError) as refused:
        carry_out(table.world.unplanned, plan, table.environment, timeout=60)
    assert refused.value.code == "NOT_COMMITTED"
    assert len(table.world.visible()) == 1


def run_request(table: Table, but: JobDirectory) -> None:
    for key in table.world.all_keys("sales/"):
        if key.endswith("_request.json") and not key.startswith(but.prefix):
            table.world.run(job_directory(key.split("__magic_job-")[1].partition("/")[0]))


def test_versions_that_have_expired_in_part_are_no_undo() -> None:
    table = Table()
    older = table.write("dt=1/", "dt=2/")
    over = table.write("dt=1/", **REPLACE)
    bucket = table.world.store.bucket("lake")
    (key,) = [key for key in bucket.objects if older.job_id in key and "dt=2/" in key]
    del bucket.objects[key][0]
    assert code_of(table, over) == "VERSIONS_GONE"


def test_an_undo_of_many_files_has_tasks_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undoing, "FILES_OF_A_TASK", 2)
    monkeypatch.setattr(undoing, "COPIED_BYTES", 5)
    table = Table()
    table.world.store._least_part = 1
    table.write(*[f"dt={number}/" for number in range(7)])
    over = table.write("dt=1/", **REPLACE)
    assert table.undo(over).files == 7
    assert table.visible() == table.replayed()


def test_an_object_of_no_bytes_comes_back() -> None:
    table = Table()
    table.world.store.put("lake", "sales/empty.csv", b"")
    over = table.write("dt=1/", **REPLACE)
    table.undo(over)
    assert table.visible() == {("sales/", b"")}


def test_the_pipeline_keeps_the_list_of_the_removed_of_committed_jobs_alone() -> None:
    table = Table()
    table.write("dt=1/")
    over = table.write("dt=1/", **REPLACE)
    assert len(table.world.all_keys(over.replaced)) == 2
    refused = job_directory(table.environment.new_id())
    table.world.open(refused, conflict=Conflict.REPLACE)
    table.world.request(refused, table.world.attempt(refused, "t"))
    table.world.plan.fail("decide", InvalidInputError("too large"), times=50)
    table.world.run(refused)
    assert table.world.ended(refused)[0] is Outcome.ABORTED
    assert table.world.all_keys(refused.replaced) == []


def test_what_names_no_other_job_is_no_undo() -> None:
    table = Table()
    for spec in ({"conflict": Conflict.APPEND}, PARTITION, {**REPLACE, "undoes": "x"}):
        directory = job_directory(table.environment.new_id())
        table.world.commit(directory, **{"undoes": str(directory.job_id), **spec})
        assert table.world.ended(directory) == (Outcome.ABORTED, "BAD_FIELD")


def dated(table: Table, job: JobDirectory, seconds: float) -> None:
    """S3 got the job's manifest so much later, by the clock of one of its hosts."""
    version = table.world.store.bucket("lake").current(job.commits)
    assert version is not None
    object.__setattr__(version, "modified", shifted(version.modified, seconds))


def test_i6_a7_an_undo_is_seen_though_another_clock_dates_it_before_its_job() -> None:
    table = Table()
    wrong = table.write("dt=1/")
    table.undo(wrong)
    dated(table, wrong, table.pace + S3_CLOCKS)
    assert code_of(table, wrong) == "NOTHING_TO_UNDO"
    table.undo(table.undone[wrong])
    dated(table, table.undone[wrong], 2 * table.pace + S3_CLOCKS)
    assert table.visible() == table.replayed() != set()
    assert code_of(table, wrong) == "NOTHING_TO_UNDO"


@pytest.mark.parametrize("behind", [False, True])
def test_i6_a7_an_overwrite_within_seconds_of_the_undone_one_counts_as_a_later_one(
    behind: bool,
) -> None:
    table = Table()
    table.write("dt=1/")
    over = table.write(**REPLACE)
    later = table.write("dt=1/", **REPLACE)
    dated(table, later, -table.pace - S3_CLOCKS if behind else 0)
    assert code_of(table, over) == "REPLACED_SINCE"


def forge(table: Table, directory: JobDirectory, *files: CommittedFile, **header: Any) -> None:
    """A list of a job that never was, by somebody who may put there."""
    place, count = directory.destination.uri, header.pop("count", len(files))
    said = CommitHeader(directory.job_id, place, "2099-01-01T00:00:00Z", count, 0, None, **header)
    table.world.store.put("lake", directory.commits, b"".join(commit_lines(said, files)))


def test_i2_i12_a_forged_list_has_no_file_of_a_job_that_is_under_way_removed() -> None:
    """An append at the table, whose file lies where somebody may replace; it is visible already."""
    table = Table()
    append, place = job_directory(table.environment.new_id()), "sales/dt=1/"
    name = f"dt=1/part-0-{append.job_id}.csv"
    table.world.request(append, table.world.attempt(append, "t", files={name: b"theirs"}))
    table.world.plan.crash_before("advance", nth=2)
    table.world.dies(append)
    assert list(table.world.visible()) == [f"sales/{name}"]
    forge(table, job_directory(append.job_id, place), CommittedFile(f"sales/{name}", 6))
    evil = job_directory(table.environment.new_id(), place)
    table.world.open(evil, conflict=Conflict.REPLACE, undoes=append.job_id)
    table.world.request(evil)
    table.world.run(evil)
    assert table.world.ended(evil) == (Outcome.ABORTED, "NOT_COMMITTED")
    table.world.run(append, "another")
    assert table.world.ended(append) == (Outcome.COMMITTED, "")
    assert list(table.world.visible()) == [f"sales/{name}"]


@pytest.mark.parametrize("spoilt", ["a copy elsewhere", "other bytes", "no list", "a circle"])
def test_i5_i12_a_forged_list_below_has_an_undo_neither_remove_others_nor_refused(
    spoilt: str,
) -> None:
    """Somebody may put below one partition. The file that is undone was replaced by another job."""
    table = Table()
    wrong = table.write("dt=2/", "dt=3/")
    table.write("dt=2/", **PARTITION)
    theirs = table.write("dt=1/", "dt=2/")
    mine = job_directory(theirs.job_id, "sales/dt=1/" if "else" in spoilt else "sales/dt=2/")
    origin = f"sales/dt=2/part-0-{wrong.job_id}.c000.csv"
    key = f"{mine.destination.prefix}part-0-{theirs.job_id}.c000.csv"
    length = 99 if spoilt in {"other bytes", "a circle"} else len(b"0 sales/dt=2/")
    file, other = CommittedFile(key, length, origin=origin), table.environment.new_id()
    count = 9 if spoilt == "no list" else 1
    forge(table, mine, file, undoes=other, count=count, replaced=ReplacedFacts("", 1, 1))
    if spoilt == "a circle":
        forge(table, job_directory(other, "sales/dt=2/"), undoes=mine.job_id)
        forge(table, job_directory(NEIGHBOUR, "sales/dt=2/"), undoes=mine.job_id)
    table.undo(wrong)
    assert table.visible() == table.replayed()
