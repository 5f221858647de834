"""Asks Hadoop's own classes to load what s3commit writes: pendingset and `_SUCCESS`.

From the repository's root, with the jars of pom.xml in a folder outside it:
python -m tests.golden.s3a.load_in_hadoop --jars ../s3a-jars
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from s3commit.core.formats.manifest import encode_pendingset
from s3commit.core.formats.published import encode_success
from s3commit.core.model.job import Destination
from s3commit.core.model.pending import PendingFile, PendingSet
from s3commit.core.model.record import JobRecord, PlanFacts
from s3commit.core.model.states import JobState
from tests.golden.s3a.driver import session

JOB = "0b6f6f0e-0000-4000-8000-000000000001"
KEY = f"sales/day=1/part-00000-{JOB}.parquet"
ETAGS = ('"0cc175b9c0f1b6a831c399e269772661"', '"92eb5ffee6ae2fec3ad71c777531578f"')


def our_pendingset() -> bytes:
    """A manifest as a task of ours writes it."""
    file = PendingFile(
        "lake", KEY, "an-upload", ETAGS, 42, job_id=JOB, task_id="t0", attempt_id="a0", rows=7
    )
    return encode_pendingset(PendingSet(JOB, (file,), "t0", "a0"))


def our_success() -> bytes:
    """A ``_SUCCESS`` as the pipeline writes it."""
    now = "2026-11-21T22:07:22.123Z"
    record = JobRecord(
        job_id=JOB,
        destination=Destination("lake", "sales/"),
        state=JobState.COMMITTED,
        generation=1,
        created_at=now,
        updated_at=now,
        plan=PlanFacts("5ee", 1, 1, 42, 7),
        decided_at=now,
    )
    return encode_success(record, [KEY], timestamp=1795298842123)


def main() -> None:
    """Load each, and print what Hadoop reads in it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jars", type=Path, required=True)
    spark = session("http://127.0.0.1:9", parser.parse_args().jars, [])
    jvm: Any = spark._jvm
    files = jvm.org.apache.hadoop.fs.s3a.commit.files
    print("Hadoop", jvm.org.apache.hadoop.util.VersionInfo.getVersion())
    with tempfile.TemporaryDirectory() as folder:
        configuration = jvm.org.apache.hadoop.conf.Configuration()
        local = jvm.org.apache.hadoop.fs.FileSystem.getLocal(configuration)

        def saved(name: str, body: bytes) -> Any:
            path = Path(folder, name)
            path.write_bytes(body)
            return jvm.org.apache.hadoop.fs.Path(str(path))

        where = saved("t0.pendingset", our_pendingset())
        # It validates what it loads.
        pending = files.PendingSet.load(local, where, local.getFileStatus(where))
        commit = pending.getCommits().get(0)
        print("PendingSet", pending.getJobId(), pending.size())
        print("  ", commit.getBucket(), commit.getDestinationKey(), commit.getUploadId())
        print("  ", commit.getLength(), commit.getPartCount(), commit.getEtags().toString())
        success = files.SuccessData.load(local, saved("_SUCCESS", our_success()))
        print("SuccessData", success.getJobId(), success.getCommitter(), success.getFilenames())
    spark.stop()


if __name__ == "__main__":
    main()
