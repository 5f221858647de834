"""The recipe on compaction: whatever others do meanwhile, no row is lost or comes back."""

import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import dataset

import s3commit
from tests.e2e.conftest import Deployed
from tests.guide import GUIDE, blocks

DAY, OTHER_DAY = "2026-11-21", "2026-11-22"


def put(table: str, *rows: int, day: str = DAY, **how: Any) -> s3commit.CommitResult:
    frame = pa.table({"n": pa.array(rows, pa.int64()), "dt": [day] * len(rows)})
    return s3commit.write_table(frame, table, partition_by="dt", **{"mode": "append", **how})


def overwrite(table: str) -> None:
    put(table, 8, mode="overwrite", partition_overwrite_mode="dynamic")
    put(table, 9)
    put(table, 10)


def append_late(table: str) -> None:
    """Its task has ended before the overwrite, it is committed behind it."""
    job = s3commit.open_job(table, partition_by="dt")
    frame = pa.table({"n": [7]})
    with job.task("0") as task, task.open(f"dt={DAY}/part-0.parquet", rows=1) as file:
        pa.parquet.write_table(frame, file)
    LATE.append(lambda: job.commit([task.counted]))


LATE: list[Callable[[], object]] = []
SMALL = [1, 2, 3]
# What others do between the read and the write, and the partition's rows in the end.
MEANWHILE: dict[str, tuple[Callable[[str], object], list[int], bool]] = {
    "nothing": (lambda _: None, SMALL, True),
    "an append": (lambda table: put(table, 4), [*SMALL, 4], False),
    "an append elsewhere": (lambda table: put(table, 4, day=OTHER_DAY), SMALL, True),
    "an append that has not ended": (append_late, [*SMALL, 7], True),
    "an overwrite of as many files": (overwrite, [8, 9, 10], False),
    "an overwrite of the table": (
        lambda table: put(table, 11, day=OTHER_DAY, mode="overwrite"),
        [],
        False,
    ),
}


@pytest.mark.parametrize("case", MEANWHILE)
def test_i6_a_compaction_keeps_what_others_write_meanwhile(
    environment: Deployed, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    happens, rows, stands = MEANWHILE[case]
    bucket, name = environment.bucket, f"compact-{uuid.uuid4().hex}"
    environment.client("s3").put_bucket_versioning(
        Bucket=bucket, VersioningConfiguration={"Status": "Enabled"}
    )
    table = f"s3://{bucket}/{name}/"
    frame = pa.table({"n": [*SMALL, 100], "dt": [*[DAY] * 3, OTHER_DAY]})
    s3commit.write_table(frame, table, partition_by="dt", max_records_per_file=1)
    (page,) = blocks(GUIDE / "compaction.md", "python")
    code = page.replace("lake/events/", f"{bucket}/{name}/").replace('"events/', f'"{name}/')
    names: dict[str, Any] = {}
    exec(code.replace('"lake"', f'"{bucket}"'), names)
    real = s3commit.write_table

    def write(*rows: Any, **how: Any) -> s3commit.CommitResult:
        monkeypatch.setattr(s3commit, "write_table", real)
        happens(table)
        return real(*rows, **how)

    monkeypatch.setattr(s3commit, "write_table", write)
    if stands:
        assert names["compact"](DAY).files == 1
    else:
        with pytest.raises(RuntimeError, match="somebody else wrote"):
            names["compact"](DAY)
    while LATE:
        LATE.pop()()
    found = dataset.dataset(table, partitioning="hive").to_table().to_pylist()
    assert sorted(row["n"] for row in found if row["dt"] == DAY) == rows
