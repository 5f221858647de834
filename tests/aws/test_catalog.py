"""The Glue Data Catalog is told of commits, on moto's S3 and Glue: what is there afterwards."""

import uuid
from collections.abc import Callable
from typing import Any

import boto3
import pytest

from s3commit.aws.catalog import AT_ONCE, GlueTable, tell
from s3commit.aws.env import Catalog
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.documents.catalog_note import CATALOG_NOTE, CatalogNote
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import InvalidInputError, NotFoundError, TransientError
from tests.contract.given import make_bucket
from tests.past import past_job

NULL = "__HIVE_DEFAULT_PARTITION__"


class Lake:
    """A bucket, a table of moto's Glue below ``sales/``, and jobs that have ended."""

    def __init__(self, endpoint: str, *, drops: bool = True, location: str = "") -> None:
        self.s3: Any = boto3.client("s3", endpoint_url=endpoint)
        self.glue: Any = boto3.client("glue", endpoint_url=endpoint)
        self.bucket = f"lake-{uuid.uuid4().hex}"
        make_bucket(self.s3, self.bucket)
        self.store = S3ObjectStore(self.s3)
        self.catalog = Catalog("sales/", f"{self.bucket}.sales", drops)
        self.glue.create_database(DatabaseInput={"Name": self.bucket})
        storage = {
            "Location": location or f"s3a://{self.bucket}/sales",
            "SerdeInfo": {"SerializationLibrary": "parquet.serde"},
        }
        keys = [{"Name": name, "Type": "string"} for name in ("dt", "city")]
        table = {"Name": "sales", "PartitionKeys": keys, "StorageDescriptor": storage}
        self.glue.create_table(DatabaseName=self.bucket, TableInput=table)

    def commit(self, *paths: str, removes: int = 0, at: str = "sales/") -> JobDirectory:
        files = {f"sales/{path}part": b"1" for path in paths}
        return past_job(self.store, f"s3://{self.bucket}/{at}", files, removes=removes)

    def tell(self, *paths: str, **how: Any) -> JobDirectory:
        job = self.commit(*paths, **how)
        tell(self.store, self.glue, self.catalog, job)
        return job

    def remove(self, path: str) -> None:
        for one in self.store.list(self.bucket, f"sales/{path}"):
            self.store.delete(self.bucket, one.key)

    def once(self, event: str, act: Callable[[], object]) -> None:
        """Do something the next time that botocore comes to ``event``."""

        def first(**_: Any) -> None:
            self.glue.meta.events.unregister(event, first)
            act()

        self.glue.meta.events.register(event, first)

    def note(self, job: JobDirectory) -> CatalogNote:
        return CATALOG_NOTE.decode(self.store.get(self.bucket, job.catalog, max_bytes=9999).body)

    def partitions(self) -> dict[tuple[str, ...], Any]:
        asked = {"DatabaseName": self.bucket, "TableName": "sales"}
        found = self.glue.get_paginator("get_partitions").paginate(**asked).build_full_result()
        return {tuple(one["Values"]): one["StorageDescriptor"] for one in found["Partitions"]}

    def cities(self) -> set[str]:
        return {city for _, city in self.partitions()}


@pytest.fixture
def lake(moto_endpoint: str) -> Lake:
    return Lake(moto_endpoint)


def in_city(name: str) -> str:
    return f"dt=2026-11-26/city={name}/"


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("DT=2026-11-26/City=a%2Fb%3D% c/", ["2026-11-26", "a/b=% c"]),
        ("dt=2026-11-26/city=Köln%zz%4/", ["2026-11-26", "Köln%zz%4"]),
        ("dt=2026-11-26/city=%C3%BC/", ["2026-11-26", "\u00c3\u00bc"]),  # as Spark reads it
        (f"dt={NULL}/city={NULL}/", [NULL, NULL]),
        *((path, None) for path in ("dt=1/", "city=a/dt=1/", "dt=1/city/", "dt=1/city=a/x=1/", "")),
    ],
)
def test_a_path_has_values_or_is_refused(lake: Lake, path: str, values: list[str] | None) -> None:
    table = GlueTable(lake.glue, lake.catalog, lake.bucket)
    assert table.has(path) == (values is not None)
    if values:
        assert table.values(path) == values


def test_new_partitions_have_the_tables_format_and_come_by_pages(lake: Lake) -> None:
    sizes: list[int] = []
    for name in ("BatchCreatePartition", "BatchDeletePartition"):
        lake.glue.meta.events.register(
            f"provide-client-params.glue.{name}",
            lambda params, **_: sizes.extend(
                len(one) for one in params.values() if isinstance(one, list)
            ),
        )
    many = [in_city(f"{number:03}%3A") for number in range(AT_ONCE + 1)]
    job = lake.tell(*many)
    tell(lake.store, lake.glue, lake.catalog, job)
    found = lake.partitions()
    assert set(found) == {("2026-11-26", f"{number:03}:") for number in range(len(many))}
    one = found["2026-11-26", "007:"]
    assert one["Location"] == f"s3a://{lake.bucket}/sales/{many[7]}"
    assert one["SerdeInfo"] == {"SerializationLibrary": "parquet.serde"}
    lake.remove("")
    lake.tell(removes=len(many))
    assert (lake.partitions(), sizes) == ({}, [AT_ONCE, 1, AT_ONCE, 1, AT_ONCE, 1])


@pytest.mark.parametrize("drops", [True, False])
def test_an_empty_partition_goes_if_the_parameter_says_so(moto_endpoint: str, drops: bool) -> None:
    lake = Lake(moto_endpoint, drops=drops)
    lake.tell(in_city("a"), in_city("b"))
    lake.remove(in_city("a"))
    lake.tell(in_city("c"), removes=1)
    assert lake.cities() == ({"b", "c"} if drops else {"a", "b", "c"})


@pytest.mark.parametrize("below", ["HIVE_UNION_SUBDIR_1/", "x=1/y/"])
def test_a_partition_whose_files_lie_further_below_is_not_empty(lake: Lake, below: str) -> None:
    lake.tell(in_city("a"), in_city("b"), in_city("aa"))
    lake.remove(in_city("a"))
    lake.remove(in_city("b"))
    lake.store.put(lake.bucket, f"sales/{in_city('a')}{below}000000_0", b"1")
    lake.tell(removes=2)
    assert lake.cities() == {"a", "aa"}


@pytest.mark.parametrize("city", ["", "refused"])
def test_a_partition_that_glue_refuses_keeps_no_other_out(lake: Lake, city: str) -> None:
    """Be it botocore, for an empty value, or Glue's answer; an empty one of strangers is none."""

    def refuse(parsed: Any, **_: Any) -> None:
        detail = {"ErrorCode": "InvalidInputException", "ErrorMessage": "no"}
        parsed["Errors"] = [{"PartitionValues": ["2026-11-26", city], "ErrorDetail": detail}]

    many = {f"{number:03}" for number in range(AT_ONCE + 1)}
    lake.tell(in_city("gone"))
    lake.remove(in_city("gone"))
    lake.commit(in_city("a"), in_city(""))
    if not city:  # the empty ones go all the same
        with pytest.raises(InvalidInputError):
            lake.tell(in_city("b"), in_city(city), removes=1)
        assert lake.cities() == {"a", "b"}
    lake.tell(removes=1)
    assert lake.cities() == ({"a"} if city else {"a", "b"})
    if city:
        lake.glue.meta.events.register("after-call.glue.BatchCreatePartition", refuse)
    job = lake.commit(*map(in_city, [city, *many]))
    with pytest.raises((InvalidInputError, TransientError)) as refused:
        tell(lake.store, lake.glue, lake.catalog, job)
    assert (city or "min length: 1") in refused.value.message
    assert lake.cities() >= many
    assert lake.note(job).error == refused.value.message


def test_events_in_any_order_end_with_what_s3_has(lake: Lake) -> None:
    """Also a partition that is back, as after an undo of what removed it."""
    first = lake.commit(in_city("a"))
    lake.remove(in_city("a"))
    second = lake.commit(in_city("b"), removes=1)
    for job in (second, first, second):
        tell(lake.store, lake.glue, lake.catalog, job)
        assert lake.cities() == {"b"}
    lake.commit(in_city("a"))
    lake.tell(removes=1)
    assert lake.cities() == {"a", "b"}


def test_only_the_jobs_own_place_is_compared_and_strangers_files_are_left_alone(lake: Lake) -> None:
    lake.tell("dt=2026-11-25/city=a/", in_city("b"))
    lake.remove("dt=")
    lake.store.put(lake.bucket, "sales/dt=2026-11-26/notes.txt", b"1")
    lake.tell(removes=2, at="sales/dt=2026-11-26/")
    assert set(lake.partitions()) == {("2026-11-25", "a")}


@pytest.mark.parametrize("dies", [False, True])
def test_a_commit_while_its_partition_is_dropped_is_in_the_catalog(lake: Lake, dies: bool) -> None:
    """Also if the call dies behind the drop, and is repeated."""
    lake.tell(in_city("a"), in_city("b"))
    lake.remove(in_city("a"))
    removing = lake.commit(removes=1)

    def die() -> None:
        raise TransientError("died")

    lake.once("before-call.glue.BatchDeletePartition", lambda: lake.tell(in_city("a")))
    if dies:
        lake.once("after-call.glue.BatchDeletePartition", die)
        with pytest.raises(TransientError):
            tell(lake.store, lake.glue, lake.catalog, removing)
        assert lake.cities() == {"b"}
    tell(lake.store, lake.glue, lake.catalog, removing)
    assert lake.cities() == {"a", "b"}


@pytest.mark.parametrize(
    ("location", "path", "why"),
    [
        ("s3://other/sales/", in_city("a"), "is at s3://other/sales/"),
        (
            "",
            "dt=1/",
            "'dt=1/' is not a partition of table .*, whose partition columns are dt, city",
        ),
    ],
)
def test_a_note_stands_until_then(moto_endpoint: str, location: str, path: str, why: str) -> None:
    lake, sound = Lake(moto_endpoint, location=location), Lake(moto_endpoint)
    job, notes = lake.commit(path), list[CatalogNote]()
    lake.once("before-call.glue.GetTable", lambda: notes.append(lake.note(job)))
    with pytest.raises(InvalidInputError, match=why) as raised:
        tell(lake.store, lake.glue, lake.catalog, job)
    assert notes == [CatalogNote(lake.catalog.table)]
    assert lake.note(job) == CatalogNote(lake.catalog.table, raised.value.message)
    assert lake.partitions() == {}
    with pytest.raises(NotFoundError):
        sound.note(sound.tell(in_city("a")))
