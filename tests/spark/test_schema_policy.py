"""A table of another schema: what is refused, what is merged, and what is left alone."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from s3commit.core.formats.published import success_files
from s3commit.core.model.errors import AccessError, InvalidInputError
from s3commit.spark import batch_writer, committed, schema_policy, write
from s3commit.spark.options import parse_options
from tests.spark.tiny import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = "cast(id as int) id, 'x' s, cast(id as bigint) n, id % 2 k"


def table(session: SparkSession, place: Place, columns: str = TABLE, **said: Any) -> None:
    write(
        session.range(0, 2, 1, 1).selectExpr(*columns.split(", ")), place.uri, mode="append", **said
    )


def append(frame: DataFrame, place: Place, **said: Any) -> None:
    write(frame, place.uri, mode="append", **said)


def refused(frame: DataFrame, place: Place, **said: Any) -> str:
    data, jobs = place.data, set(place.jobs)
    with pytest.raises(InvalidInputError) as caught:
        append(frame, place, **said)
    assert caught.value.code == "SCHEMA_DIFFERS"
    assert "\n" not in str(caught.value)
    assert (place.data, set(place.jobs) - jobs) == (data, set())  # no job was opened
    return str(caught.value)


@pytest.mark.parametrize("policy", [None, "fail", "merge"])
@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_types_that_readers_can_not_merge_are_refused_by_the_columns_name(
    session: SparkSession, place: Place, policy: str | None, file_format: str
) -> None:
    table(session, place, format=file_format)
    other = session.range(1).selectExpr("cast(id as int) id", "named_struct('a', 1) S")
    line = refused(other, place, format=file_format, schemaPolicy=policy)
    assert line.startswith(f"column S is struct<a:int> here and string in the files at {place.uri}")
    assert "cast it to string" in line
    assert "schemaPolicy=ignore" in line


def test_ignore_writes_all_the_same(session: SparkSession, place: Place) -> None:
    table(session, place)
    append(session.sql("select 'a' id"), place, schemaPolicy="ignore")
    assert len(place.data) == 2


def test_fail_refuses_what_merge_would_widen_and_says_so(
    session: SparkSession, place: Place
) -> None:
    table(session, place)
    line = refused(session.sql("select 1 n"), place)
    assert "n is int here and bigint in the files" in line
    assert "give schemaPolicy=merge, which writes it as bigint" in line
    line = refused(session.sql("select 1L id"), place)
    assert "give schemaPolicy=merge, and have it read with a schema" in line


def test_merge_writes_narrower_columns_in_the_tables_type_and_missing_ones_as_nulls(
    session: SparkSession, place: Place, tmp_path: Path
) -> None:
    table(session, place, partition_by="k")
    narrow = session.sql("select cast(7 as tinyint) n, 'new' extra, 1L k, 5 id")
    append(narrow, place, partition_by="k", schemaPolicy="merge")
    back = session.read.option("mergeSchema", "true").parquet(place.download(tmp_path))
    assert dict(back.dtypes) == {
        **{"id": "int", "s": "string", "n": "bigint", "extra": "string"},
        "k": "int",
    }
    (row,) = back.where("extra is not null").select("id", "s", "n", "k").collect()
    assert row.asDict() == {"id": 5, "s": None, "n": 7, "k": 1}
    # the newest file has all columns, and the next write is compared with it
    assert "column extra is date here" in refused(
        session.sql("select current_date() extra, 1L k"), place, partition_by="k"
    )


def test_merge_takes_a_wider_column_and_says_how_it_is_read(
    session: SparkSession, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    table(session, place)
    append(session.sql("select 1L id"), place, schemaPolicy="merge")
    assert f"wider than in the files at {place.destination.uri}: id. Read with a schema" in _err(
        capsys
    )


def test_new_columns_are_written_and_said_and_missing_ones_left_out(
    session: SparkSession, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    table(session, place)
    append(session.sql("select 1 ID, 'x' more"), place)
    assert f"new at {place.destination.uri}: more. Read with the option mergeSchema" in _err(capsys)
    assert len(place.data) == 2


def test_other_partition_columns_are_refused(session: SparkSession, place: Place) -> None:
    table(session, place, partition_by="k")
    other = session.sql("select 1 id, 'x' s, 1L n, 1L k")
    for columns in ("", "s", "k,s"):
        line = refused(other, place, partitionBy=columns, schemaPolicy="merge")
        assert f"partitioned by k ({place.destination.prefix}k=" in line
        assert "Give partitionBy 'k'" in line
    append(other, place, partition_by="k")


def test_an_overwrite_is_compared_where_other_partitions_stay(
    session: SparkSession, place: Place
) -> None:
    table(session, place, partition_by="k")
    other = session.sql("select 'text' id, 1L k")
    dynamic: dict[str, Any] = {"partitionOverwriteMode": "dynamic"}
    with pytest.raises(InvalidInputError, match="column id is string here"):
        write(other, place.uri, mode="overwrite", partition_by="k", **dynamic)
    assert write(other, place.uri, mode="overwrite", partition_by="k").replaced > 0


def test_nothing_is_compared_where_nothing_stays_or_nothing_has_types(
    session: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(schema_policy, "newest_file", lambda place, _: looked.append(place.uri))
    frame = session.sql("select 1 id")
    write(frame, place.uri)
    write(frame, place.uri, mode="overwrite")
    append(frame, place, schemaPolicy="ignore")
    append(frame, place, format="json")
    append(frame, place, format="csv")
    assert looked == []
    append(frame, place, format="orc")
    assert looked == [place.uri + "/"]


def test_files_of_another_writer_are_compared_and_those_of_another_format_are_not(
    session: SparkSession, place: Place
) -> None:
    body = io.BytesIO()
    parquet.write_table(pa.table({"id": ["a"], "t": pa.array([0], pa.timestamp("us"))}), body)
    place.put("_temporary/0/part-0.parquet", b"hidden")
    place.put("a.json", b"{}")
    place.put("part-0", body.getvalue())
    assert "id is int here and string" in refused(session.sql("select 1 id"), place)
    times = session.sql("select current_timestamp() t")  # such a file does not tell the two apart
    append(times, place)
    assert "(" + place.destination.prefix in refused(session.sql("select 1 t"), place)


def test_a_file_that_can_not_be_read_is_said_and_does_not_end_the_write(
    session: SparkSession,
    place: Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place.put("part-0.parquet", b"some text that is no parquet")
    append(session.sql("select 1 id"), place)
    assert "were not compared with those at " + place.uri in (said := _err(capsys))
    assert "part-0.parquet is no parquet file" in said

    def forbidden(*_: object) -> None:
        raise AccessError("no right to read")

    monkeypatch.setattr(schema_policy, "newest_file", forbidden)
    append(session.sql("select 'x' id"), place)
    assert "no right to read" in _err(capsys)


def test_batches_are_compared_when_the_stream_starts(
    session: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    table(session, place)
    looked: list[str] = []
    find = committed.newest_file

    def newest_file(*args: Any) -> Any:
        looked.append(place.uri)
        return find(*args)

    monkeypatch.setattr(schema_policy, "newest_file", newest_file)
    write_batch = batch_writer(place.uri, query="q")
    for number in range(3):
        write_batch(session.sql("select 1 id"), number)
    assert len(looked) == 1
    with pytest.raises(InvalidInputError, match="column id is string here"):
        write_batch(session.sql("select 'x' id"), 3)


def test_the_file_is_one_of_the_newest_job_even_if_some_of_its_files_are_gone(
    session: SparkSession, place: Place
) -> None:
    options = parse_options({"path": place.uri})

    def newest() -> str:
        found = committed.newest_file(options.destination, "parquet")
        return found.key if found else ""

    assert newest() == ""
    table(session, place)
    write(session.range(0, 4, 1, 2), place.uri, mode="overwrite")
    first, second = (place.destination.prefix + name for name in place.data)
    assert newest() == first
    place.tiny.store.delete("tests-spark", first)
    assert newest() == second
    place.put("_SUCCESS", b"")  # as Hadoop's
    assert newest() == second


def test_a_marker_lists_files_or_is_of_another_kind() -> None:
    assert success_files(b'{"filenames": ["/t/a", "/t/b"]}') == ("t/a", "t/b")
    for other in (b"", b"[]", b'{"filenames": [1]}', b"{}"):
        assert success_files(other) == ()


def _err(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err
