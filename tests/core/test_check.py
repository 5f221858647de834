"""The check of a table: each fact, and what mends it."""

import time
from dataclasses import dataclass
from typing import Any

import pytest

from s3commit.aws.parallel import ThreadMap
from s3commit.core.fsck import check
from s3commit.core.fsck_report import Expiry, FindingKind, Report
from s3commit.core.model.destination import Conflict, Destination, Scope
from s3commit.core.model.errors import AccessError, InvalidInputError
from s3commit.core.model.moments import shifted
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, World, job_directory
from tests.fakes.faults import Call

SALES = Destination(BUCKET, "sales/")


@dataclass
class Checked:
    """A world under check, which has its own connection."""

    world: World
    destination: Destination = SALES

    def report(self, *rules: Expiry) -> Report:
        store = self.world.plan.wrap(self.world.store)
        return check(store, self.world.ledger, map, self.destination, rules)


def file_of(job_id: str) -> str:
    return f"sales/part-t0-{job_id}.parquet"


def committed(
    world: World, job_id: str = JOB, *names: str, prefix: str = "sales/", **spec: Any
) -> None:
    """A job with these files, to its end; without names it has the one of `file_of`."""
    directory = job_directory(job_id, prefix)
    files = {f"{name}-{job_id}.parquet": b"x" for name in names or ["part-t0"]}
    world.commit(directory, files=files, **spec)
    world.clock.advance(60)


@pytest.fixture
def desk() -> Checked:
    """A table with one committed job."""
    desk = Checked(World())
    committed(desk.world)
    return desk


def test_i2_a_sound_table_is_counted(desk: Checked) -> None:
    committed(desk.world, OTHER_JOB)
    desk.world.store.put(BUCKET, "sales/by-hand.csv", b"x")
    report = desk.report()
    assert report.is_sound
    assert (report.jobs, report.files, report.replaced) == (2, 2, 0)
    assert report.bytes == sum(map(len, desk.world.visible().values())) - 1
    assert (report.foreign, report.examples) == (1, ["sales/by-hand.csv"])
    assert report.open_jobs == []


def undelete(world: World) -> None:
    """Somebody removes all delete markers, as the usual recipe for what was deleted says."""
    for versions in world.store.bucket(BUCKET).objects.values():
        while versions and versions[-1].body is None:
            versions.pop()


REMOVING: dict[str, dict[str, Any]] = {
    "an overwrite": {"conflict": Conflict.REPLACE},
    "an overwrite of its partition": {"conflict": Conflict.REPLACE, "scope": Scope.PARTITION},
    "its undo": {"conflict": Conflict.REPLACE, "undoes": JOB},
}


@pytest.mark.parametrize("removed_by", REMOVING)
@pytest.mark.parametrize("kept", [True, False], ids=["list is kept", "list has expired"])
def test_i2_a_file_that_was_removed_and_is_there_again_is_found(
    removed_by: str, kept: bool
) -> None:
    """Its rows may be there twice. Another program's file is foreign, there or back."""
    desk = Checked(World(versioned=True))
    committed(desk.world)
    desk.world.store.put(BUCKET, "sales/by-hand.csv", b"x")
    looks: list[Report] = []
    desk.world.plan.run_before("delete_seen", lambda: looks.append(desk.report()))
    how = REMOVING[removed_by]
    directory = job_directory(OTHER_JOB)
    desk.world.open(directory, **how)
    attempts = [] if "undoes" in how else [desk.world.attempt(directory, "t0")]
    desk.world.request(directory, *attempts)
    desk.world.run(directory)
    assert [one.findings for one in (*looks, desk.report())] == [[], []]
    for key in () if kept else desk.world.all_keys(directory.replaced):
        desk.world.store.bucket(BUCKET).objects.pop(key)
    undelete(desk.world)
    report = desk.report()
    found = [(one.what, one.key, one.job_id) for one in report.findings]
    assert found == [(FindingKind.BACK, file_of(JOB), JOB)] * kept
    assert OTHER_JOB in "".join(one.fix for one in report.findings) or not kept
    assert report.is_sound == (not kept)


OVERWRITES = ("33333333-3333-4333-8333-333333333333", "22222222-2222-4222-8222-222222222222")


def removed_twice() -> Checked:
    """A file that two overwrites have removed is there again; the second has the lesser id."""
    desk = Checked(World(versioned=True))
    committed(desk.world)
    for job in OVERWRITES:
        committed(desk.world, job, conflict=Conflict.REPLACE)
        undelete(desk.world)
    for job in OVERWRITES:
        desk.world.store.bucket(BUCKET).objects.pop(file_of(job))
    return desk


def test_a_file_that_is_there_again_is_found_once_with_the_last_job_that_removed_it() -> None:
    found = [one for one in removed_twice().report().findings if one.what is FindingKind.BACK]
    assert [(one.key, one.job_id) for one in found] == [(file_of(JOB), JOB)]
    assert OVERWRITES[1] in found[0].fix


def test_a_file_that_is_removed_after_it_was_listed_is_not_there_again() -> None:
    desk = removed_twice()
    desk.world.plan.run_before("get", lambda: desk.world.store.delete(BUCKET, file_of(JOB)))
    found = desk.report().findings
    assert FindingKind.BACK not in {one.what for one in found}


def test_lists_of_the_removed_that_may_not_be_read_are_one_finding() -> None:
    """The table is not said to be sound where nobody has looked."""
    desk = removed_twice()
    desk.world.store.deny(BUCKET, "_s3commit/", "s3:GetObject")
    (found,) = [one for one in desk.report().findings if one.what is FindingKind.UNREADABLE]
    assert found.fix.startswith("look again with the right to read it, or else see that no file")


@pytest.mark.parametrize("put_over", [False, True], ids=["gone", "another by now"])
@pytest.mark.parametrize("versioned", [False, True])
def test_i2_a_file_that_is_not_what_it_was_is_found_with_the_version_to_restore(
    put_over: bool, versioned: bool
) -> None:
    desk = Checked(World(versioned=versioned))
    committed(desk.world)
    (version,) = desk.world.store.list_versions(BUCKET, file_of(JOB))
    if put_over:
        desk.world.store.put(BUCKET, file_of(JOB), b"other bytes")
    else:
        desk.world.store.delete(BUCKET, file_of(JOB))
    (found,) = desk.report().findings
    what = FindingKind.CHANGED if put_over else FindingKind.GONE
    assert (found.what, found.key, found.job_id) == (what, file_of(JOB), JOB)
    restore = f"restore version {version.version_id}"
    assert found.fix.startswith(restore if versioned else "no version of it is kept")
    assert ("deleted on purpose" in found.fix) == (not put_over)


DAY = 86_400


@pytest.mark.parametrize("prefix", ["sales/", "sal", "sales/dt=1/", "sales/dt=2/", "other/"])
@pytest.mark.parametrize("age", [0, 399, 401])
@pytest.mark.parametrize("lost", ["a file", "a list", "all", "changed"])
def test_i2_only_what_has_expired_may_be_missing(prefix: str, age: int, lost: str) -> None:
    """By S3's time: what the list says of its job's decision a client could have written."""
    desk, key = Checked(World()), f"sales/dt=1/part-{JOB}.parquet"
    committed(desk.world, JOB, "dt=1/part", "dt=2/part")
    directory = job_directory()
    if lost == "changed":
        desk.world.store.put(BUCKET, key, b"other bytes")
    for one in {"a file": [key], "a list": [directory.commits], "changed": []}.get(
        lost, desk.world.all_keys("sales/")
    ):
        desk.world.store.delete(BUCKET, one)
    desk.world.clock.advance(age * DAY)
    rules = ((prefix, shifted(desk.world.clock.now(), -400 * DAY)),)
    covers = {
        "a file": key.startswith(prefix),
        "a list": directory.commits.startswith(prefix),
        "all": False,
        "changed": False,
    }[lost]
    report, meant = desk.report(*rules), covers and age > 400
    assert report.is_sound == (meant or lost == "all")
    assert report.is_table == (lost != "all")
    assert report.expired == (meant and lost == "a file")


def test_without_the_right_to_list_versions_a_lost_file_is_found(desk: Checked) -> None:
    desk.world.store.delete(BUCKET, file_of(JOB))
    desk.world.plan.fail("list_versions", AccessError("403"))
    (found,) = desk.report().findings
    assert (found.what, found.key) == (FindingKind.GONE, file_of(JOB))
    assert "s3:ListBucketVersions" in found.fix


def test_behind_kms_a_copy_of_the_same_length_passes() -> None:
    desk = Checked(World(opaque=True))
    committed(desk.world)
    desk.world.store.put(BUCKET, file_of(JOB), desk.world.visible()[file_of(JOB)])
    assert desk.report().is_sound


@pytest.mark.parametrize("prefix", ["sales/", "lake/"])
def test_i10_a_file_that_a_later_job_replaced_is_no_finding(prefix: str) -> None:
    """Also where the later job's destination lies above."""
    below = "sales/" if prefix == "sales/" else "lake/sales/"
    desk = Checked(World(), destination=Destination(BUCKET, below))
    committed(desk.world, prefix=below)
    committed(desk.world, OTHER_JOB, prefix=prefix, conflict=Conflict.REPLACE)
    report = desk.report()
    assert report.is_sound
    assert report.replaced == 1


OVERWRITE: dict[str, Any] = {"conflict": Conflict.REPLACE, "scope": Scope.PARTITION}


@pytest.mark.parametrize("above", ["sales/", "lake/"])
def test_i10_a_lost_file_is_found_in_a_partition_that_no_later_job_replaced(above: str) -> None:
    """A table with daily overwrites, of its own partitions or from above."""
    below = "sales/" if above == "sales/" else "lake/sales/"
    desk = Checked(World(), destination=Destination(BUCKET, below))
    committed(desk.world, JOB, "dt=1/part", "dt=2/part", prefix=below)
    committed(desk.world, OTHER_JOB, f"{below[len(above) :]}dt=2/part", prefix=above, **OVERWRITE)
    report = desk.report()
    assert (report.is_sound, report.replaced) == (True, 1)
    lost = f"{below}dt=1/part-{JOB}.parquet"
    desk.world.store.delete(BUCKET, lost)
    report = desk.report()
    assert [(one.what, one.key) for one in report.findings] == [(FindingKind.GONE, lost)]
    assert report.replaced == 1


@pytest.mark.parametrize("depth", ["", "dt=1/", "dt=1/h=1/"])
def test_i10_a_partition_that_is_replaced_reaches_down_and_the_root_does_not(depth: str) -> None:
    desk = Checked(World())
    names = [f"{one}part" for one in ("", "dt=1/", "dt=1/h=1/", "dt=2/")]
    committed(desk.world, JOB, *names)
    committed(desk.world, OTHER_JOB, f"{depth}part", **OVERWRITE)
    files = {f"sales/{name}-{JOB}.parquet" for name in names}
    gone = files - desk.world.visible().keys()
    report = desk.report()
    assert (report.is_sound, report.replaced) == (True, len(gone))
    for key in desk.world.visible():
        desk.world.store.delete(BUCKET, key)
    lost = {one.key for one in desk.report().findings}
    assert lost == (files | {f"sales/{depth}part-{OTHER_JOB}.parquet"}) - gone


def test_lists_are_read_once_however_many_files_are_gone(desk: Checked) -> None:
    names = [f"part-{number}" for number in range(8)]
    committed(desk.world, OTHER_JOB, *names)
    for name in names:
        desk.world.store.delete(BUCKET, f"sales/{name}-{OTHER_JOB}.parquet")

    def is_list(call: Call) -> bool:
        return call.key == "sales/_commits/"

    desk.world.plan.run_before("list", lambda: time.sleep(0.05), where=is_list, times=None)
    report = check(desk.world.plan.wrap(desk.world.store), None, ThreadMap(8), SALES)
    assert len(report.findings) == len(names)
    assert len(list(filter(is_list, desk.world.plan.calls))) == 1


def test_i12_a_copied_list_makes_no_lost_file_count_as_replaced(desk: Checked) -> None:
    """Another table's list of a job that replaced, as a copy of that table brings it along."""
    directory = job_directory(OTHER_JOB, "other/")
    committed(desk.world, NEIGHBOUR, prefix="other/")
    committed(desk.world, OTHER_JOB, prefix="other/", conflict=Conflict.REPLACE)
    body = desk.world.store.get(BUCKET, directory.commits, max_bytes=10**6).body
    desk.world.store.put(BUCKET, job_directory(OTHER_JOB).commits, body)
    desk.world.store.delete(BUCKET, file_of(JOB))
    assert [one.what for one in desk.report().findings] == [FindingKind.GONE]
    assert desk.report().replaced == 0


@pytest.mark.parametrize("answer", [InvalidInputError("400"), AccessError("403")])
@pytest.mark.parametrize("at", ["data", "list", "result"])
def test_i12_what_a_stranger_has_put_is_a_finding_and_hides_no_other(
    desk: Checked, at: str, answer: Exception
) -> None:
    """Under SSE-C, or under the key of another account: HEAD and GET are refused."""
    committed(desk.world, OTHER_JOB)
    committed(desk.world, NEIGHBOUR)
    directory = job_directory()
    key = {"data": file_of(JOB), "list": directory.commits, "result": directory.result}[at]
    if at == "result":
        desk.world.store.delete(BUCKET, directory.commits)
    desk.world.store.put(BUCKET, key, b"a stranger's")
    desk.world.store.delete(BUCKET, file_of(OTHER_JOB))
    for verb in ("head", "get", "first_bytes"):
        desk.world.plan.fail(verb, answer, times=None, where=lambda call: call.key == key)
    report = desk.report()
    found = {(one.what, one.key) for one in report.findings}
    assert found == {(FindingKind.UNREADABLE, key), (FindingKind.GONE, file_of(OTHER_JOB))}
    (fix,) = (one.fix for one in report.findings if one.what is FindingKind.UNREADABLE)
    assert ("with the right to read it" in fix) is isinstance(answer, AccessError)
    assert report.files == 1


def test_an_earlier_job_that_replaced_explains_nothing(desk: Checked) -> None:
    committed(desk.world, OTHER_JOB, conflict=Conflict.REPLACE)
    committed(desk.world, NEIGHBOUR)
    desk.world.store.delete(BUCKET, file_of(NEIGHBOUR))
    assert [one.job_id for one in desk.report().findings] == [NEIGHBOUR]


def test_a_list_that_is_gone_or_spoilt_is_found(desk: Checked) -> None:
    key = job_directory().commits
    desk.world.store.put(BUCKET, key, b"{}")
    assert [one.what for one in desk.report().findings] == [FindingKind.UNREADABLE]
    desk.world.store.delete(BUCKET, key)
    (found,) = desk.report().findings
    assert (found.what, found.key) == (FindingKind.GONE, key)


def test_i5_the_lists_of_a_copied_table_say_nothing_here(desk: Checked) -> None:
    for key, body in desk.world.visible().items():
        desk.world.store.put(BUCKET, f"copy/{key.removeprefix('sales/')}", body)
    name = job_directory().commits.removeprefix("sales/")
    body = desk.world.store.get(BUCKET, f"sales/{name}", max_bytes=10**6).body
    desk.world.store.put(BUCKET, f"copy/{name}", body)
    desk.destination = Destination(BUCKET, "copy/")
    report = desk.report()
    assert report.is_sound
    assert (report.jobs, report.foreign) == (0, 1)


def test_a_job_without_a_result_comes_with_its_state(desk: Checked) -> None:
    world, waits, asked = desk.world, job_directory(OTHER_JOB), job_directory(NEIGHBOUR)
    world.open(waits)
    world.announce(waits, world.attempt(waits, "t0"))
    world.ask(asked)
    first, second = sorted(desk.report().open_jobs, key=lambda one: one.requested)
    assert (first.directory, first.requested, first.state) == (waits, False, "OPEN")
    assert (second.directory, second.requested, second.state) == (asked, True, None)


def test_a_job_that_ends_during_the_check_is_not_reported(desk: Checked) -> None:
    asked = job_directory(OTHER_JOB)
    desk.world.ask(asked)
    desk.world.plan.run_after("list", lambda: desk.world.run(asked), nth=1)
    report = desk.report()
    assert report.is_sound
    assert report.open_jobs == []


def test_i12_a_job_of_s3a_is_left_to_the_rescue(desk: Checked) -> None:
    directory = job_directory(OTHER_JOB)
    key = f"{directory.prefix}job-{OTHER_JOB}/00/task_1_0000_m_000000.pendingset"
    desk.world.store.put(BUCKET, key, b"{}")
    assert desk.report().open_jobs == []
