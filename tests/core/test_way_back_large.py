"""How much an undo holds of many files, and what its client leaves that dies, or stalls."""

import tracemalloc
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from s3commit.core.documents.commit_manifest import CommitHeader, CommittedFile, commit_lines
from s3commit.core.documents.replace_list import write_replaced
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import JobFailedError, JobRefusedError
from s3commit.core.model.limits import MAX_HELD
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ListedObject
from s3commit.core.undo.bound import Look
from s3commit.core.undo.job import plan_undo
from s3commit.core.undo.look_back import look_back
from s3commit.writer.undo import carry_out
from tests.core.enumerated import every_point
from tests.core.way_back import OPTIONS, PARTITION, REPLACE, Table
from tests.core.world import BUCKET, JOB, OTHER_JOB, job_directory
from tests.fakes.faults import Crash, FaultPlan
from tests.fakes.memory import ManualClock, MemoryLedger, MemoryObjectStore

MEMORY = 3_008 * 10**6  # bytes that decide has (stacks/functions.py)
ETAG = f'"{"e" * 32}-1"'


class LargeStore(MemoryObjectStore):
    """A store whose listing is S3's: made as it is read, of texts of its own."""

    files: tuple[str, ...] = ()

    def list(self, bucket: str, prefix: str, *, after: str = "") -> Iterator[ListedObject]:
        yield from super().list(bucket, prefix, after=after)
        first = max(bisect_left(self.files, prefix), bisect_right(self.files, after))
        for n in range(first, len(self.files)):
            if not self.files[n].startswith(prefix):
                return
            yield ListedObject(self.files[n].encode().decode(), ETAG.encode().decode(), 5)


def keys(job: JobDirectory, count: int) -> list[str]:
    return [f"sales/dt={n % 90:02}/part-{n:06}-{job.job_id}.c000.parquet" for n in range(count)]


def peak(count: int) -> int:
    """Bytes that a look holds at most: of an overwrite of ``count`` files by as many."""
    store, clock = LargeStore(BUCKET, clock=ManualClock()), ManualClock()
    ports = Ports(store, MemoryLedger(clock), clock)
    old, over = job_directory(OTHER_JOB), job_directory(JOB)
    gone = write_replaced(ports, over, (ListedObject(key, ETAG, 5) for key in keys(old, count)))
    for job, replaced in ((old, None), (over, gone)):
        files = (CommittedFile(key, 5, ETAG, 7) for key in keys(job, count))
        header = CommitHeader(
            *(job.job_id, "s3://lake/sales/", clock.now(), count, 5 * count, None),
            replaced=replaced,
        )
        store.put(BUCKET, job.commits, b"".join(commit_lines(header, files)))
    store.files = tuple(sorted(keys(over, count)))
    tracemalloc.start()
    found = look_back(Look(ports), over)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.removes) == len(found.restores) == count
    return most


@pytest.mark.parametrize("count", [2_000, pytest.param(200_000, marks=pytest.mark.long)])
def test_an_undo_of_as_many_files_as_it_may_hold_has_room_in_its_function(count: int) -> None:
    """By what each further file takes; beside them are pages of listings and lists."""
    few = count // 2
    each = (peak(count) - peak(few)) / (count - few)  # of two files: one goes, one comes back
    print(f"{each:.0f} bytes")
    assert each / 2 * MAX_HELD < MEMORY * 0.8


@pytest.mark.parametrize(
    ("page", "listed"), [(2, {"sales/dt=1/", "sales/dt=9/"}), (1, {"sales/"})], ids=["few", "many"]
)
def test_an_undo_lists_where_the_job_has_files_whatever_the_table_has_beside_them(
    page: int, listed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it has more directories than a page, it lists the one above them."""
    monkeypatch.setattr("s3commit.core.undo.look_back.PAGE", page)
    table, plan = Table(), FaultPlan()
    table.write("dt=1/", "dt=5/")
    over = table.write("dt=1/", "dt=9/", **PARTITION)
    ports = replace(table.world.unplanned, store=plan.wrap(table.world.store))
    found = look_back(Look(ports), over)
    assert (len(found.removes), len(found.restores)) == (2, 1)
    below = {one.key for one in plan.calls if one.verb == "list"}
    assert {one for one in below if "_" not in one} == listed


@pytest.mark.parametrize("how", ["dies", "stalls"])
def test_i2_i6_i11_the_same_command_goes_on_where_a_client_has_stopped(how: str) -> None:
    """At any of its requests. Its job is done once, by the one or the other."""

    def check(point: int) -> FaultPlan:
        table, plan = Table(), FaultPlan()
        table.write("dt=1/", "dt=2/")
        before = table.visible()
        over = table.write("dt=1/", **REPLACE)
        ports = replace(table.world.unplanned, store=plan.wrap(table.world.store))
        done: list[str] = []

        def undo(by: Ports) -> None:
            try:
                planned = plan_undo(by, over, leave_removed=False)
                carry_out(by, planned, OPTIONS, table.environment)
                done.append("committed")
            except (JobRefusedError, JobFailedError) as refused:
                done.append(refused.code)

        if how == "dies":
            plan.crash_before(nth=point)
        else:
            plan.run_before(None, lambda: undo(table.world.unplanned), nth=point)
        with suppress(Crash):
            undo(ports)
        if how == "dies":
            undo(table.world.unplanned)
        assert table.visible() == before
        # One that stalls between its two listings sees files gone, and does not know by whom.
        assert set(done) <= {"committed", "NOTHING_TO_UNDO", "FILES_CHANGED"}
        assert done.count("committed") <= 1
        return plan

    every_point(check)
