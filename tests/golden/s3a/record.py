"""Records what S3A's magic committer leaves in S3, in each case of README.md beside it.

From the repository's root, with the jars of pom.xml in a folder outside it:
python -m tests.golden.s3a.record --jars ../s3a-jars [--out DIR] [case ...]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3

from tests.golden.s3a.holding import HoldingProxy
from tests.servers import Weed, free_ports

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

HERE = Path(__file__).parent
BUCKET = "lake"
COMPLETES = r"^POST .*[?&]uploadId="
NOTHING = r"^$"
PATIENCE = 180  # seconds for a driver to come to where it is held


@dataclass(frozen=True)
class Run:
    """What one driver writes, and at which requests it stands still until it is killed."""

    arguments: tuple[str, ...] = ()
    hold: str = COMPLETES
    passed: int = 0


DONE = Run()
RUNNING = Run(
    ("--records-per-file", "4"), hold=r"^PUT /lake/sales/part-00002.*-c002.*[?&]partNumber="
)
IN_MEMORY = "spark.hadoop.fs.s3a.committer.magic.track.commits.in.memory.enabled=true"

CASES: dict[str, tuple[Run, ...]] = {
    # All tasks are done; the driver dies in job commit, before the first file is visible.
    "plain": (DONE,),
    "partitioned": (Run(("--partition-by", "place")),),
    # As "plain", with one file visible.
    "halfway": (Run(passed=1),),
    # One task has closed two files and writes a third; the two other tasks are done.
    "task_running": (RUNNING,),
    # As "plain", without .pending files: the option of HADOOP-19047.
    "in_memory": (Run(("--set", IN_MEMORY)),),
    # Nothing dies: how a committed job looks.
    "committed": (Run(hold=NOTHING),),
    # Two drivers die at one table, one after the other. Made with Hadoop 3.3 (pom-3.3.xml), where
    # all jobs lie in one __magic/.
    "shared": (DONE, RUNNING),
}


def main() -> None:
    """Record the cases named, or all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--jars", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--python", default=sys.executable, help="with the pyspark to run")
    given = parser.parse_args()
    for name in given.cases or CASES:
        with (
            tempfile.TemporaryDirectory() as folder,
            Weed(Path(folder), free_ports(4)) as weed,
        ):
            s3 = client(weed.endpoint)
            s3.create_bucket(Bucket=BUCKET)
            for run in CASES[name]:
                run_and_kill(weed.endpoint, given.jars, run, python=given.python)
            save(s3, given.out / name)
        print(f"recorded {name}")


def client(endpoint: str) -> S3Client:
    """A client of the server."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )


def run_and_kill(
    endpoint: str,
    jars: Path,
    run: Run,
    *,
    destination: str = f"s3a://{BUCKET}/sales",
    python: str = sys.executable,
) -> None:
    """Run the driver until it is held, then kill it and its JVM as `kill -9` does."""
    with HoldingProxy(endpoint, run.hold, run.passed) as proxy:
        command = [python, str(HERE / "driver.py"), proxy.endpoint, str(jars), destination]
        driver = subprocess.Popen([*command, *run.arguments], start_new_session=True)
        try:
            if run.hold == NOTHING:
                assert driver.wait(PATIENCE) == 0
            else:
                assert proxy.held.wait(PATIENCE), "the driver never came to where it is held"
                # Its other threads come to where they stand too.
                _wait_until_still(driver)
        finally:
            if driver.poll() is None:
                os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()


def _wait_until_still(driver: subprocess.Popen[bytes]) -> None:
    try:
        status = driver.wait(5)
    except subprocess.TimeoutExpired:
        return
    raise AssertionError(f"the driver ended with {status}")


def save(s3: S3Client, folder: Path) -> None:
    """Write every object, as it is, and every open upload with its parts below ``folder``."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    listing = {"objects": list(_objects(s3, folder)), "uploads": list(_uploads(s3, folder))}
    text = json.dumps(listing, indent=1, ensure_ascii=False)
    (folder / "listing.json").write_text(text + "\n")


def _objects(s3: S3Client, folder: Path) -> Any:
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
        for found in page.get("Contents", []):
            answer = s3.get_object(Bucket=BUCKET, Key=found["Key"])
            body = answer["Body"].read()
            if body:  # a marker's key may end with a slash, which no file's name can
                file = folder / "objects" / found["Key"]
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(body)
            yield {"key": found["Key"], "length": len(body), "metadata": answer["Metadata"]}


def _uploads(s3: S3Client, folder: Path) -> Any:
    """The bytes of an upload's parts can only be read by completing it."""
    found = [
        upload
        for page in s3.get_paginator("list_multipart_uploads").paginate(Bucket=BUCKET)
        for upload in page.get("Uploads", [])
    ]
    for number, upload in enumerate(found):
        where: Any = {"Bucket": BUCKET, "Key": upload["Key"], "UploadId": upload["UploadId"]}
        parts = s3.list_parts(**where).get("Parts", [])
        assert len(parts) <= 1, "the recorder knows files of one part"
        if parts:
            etag = parts[0]["ETag"]
            whole: Any = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
            s3.complete_multipart_upload(**where, MultipartUpload=whole)
            body = s3.get_object(Bucket=BUCKET, Key=upload["Key"])["Body"].read()
            (folder / "parts").mkdir(exist_ok=True)
            (folder / "parts" / str(number)).write_bytes(body)
        yield {
            "key": upload["Key"],
            "uploadId": upload["UploadId"],
            "part": {"file": f"parts/{number}", "etag": parts[0]["ETag"]} if parts else None,
        }


if __name__ == "__main__":
    main()
