"""The Glue Data Catalog is told of commits, on moto's S3 and Glue: what is there afterwards."""

import uuid
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from s3commit.aws.catalog import AT_ONCE, GlueTable, tell
from s3commit.aws.env import Catalog
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.formats.documents import CommitHeader, CommittedFile, commit_lines
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import InvalidInputError, TransientError
from s3commit.core.model.job import Destination
from s3commit.core.model.record import ReplacedFacts
from tests.contract.given import make_bucket

NULL = "__HIVE_DEFAULT_PARTITION__"


class Lake:
    """A bucket, a table of moto's Glue below ``sales/``, and jobs that have ended.

    ``before`` and ``after`` are called around the calls of Glue that they name.
    """

    def __init__(self, endpoint: str, *, drops: bool = True, location: str = "") -> None:
        self.s3: Any = boto3.client("s3", endpoint_url=endpoint)
        self.glue: Any = boto3.client("glue", endpoint_url=endpoint)
        self.bucket, name = f"lake-{uuid.uuid4().hex}", f"sales{uuid.uuid4().hex}"
        make_bucket(self.s3, self.bucket)
        self.catalog = Catalog("sales/", f"{name}.sales", drops)
        self.names = {"DatabaseName": name, "TableName": "sales"}
        self.calls: list[tuple[str, int]] = []
        self.before: dict[str, Any] = {}
        self.after: dict[str, Any] = {}
        self.glue.create_database(DatabaseInput={"Name": name})
        storage = {
            "Location": location or f"s3a://{self.bucket}/sales",
            "Columns": [{"Name": "x", "Type": "bigint"}],
            "SerdeInfo": {"SerializationLibrary": "parquet.serde"},
        }
        keys = [{"Name": name, "Type": "string"} for name in ("dt", "city")]
        table = {"Name": "sales", "PartitionKeys": keys, "StorageDescriptor": storage}
        self.glue.create_table(DatabaseName=name, TableInput=table)

    def commit(self, *paths: str, removes: int = 0, at: str = "sales/") -> JobDirectory:
        """A job as it leaves its files and its commit manifest."""
        directory = JobDirectory(Destination(self.bucket, at), str(uuid.uuid4()))
        files = [f"sales/{path}part-{directory.job_id}.parquet" for path in paths]
        for key in files:
            self.s3.put_object(Bucket=self.bucket, Key=key, Body=b"1")
        header = CommitHeader(
            *(directory.job_id, directory.destination.uri, "2026-11-26T00:00:00.000Z"),
            *(len(files), len(files), None),
            replaced=ReplacedFacts("5" * 64, removes, removes) if removes else None,
        )
        lines = commit_lines(header, [CommittedFile(key, 1) for key in files])
        self.s3.put_object(Bucket=self.bucket, Key=directory.commits, Body=b"".join(lines))
        return directory

    def remove(self, path: str) -> None:
        for one in self.s3.list_objects_v2(Bucket=self.bucket, Prefix=f"sales/{path}")["Contents"]:
            self.s3.delete_object(Bucket=self.bucket, Key=one["Key"])

    def tell(self, directory: JobDirectory) -> None:
        tell(S3ObjectStore(self.s3), self, self.catalog, directory)

    def __getattr__(self, name: str) -> Any:
        """Glue, with what happens around its calls."""

        def call(**given: Any) -> Any:
            self.calls += [(name, len(each)) for each in given.values() if isinstance(each, list)]
            self.before.pop(name, lambda: None)()
            answer = getattr(self.glue, name)(**given)
            self.after.pop(name, lambda: None)()
            return answer

        return getattr(self.glue, name) if name == "get_paginator" else call

    def partitions(self) -> dict[tuple[str, ...], Any]:
        pages = self.glue.get_paginator("get_partitions").paginate(**self.names)
        return {
            tuple(one["Values"]): one["StorageDescriptor"]
            for page in pages
            for one in page["Partitions"]
        }

    def cities(self) -> set[str]:
        return {city for _, city in self.partitions()}


@pytest.fixture
def lake(moto_endpoint: str) -> Iterator[Lake]:
    yield Lake(moto_endpoint)


def in_city(name: str) -> str:
    return f"dt=2026-11-26/city={name}/"


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("dt=2026-11-26/city=a b/", ["2026-11-26", "a b"]),
        ("DT=2026-11-26/City=a%2Fb%3D%25/", ["2026-11-26", "a/b=%"]),
        ("dt=2026-11-26/city=Köln%zz%4/", ["2026-11-26", "Köln%zz%4"]),
        ("dt=2026-11-26/city=%C3%BC/", ["2026-11-26", "\u00c3\u00bc"]),  # as Spark reads it
        (f"dt={NULL}/city={NULL}/", [NULL, NULL]),
        ("dt=2026-11-26/", None),
        ("city=a/dt=2026-11-26/", None),
        ("dt=2026-11-26/city/", None),
        ("", None),
    ],
)
def test_a_path_has_the_values_of_the_tables_columns_or_is_refused(
    lake: Lake, path: str, values: list[str] | None
) -> None:
    table = GlueTable(lake, lake.catalog, lake.bucket)
    assert table.has(path) == (values is not None)
    if values is None:
        with pytest.raises(InvalidInputError, match="whose partition columns are dt, city"):
            table.values(path)
    else:
        assert table.values(path) == values


def test_new_partitions_have_the_tables_format_and_come_by_pages(lake: Lake) -> None:
    many = [in_city(f"{number:03}%3A") for number in range(AT_ONCE + 1)]
    job = lake.commit(*many)
    for _ in range(2):
        lake.tell(job)
    found = lake.partitions()
    assert set(found) == {("2026-11-26", f"{number:03}:") for number in range(len(many))}
    one = found["2026-11-26", "007:"]
    assert one["Location"] == f"s3a://{lake.bucket}/sales/{many[7]}"
    assert one["SerdeInfo"] == {"SerializationLibrary": "parquet.serde"}
    lake.remove("")
    lake.tell(lake.commit(removes=len(many)))
    assert lake.partitions() == {}
    sizes = {name: [size for each, size in lake.calls if each == name] for name, _ in lake.calls}
    assert sizes["batch_create_partition"] == [AT_ONCE, 1, AT_ONCE, 1]
    assert sizes["batch_delete_partition"] == [AT_ONCE, 1]


@pytest.mark.parametrize("drops", [True, False])
def test_an_empty_partition_goes_if_the_parameter_says_so(moto_endpoint: str, drops: bool) -> None:
    lake = Lake(moto_endpoint, drops=drops)
    lake.tell(lake.commit(in_city("a"), in_city("b")))
    lake.remove(in_city("a"))
    lake.tell(lake.commit(in_city("c"), removes=1))
    assert lake.cities() == ({"b", "c"} if drops else {"a", "b", "c"})


def test_events_in_any_order_end_with_what_s3_has(lake: Lake) -> None:
    """Also a partition that is back, as after an undo of what removed it."""
    first = lake.commit(in_city("a"))
    lake.remove(in_city("a"))
    second = lake.commit(in_city("b"), removes=1)
    for job in (second, first, second):
        lake.tell(job)
        assert lake.cities() == {"b"}
    lake.commit(in_city("a"))
    lake.tell(lake.commit(removes=1))
    assert lake.cities() == {"a", "b"}


def test_only_the_jobs_own_place_is_compared_and_strangers_files_are_left_alone(lake: Lake) -> None:
    lake.tell(lake.commit("dt=2026-11-25/city=a/", in_city("b")))
    lake.remove("dt=")
    lake.s3.put_object(Bucket=lake.bucket, Key="sales/dt=2026-11-26/notes.txt", Body=b"1")
    lake.tell(lake.commit(removes=2, at="sales/dt=2026-11-26/"))
    assert set(lake.partitions()) == {("2026-11-25", "a")}


@pytest.mark.parametrize("dies", [False, True])
def test_a_commit_while_its_partition_is_dropped_is_in_the_catalog(lake: Lake, dies: bool) -> None:
    """Also if the call dies behind the drop, and is repeated."""
    lake.tell(lake.commit(in_city("a"), in_city("b")))
    lake.remove(in_city("a"))
    removing = lake.commit(removes=1)

    def another() -> None:
        lake.tell(lake.commit(in_city("a")))

    def die() -> None:
        raise TransientError("died")

    lake.before["batch_delete_partition"] = another
    if dies:
        lake.after["batch_delete_partition"] = die
        with pytest.raises(TransientError):
            lake.tell(removing)
        assert lake.cities() == {"b"}
    lake.tell(removing)
    assert lake.cities() == {"a", "b"}


@pytest.mark.parametrize(
    ("location", "path", "why"),
    [
        ("s3://other/sales/", in_city("a"), "lies at s3://other/sales/"),
        ("", "dt=2026-11-26/", "'dt=2026-11-26/' is no partition of table"),
    ],
)
def test_a_table_elsewhere_or_with_other_columns_is_not_told_and_the_note_says_why(
    moto_endpoint: str, location: str, path: str, why: str
) -> None:
    lake = Lake(moto_endpoint, location=location)
    job, store = lake.commit(path), S3ObjectStore(lake.s3)
    notes: list[bytes] = []
    lake.before["get_table"] = lambda: notes.append(
        store.get(lake.bucket, job.catalog, max_bytes=9999).body
    )
    with pytest.raises(InvalidInputError, match=why):
        lake.tell(job)
    notes.append(store.get(lake.bucket, job.catalog, max_bytes=9999).body)
    told = f"table {lake.catalog.table} of the catalog was not told of this job: "
    assert (notes[0].decode(), why in notes[1].decode()) == (
        f"{told}it is being told, or that died",
        True,
    )
    assert lake.partitions() == {}


def test_the_note_goes_when_a_try_went_through(lake: Lake) -> None:
    job, store = lake.commit(in_city("a")), S3ObjectStore(lake.s3)
    lake.tell(job)
    assert store.head(lake.bucket, job.catalog) is None
