"""Make each committed job a snapshot of an Iceberg table, in the order of commit, copying no file.

    table = load_catalog("lake").load_table("analytics.sales")
    follow(table, "s3://lake/sales/")

Call it when a job has ended, as by its event (docs/events.md), for one table one at a time. It may
be repeated: a snapshot's summary names its jobs (``s3commit.jobs``). Iceberg's table has the files'
columns, and those of the paths as identity partitions; nobody else writes it, and it lies
elsewhere, since a job that replaces would remove what lies at its destination.

A job is there as a whole or not at all, and what it has replaced goes in the same snapshot. Where
a later job has removed files of it by now, the snapshot is that of both. The replaced files are
gone from S3 by then: until the next call, a reader of the snapshot before may not find them.

Rights: ``s3:ListBucket``, ``s3:GetObject``; and the catalog's.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import boto3
from pyiceberg.expressions.literals import literal
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, TableProperties
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record

JOBS = "s3commit.jobs"
NULL = "__HIVE_DEFAULT_PARTITION__"


def follow(table: Table, destination: str) -> list[str]:
    """Return the ids of the jobs that new snapshots name."""
    place = _Place(destination)
    there = place.keys()
    jobs = place.ended(there)
    # A job that is removing files now: what it will have removed is not known yet.
    if any(job.replaces for job in place.jobs(place.keys("_commits/")) if job.job_id not in jobs):
        return []
    files = {task.file.file_path: task.file for task in table.scan().plan_files()}
    known = {job for one in table.snapshots() for job in _jobs_of(one)}
    wanted = set(files)
    waiting: list[str] = []
    added: list[str] = []
    for job in sorted(jobs.values(), key=lambda job: job.header["decidedAt"]):
        if job.job_id in known:
            continue
        left = {path for path in wanted if path in there or not job.may_replace(path)}
        if left != wanted or not job.paths & there <= wanted:  # else its snapshot has expired
            wanted = left | job.paths
        waiting.append(job.job_id)
        if wanted <= there and wanted != files.keys():
            _commit(table, files, wanted, waiting)
            files = {task.file.file_path: task.file for task in table.scan().plan_files()}
            added, waiting = [*added, *waiting], []
    return added


def _jobs_of(snapshot: Any) -> list[str]:
    return (snapshot.summary.additional_properties.get(JOBS) or "").split()


def _commit(table: Table, files: dict[str, DataFile], wanted: set[str], jobs: list[str]) -> None:
    """One snapshot of what comes and what goes, as `Table.add_files` makes it of what comes."""
    with table.transaction() as transaction:
        if table.metadata.name_mapping() is None:  # the files have no ids of columns
            mapping = table.schema().name_mapping.model_dump_json()
            transaction.set_properties({TableProperties.DEFAULT_NAME_MAPPING: mapping})
        snapshot = transaction.update_snapshot(snapshot_properties={JOBS: " ".join(jobs)})
        with snapshot.overwrite() as change:
            for path in sorted(wanted - files.keys()):
                file = parquet_file_to_data_file(table.io, table.metadata, path)
                file[3] = _partition(table, path)  # its field `partition`
                change.append_data_file(file)
            for path in sorted(files.keys() - wanted):
                change.delete_data_file(files[path])


def _partition(table: Table, path: str) -> Record:
    """The values of the path: the files themselves do not have these columns."""
    columns = dict(element.split("=", 1) for element in path.split("/") if "=" in element)
    values: list[Any] = []
    for field in table.spec().fields:
        if not isinstance(field.transform, IdentityTransform):
            raise ValueError(f"{field.name} is no identity partition, as a path is")
        text = unquote(columns[field.name])
        kind: Any = table.schema().find_type(field.source_id)
        values.append(None if text == NULL else literal(text).to(kind).value)
    return Record(*values)


@dataclass(frozen=True)
class _Job:
    """A job's commit manifest: ``header``, and the ``paths`` of its files."""

    job_id: str
    destination: str
    header: dict[str, Any]
    paths: frozenset[str]

    @property
    def replaces(self) -> bool:
        return bool((self.header.get("replaced") or {}).get("files"))

    def may_replace(self, path: str) -> bool:
        """Whether a file lies where the job has replaced files."""
        if self.header.get("scope") != "partition":
            return self.replaces
        return self.replaces and path.startswith(self._partitions)

    @cached_property
    def _partitions(self) -> tuple[str, ...]:
        return tuple({path.rpartition("/")[0] + "/" for path in self.paths})


class _Place:
    """A destination of jobs; paths are URIs."""

    def __init__(self, destination: str) -> None:
        self.destination = destination
        self._bucket, _, self._prefix = destination.removeprefix("s3://").partition("/")
        self._s3: Any = boto3.client("s3")

    def keys(self, below: str = "") -> set[str]:
        """All that lies there."""
        pages = self._s3.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=self._prefix + below
        )
        return {
            f"s3://{self._bucket}/{one['Key']}"
            for page in pages
            for one in page.get("Contents", ())
        }

    def ended(self, keys: set[str]) -> dict[str, _Job]:
        """The committed jobs that have ended; the documents of a job go some time after its end."""
        found = {}
        for job in self.jobs(keys):
            directory = f"{self.destination}__magic_job-{job.job_id}/"
            if f"{directory}_result.json" in keys or f"{directory}_job.json" not in keys:
                found[job.job_id] = job
        return found

    def jobs(self, keys: set[str]) -> Iterator[_Job]:
        """The jobs whose commit manifests are there."""
        for key in keys:
            directory, _, name = key.rpartition("/_")
            if f"{directory}/" == f"{self.destination}_commits/" and name.endswith(".jsonl"):
                yield self._read(key, name.removesuffix(".jsonl"))

    def _read(self, key: str, job_id: str) -> _Job:
        body = self._s3.get_object(Bucket=self._bucket, Key=key.split("/", 3)[3])["Body"]
        header, *lines = map(json.loads, body.iter_lines())
        paths = frozenset(f"s3://{self._bucket}/{line['key']}" for line in lines)
        return _Job(job_id, self.destination, header, paths)
