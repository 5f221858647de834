"""`write_table` with a dynamic overwrite: which files stay beside it, and must have its types."""

from contextlib import nullcontext
from typing import Any

import pyarrow as pa
import pytest

import s3commit
from s3commit import InvalidInputError
from s3commit.writer import place, table_write
from tests.lake import Lake


@pytest.fixture
def lake(memory_lake: Lake) -> Lake:
    return memory_lake


@pytest.mark.parametrize("name", ["a", "b"])  # the last partition has the newest file
def test_an_overwrite_of_partitions_does_not_leave_files_of_another_type(
    lake: Lake, name: str
) -> None:
    """It may replace the newest file, which is known once the tasks have ended."""
    uri = f"s3://{lake.bucket}/t/"
    how: Any = {"partition_by": "k", "mode": "overwrite", "partition_overwrite_mode": "dynamic"}
    s3commit.write_table(pa.table({"n": [1, 2], "k": ["a", "b"]}), uri, partition_by="k")
    before, other = lake.visible(), pa.table({"n": ["x"], "k": [name]})
    with pytest.raises(InvalidInputError, match="'n' has the type string here and int64 in") as e:
        s3commit.write_table(other, uri, **how)
    assert e.value.code == "OTHER_SCHEMA"
    assert e.value.message.endswith("The job is aborted; none of its files becomes visible.")
    lake.run_pipeline()
    assert (lake.visible(), lake.open_uploads()) == (before, [])
    whole = pa.table({"n": ["x", "y"], "k": ["a", "b"]})
    assert s3commit.write_table(whole, uri, **how).replaced == 2
    more = pa.table({"n": [1], "k": ["c"]})
    with pytest.raises(InvalidInputError, match="'n' has the type int64 here and string in"):
        s3commit.write_table(more, uri, **how)
    assert s3commit.write_table(more, uri, check_schema=False, **how).replaced == 0


# Of what is beside the files in k=a/ and k=b/, which the overwrite replaces: True if it stays and
# readers read it as the table's.
BESIDE = {
    "below a partition": ("k=a/sub/f.parquet", False),
    "outside of the partitions": ("f.parquet", False),
    "of a job": ("_commits/_f.parquet", False),
    "in another partition": ("k=c/f.parquet", True),
    "behind thousands of documents": ("k=zz/f.parquet", True),
}


@pytest.mark.parametrize("what", BESIDE)
def test_only_files_that_an_overwrite_of_partitions_leaves_are_compared(
    lake: Lake, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, is_refused = BESIDE[what]
    uri, rows = f"s3://{lake.bucket}/t/", pa.table({"n": ["x", "y"], "k": ["a", "b"]})
    s3commit.write_table(pa.table({"n": [1, 2], "k": ["a", "b"]}), uri, partition_by="k")
    lake.store.put(lake.bucket, f"t/{key}", lake.body(lake.visible()[0]))
    if key.startswith("k=zz"):
        monkeypatch.setattr(place, "LOOKED_AT", 10)
        for number in range(20):
            lake.store.put(lake.bucket, f"t/_commits/_{number}", b"")
    how: Any = {"partition_by": "k", "mode": "overwrite", "partition_overwrite_mode": "dynamic"}
    with pytest.raises(InvalidInputError) if is_refused else nullcontext():
        assert s3commit.write_table(rows, uri, **how).rows == 2


def test_an_overwrite_without_rows_replaces_nothing_and_is_not_compared(lake: Lake) -> None:
    uri = f"s3://{lake.bucket}/t/"
    how: Any = {"partition_by": "k", "mode": "overwrite", "partition_overwrite_mode": "dynamic"}
    s3commit.write_table(pa.table({"n": [1], "k": ["a"]}), uri, partition_by="k")
    none = pa.table({"n": ["x"], "k": ["a"]}).slice(0, 0)
    assert s3commit.write_table(none, uri, **how).rows == 0
    seen: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_write, "say", seen.append)
        s3commit.write_table(pa.table({"n": ["x"], "k": ["a"]}), uri, dry_run=True, **how)
    assert "be refused if it leaves files of other types" in seen[-1]
