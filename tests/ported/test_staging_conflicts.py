"""The directory and partitioned staging suites: conflicts, listings, unique names."""

from __future__ import annotations

import pytest

from s3commit.core.formats.layout import JobDirectory, partition_of
from s3commit.core.model.errors import InvalidInputError, JobFailedError, TransientError
from s3commit.core.model.job import Destination, Outcome
from s3commit.writer.paths import file_key
from tests.fakes.faults import Crash
from tests.ported.support import Lake, write
from tests.writer.support import BUCKET, JOB

HOURS = [f"dateint={date}/hour={hour}" for date in (20161115, 20161116) for hour in (13, 14)]
FILES = {f"{hour}/part.parquet": hour.encode() for hour in HOURS}
DIRECTORY = JobDirectory(Destination(BUCKET, "dest/"), JOB)


@pytest.fixture
def lake() -> Lake:
    return Lake()


def refused(lake: Lake, **options: str) -> str:
    """Write and commit; the code with which the job is refused."""
    before = lake.visible()
    job = lake.job(**options)
    with pytest.raises(JobFailedError) as failed:
        job.commit([write(job, files=FILES)])
    assert lake.visible() == before
    assert lake.uploads() == []
    assert failed.value.code is not None
    return failed.value.code


def committed(lake: Lake, **options: str) -> None:
    job = lake.job(**options)
    counted = write(job, files=FILES)
    assert sorted(lake.uploads()) == [f"out/{hour}/part-{job.job_id}.parquet" for hour in HOURS]
    assert job.commit([counted]).outcome is Outcome.COMMITTED


def old_at(lake: Lake, *directories: str) -> None:
    for directory in directories:
        lake.put(f"out/{directory}/old.parquet", directory.encode() + b" of before")


# TestStagingDirectoryOutputCommitter


@pytest.mark.parametrize("scope", ["directory", "partition"])
def test_bad_conflict_mode(lake: Lake, scope: str) -> None:
    with pytest.raises(InvalidInputError, match="merge") as bad:
        lake.job(conflict="merge", scope=scope)
    assert bad.value.code == "BAD_OPTION"
    assert lake.all_keys() == []


def test_default_conflict_resolution(lake: Lake) -> None:
    """Append, as in Hadoop from 3.1 on; before, it was to fail."""
    old_at(lake, HOURS[0])
    committed(lake)
    assert len(lake.visible()) == 5


def test_fail_conflict_resolution(lake: Lake) -> None:
    """Judged when the job commits, under its lock, and not as early as at its setup."""
    committed(lake, conflict="fail")
    assert refused(lake, conflict="fail") == "DESTINATION_NOT_EMPTY"


def test_append_conflict_resolution(lake: Lake) -> None:
    old_at(lake, HOURS[0], "elsewhere=1")
    committed(lake, conflict="append")
    assert len(lake.visible()) == 6


def test_replace_conflict_resolution(lake: Lake) -> None:
    old_at(lake, HOURS[0], "elsewhere=1")
    lake.put("out2/part.parquet")
    committed(lake, conflict="replace")
    assert lake.contents() == sorted(FILES.values())
    assert lake.contents("out2/") == [b"old"]


@pytest.mark.parametrize("conflict", ["append", "replace"])
def test_conflict_if_dest_is_file(lake: Lake, conflict: str) -> None:
    """Hadoop fails. To S3 an object named as the directory is another key, and stays."""
    lake.put("out", b"a file named out")
    committed(lake, conflict=conflict)
    assert lake.contents() == sorted(FILES.values())
    assert lake.store.get(BUCKET, "out", max_bytes=100).body == b"a file named out"


# TestStagingPartitionedTaskCommit: Hadoop looks at partitions as a task commits, and not again.


@pytest.mark.parametrize("conflict", ["append", "fail", "replace"])
def test_partitioned_task_commit(lake: Lake, conflict: str) -> None:
    """testDefault, testFail, testAppend, testReplace: a task's commit looks at nothing.

    What it found would not hold until the job commits; the four files are pending, no more.
    """
    old_at(lake, HOURS[0])
    job = lake.job(conflict=conflict, scope="partition")
    lake.tasks.forget_calls()
    write(job, files=FILES)
    assert set(lake.tasks.counts()) == {"create_upload", "upload_part", "put"}
    assert len(lake.uploads()) == 4
    assert lake.contents() == [f"{HOURS[0]} of before".encode()]


# TestStagingPartitionedJobCommit


@pytest.mark.parametrize("conflict", ["append", "fail"])
def test_default_fail_and_append(lake: Lake, conflict: str) -> None:
    """Nothing, parents and peers are in nobody's way; a leaf is, if the job is to fail of it.

    Hadoop's job commit lets the leaf pass: its tasks have looked, at another time.
    """
    committed(lake, conflict=conflict, scope="partition")
    lake = Lake()
    old_at(lake, "dateint=20161116", "dateint=20161116/hour=10")
    committed(lake, conflict=conflict, scope="partition")
    lake = Lake()
    old_at(lake, "dateint=20161115/hour=14")
    if conflict == "append":
        committed(lake, conflict=conflict, scope="partition")
        assert len(lake.visible()) == 5
    else:
        assert refused(lake, conflict=conflict, scope="partition") == "DESTINATION_NOT_EMPTY"


@pytest.mark.parametrize(
    ("there", "stays"),
    [
        ([], []),
        (["dateint=20161115", "dateint=20161115/hour=12"], [0, 1]),
        (["dateint=20161115/hour=12", "dateint=20161115/hour=13"], [0]),
        (["dateint=20161116/hour=13", "dateint=20161116/hour=14"], []),
        (["dateint=20161116/hour=130", "dateint=20161116/hour=1"], [0, 1]),
    ],
    ids=str,
)
def test_replace(lake: Lake, there: list[str], stays: list[int]) -> None:
    """Of what is there, the partitions that the job writes are replaced, and no others."""
    old_at(lake, *there)
    committed(lake, conflict="replace", scope="partition")
    kept = [f"{there[index]} of before".encode() for index in stays]
    assert lake.contents() == sorted([*FILES.values(), *kept])


def test_replace_with_delete_failure(lake: Lake) -> None:
    """Hadoop deletes first, so a failure aborts the job, and the old data is gone with it.

    Here the new data is visible before anything is deleted (I10): the deletion is repeated, by
    another execution if need be, and the job is committed.
    """
    old_at(lake, HOURS[3])
    job = lake.job(conflict="replace", scope="partition")
    counted = write(job, files=FILES)
    lake.steps.fail("delete_seen", TransientError("503"), times=3)
    lake.steps.crash_before("delete_seen", nth=4)
    with pytest.raises(Crash):
        job.commit([counted])
    assert len(lake.visible()) == 5, "all that is new, and what is to go"
    assert job.commit([counted]).replaced == 1
    assert lake.contents() == sorted(FILES.values())


# TestStagingPartitionedFileListing


def test_task_output_listing(lake: Lake) -> None:
    job = lake.job()
    counted = write(job, files=FILES)
    found = [file.key for file in lake.manifest(job, counted).files]
    assert sorted(found) == [f"out/{hour}/part-{job.job_id}.parquet" for hour in HOURS]


@pytest.mark.parametrize("name", ["_metadata", ".part.partial"])
def test_task_output_listing_with_hidden_files(lake: Lake, name: str) -> None:
    """Hadoop passes hidden files over in silence; here the program is told, and loses nothing."""
    task = lake.job().task("0")
    with pytest.raises(InvalidInputError, match="hidden") as bad:
        task.open(f"dateint=20161115/{name}")
    assert bad.value.code == "BAD_PATH"


def test_partitions_resolution() -> None:
    assert partition_of("year=2017/month=10/log-2017-10-04.txt") == "year=2017/month=10/"
    assert partition_of("root.txt") == ""


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("part-0000", f"part-0000-{JOB}"),  # testUUIDPart
        ("part-0000.gz.csv", f"part-0000-{JOB}.gz.csv"),  # testUUIDPartSuffix
        ("parent.dir/part-0000", f"parent.dir/part-0000-{JOB}"),  # testUUIDDottedPath
        (f"part-0000-{JOB}.gz.csv", f"part-0000-{JOB}.gz.csv"),  # testUUIDPartUUID
        # testUUIDParentUUID differs: an id in a directory's name proves nothing of the file.
        (f"{JOB}/part-0000.gz.csv", f"{JOB}/part-0000-{JOB}.gz.csv"),
    ],
)
def test_uuid_added(path: str, key: str) -> None:
    assert file_key(DIRECTORY, path) == f"dest/{key}"


@pytest.mark.parametrize("path", ["dest/", ""], ids=["testUUIDDir", "testUUIDEmptyDir"])
def test_uuid_dir(path: str) -> None:
    with pytest.raises(InvalidInputError):
        file_key(DIRECTORY, path)


def test_empty_uuid(lake: Lake) -> None:
    with pytest.raises(InvalidInputError):
        lake.job(job_id="")
