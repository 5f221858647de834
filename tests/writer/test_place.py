"""What lies at a destination decides, before the first task, whether a write is sensible."""

import io
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import s3commit
from s3commit.core.formats.layout import SUMMARIES, parse_destination
from s3commit.core.model.errors import AccessError, InvalidInputError, S3CommitError
from s3commit.core.ports.objects import ListedObject
from s3commit.writer.options import Options, make_options
from s3commit.writer.place import LOGS, LOOKED_AT, check_place, refuse_files
from tests.fakes.faults import FaultPlan
from tests.fakes.memory import ManualClock, MemoryObjectStore
from tests.lake import Lake
from tests.places import LATE, PLACES, ROOT, UNLIKE, Cell, cells, one_row, put, read_as_spark

DESTINATION = parse_destination("s3://lake/p/t/")
ROWS = pa.table({"id": pa.array([0, 1, 2], pa.int64()), "dt": ["d0", "d1", "d2"]})
HIDDEN = ["p/t/_commits/_x.jsonl", "p/t/__magic_job-1/_job.json", "p/t/_SUCCESS", "p/t/.a/part-0"]


def holding(*keys: str) -> MemoryObjectStore:
    store = MemoryObjectStore("lake", clock=ManualClock(step=1))
    for key in keys:
        store.put("lake", key, b"x")
    return store


def append(by: Sequence[str], **more: Any) -> Options:
    return make_options(DESTINATION.uri, partition_by=by, check_names=False, **more)


def refusal(keys: Sequence[str], partition_by: Sequence[str], *, objects: bool) -> str | None:
    """The message, of what stands for directories or of files that stay."""
    try:
        check_place(holding(*keys), append(partition_by), compares=not objects)
    except InvalidInputError as error:
        assert error.code == ("PATH_IS_OBJECT" if objects else "OTHER_PARTITIONS")
        return error.message
    return None


@pytest.mark.parametrize(
    ("key", "partition_by"),
    [
        ("p/t", []),
        ("p/t", ["dt"]),
        ("p/t/dt=1", ["dt"]),
        ("p/t/dt=", ["dt", "hour"]),
        ("p/t/a%3Db=1", ["a=b"]),
    ],
)
def test_an_object_at_a_directorys_own_name_is_refused(key: str, partition_by: list[str]) -> None:
    found = refusal([key, f"{key}/part-0", *HIDDEN], partition_by, objects=True)
    assert found is not None
    assert f"s3://lake/{key}," in found


@pytest.mark.parametrize(
    ("keys", "partition_by"),
    [
        ([], ["dt"]),
        (["p/t/", "p/t/dt=1/", "p/t/dt=1/part-0"], ["dt"]),
        (["p/t2", "p/t-1/x", "p/t.parquet", "p"], ["dt"]),
        (["p/t/dt=1"], []),  # any name is a file's where there are no partitions
        (["p/t/dt=1_$folder$", "p/t/dt=1/part-0"], ["dt"]),  # EMRFS's marker of a directory
        (["p/t/dt2=1", "p/t/dt", "p/t/hour=1"], ["dt", "hour"]),
    ],
)
def test_other_names_are_none_of_its(keys: list[str], partition_by: list[str]) -> None:
    assert refusal([*keys, *HIDDEN], partition_by, objects=True) is None


FLAT, BY_DT, BY_BOTH = "p/t/part-0", "p/t/dt=1/part-0", "p/t/dt=1/hour=2/part-0"


@pytest.mark.parametrize(
    ("keys", "good"),
    [
        ([FLAT], []),
        ([BY_DT], ["dt"]),
        ([BY_BOTH], ["dt", "hour"]),
        (["p/t/year=1/dt=1/part-0"], ["year", "dt"]),
        ([FLAT, BY_DT], ["dt"]),  # Spark reads the partitions' rows alone
        (["p/t/dt=0/_SUCCESS", "p/t/dt=0/", BY_BOTH], ["dt", "hour"]),
        (["p/t/a=1/b=2/_x", "p/t/_day=1/part-0"], ["_day"]),
        (["p/t/a%3Ab=1/part-0"], ["a:b"]),
        (["p/t/plain/dt=1/part-0", FLAT], []),
        (["p/t/DT=0/_SUCCESS", BY_DT], ["dt"]),
    ],
)
@pytest.mark.parametrize("by", [[], ["dt"], ["DT"], ["dt", "hour"], ["hour", "dt"], ["hour"]])
def test_files_with_other_partition_columns_are_refused(
    keys: list[str], good: list[str], by: list[str]
) -> None:
    found = refusal([*keys, *HIDDEN], by, objects=False)
    assert (found is None) == (by == good)
    assert refusal([*keys, *HIDDEN], good, objects=False) is None


def test_a_table_without_files_takes_any_columns() -> None:
    assert refusal([*HIDDEN, "p/t/", "p/t/dt=1/"], ["hour"], objects=False) is None


@pytest.mark.parametrize(
    ("keys", "newest"),
    [
        ([FLAT, "p/t/a", "p/t/z"], "p/t/z"),  # in the order in which they are put
        (["p/t/z", "p/t/a", *HIDDEN], "p/t/a"),
        ([BY_DT, "p/t/dt=2/z", "p/t/dt=2/a", "p/t/dt=3/_x", FLAT], "p/t/dt=2/a"),
        ([BY_DT, "p/t/dt=__HIVE_DEFAULT_PARTITION__/z"], BY_DT),  # it is no last day
        (["p/t/dt=__HIVE_DEFAULT_PARTITION__/z"], "p/t/dt=__HIVE_DEFAULT_PARTITION__/z"),
        ([*HIDDEN, "p/t/", "p/t/dt=1/"], None),
    ],
)
def test_the_newest_file_is_known_where_files_stay(keys: list[str], newest: str | None) -> None:
    look = partial(check_place, holding(*keys), append(["x"], check_partitions=False))
    assert look(compares=False) is None
    found = look()
    assert (found and found.key) == newest


def test_who_may_not_list_is_not_stopped() -> None:
    closed = FaultPlan().fail(None, AccessError("no"), times=None)
    for store in (closed.wrap(MemoryObjectStore("lake")), MemoryObjectStore("other")):
        check_place(store, append(["dt"]))
        refuse_files(store, make_options(DESTINATION.uri, mode="error"))


def test_partitions_without_files_are_not_looked_through() -> None:
    plan, store = FaultPlan(), holding(*(f"p/t/dt={number:02d}/_SUCCESS" for number in range(50)))
    check_place(plan.wrap(store), append(["hour"]))
    assert 0 < plan.count() <= 7


def test_a_huge_directory_is_not_read_to_its_end() -> None:
    asked = []

    class Counting(MemoryObjectStore):
        def below(self, bucket: str, prefix: str) -> Iterator[ListedObject]:
            for number in range(10**9):
                asked.append(number)
                yield ListedObject(f"{prefix}_{number}", "", 0)

    check_place(Counting("lake"), append(["dt"]))
    assert len(asked) <= 2 * (LOOKED_AT + 1)  # and of the directory that would be Iceberg's


@pytest.mark.parametrize("log", LOGS)
def test_a_log_behind_the_names_that_were_seen_is_found(log: Any) -> None:
    class Huge(MemoryObjectStore):
        def below(self, bucket: str, prefix: str) -> Iterator[ListedObject]:
            if prefix != "p/t/":
                return super().below(bucket, prefix)
            return (ListedObject(f"{prefix}{one}", "", 0) for one in range(LOOKED_AT))

    store = Huge("lake")
    check_place(store, append([]))
    store.put("lake", f"p/t/{log.name}/v1.metadata.json", b"")
    with pytest.raises(InvalidInputError, match=rf"/{log.name} exists: "):
        check_place(store, append([]))


def by_write_table(lake: Lake, name: str, cell: Cell, **given: Any) -> int:
    table = ROWS if cell.by else ROWS.drop_columns("dt")
    mode: Any = cell.mode
    given |= {"partition_by": cell.by or None, "partition_overwrite_mode": cell.overwrite_mode}
    return s3commit.write_table(table, f"s3://{lake.bucket}/{name}/", mode=mode, **given).rows


def by_open_job(lake: Lake, name: str, cell: Cell, **given: Any) -> int:
    mode: Any = cell.mode
    given |= {"partition_by": cell.by or None, "partition_overwrite_mode": cell.overwrite_mode}
    with s3commit.open_job(f"s3://{lake.bucket}/{name}/", mode=mode, **given) as job:
        with job.task("0") as task:
            for number in range(3):
                where = f"{cell.by[0]}=d{number}/" if cell.by else ""
                path = f"{where}part-{number}.parquet"
                with task.open(path, rows=1) as file:
                    file.write(one_row(number))
        return job.commit([task.counted]).rows


@pytest.fixture
def lake(memory_lake: Lake) -> Lake:
    return memory_lake


CLIENTS = {"write_table": by_write_table, "open_job": by_open_job}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_place_is_refused_or_all_rows_are_read(lake: Lake, client: str, place: str) -> None:
    def there(name: str) -> set[str]:
        return {one.key for one in lake.store.list(lake.bucket, name)}

    def rows_of(name: str, key: str) -> int:
        return int(parquet.ParquetFile(io.BytesIO(lake.body(f"{name}/{key}"))).metadata.num_rows)

    for number, cell in enumerate(cells(place, client)):
        name = f"t{number}"
        before = put(cell, name, lambda key, body: lake.store.put(lake.bucket, key, body))
        what = f"{client}, {place}, {cell.mode} {cell.overwrite_mode or ''}"
        try:
            assert CLIENTS[client](lake, name, cell) == 3, what
        except S3CommitError as error:
            code = error.code + (LATE if there(name) != before else "")
            assert code == cell.answer, what
            assert there(name) >= before, what
        else:
            names = [key.removeprefix(f"{name}/") for key in there(name)]
            rows = read_as_spark(names, partial(rows_of, name))
            assert cell.answer in {"COMMITTED", rows}, what
        assert lake.open_uploads() == []


@pytest.mark.parametrize("summary", SUMMARIES)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_summary_is_permitted_as_other_columns_are(lake: Lake, client: str, summary: str) -> None:
    write = partial(CLIENTS[client], lake, "t", Cell((), [], "append", None, 3))
    lake.store.put(lake.bucket, f"t/{summary}", b"x")
    with pytest.raises(InvalidInputError, match="check_partitions=False"):
        write()
    assert write(check_partitions=False) == 3


def test_where_clients_differ_a_guide_says_so() -> None:
    for one in UNLIKE:
        page = (ROOT / "docs" / "guide" / one["page"]).read_text()
        assert one["sentence"] in re.sub(r"\s+", " ", page)
