"""Spark with S3A's magic committer, its driver killed, `s3commit rescue`, and Spark reads it back.

All of it real but AWS: the pipeline is the synthesized one, as `s3commit local up` runs it. From
the repository's root, with the jars of pom.xml in a folder outside it:
python -m tests.golden.s3a.end_to_end --jars ../s3a-jars
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.golden.s3a.holding import HoldingProxy
from tests.golden.s3a.record import COMPLETES, HERE, PATIENCE, Run, client, run_and_kill

ROWS = 300_000
WIDE = (
    *("--rows", str(ROWS), "--wide"),
    *("--set", "spark.hadoop.fs.s3a.multipart.size=5M"),  # so that a file has several parts
)
RUNS = {
    "plain": (Run(WIDE), "--commit"),
    "partitioned": (Run((*WIDE, "--partition-by", "place")), "--commit"),
    "halfway": (Run(WIDE, passed=1), "--commit"),
    "given-up": (Run(WIDE, passed=1), "--abort"),
}
# A driver that was not dead: held at these requests, released after the rescue.
WAKERS = {"wakes-before-loading": r"^GET .*[.]pendingset", "wakes-completing": COMPLETES}


def main() -> None:
    """Play every run against one pipeline."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jars", type=Path, required=True)
    jars = parser.parse_args().jars
    command = [sys.executable, "-m", "s3commit", "local", "up", "--project", "."]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as runtime:
        try:
            assert runtime.stdout is not None
            ready = json.loads(runtime.stdout.readline())
            for name, (run, word) in RUNS.items():
                play(ready, jars, name, run, word)
            for name, hold in WAKERS.items():
                wake(ready, jars, name, hold)
        finally:
            runtime.send_signal(signal.SIGINT)
            runtime.wait(60)


def play(ready: dict[str, Any], jars: Path, name: str, run: Run, word: str) -> None:
    """One driver's death, and what becomes of its job."""
    table = f"{ready['bucket']}/{name}"
    print(f"== {name}: the driver runs, and is killed", flush=True)
    run_and_kill(ready["endpoint"], jars, run, destination=f"s3a://{table}")
    for arguments in ([], [word, "--older-than", "0s"], []):
        rescue(ready, f"s3://{table}/", *arguments)
    if word == "--commit":
        found = read(ready, jars, f"s3a://{table}")
        assert found == {"rows": ROWS, "ids": ROWS, "sum": ROWS * (ROWS - 1) // 2}, found
        print(f"== {name}: Spark reads back {found}", flush=True)
    left = leftovers(ready, name)
    assert not left["uploads"], left
    assert word == "--commit" or not left["data"], left
    print(f"== {name}: {left}", flush=True)


def wake(ready: dict[str, Any], jars: Path, name: str, hold: str) -> None:
    """A driver that goes on after its job was rescued: what becomes of the files."""
    table = f"{ready['bucket']}/{name}"
    print(f"== {name}: the driver runs, and stalls", flush=True)
    with HoldingProxy(ready["endpoint"], hold) as proxy:
        arguments = [proxy.endpoint, str(jars), f"s3a://{table}", "--rows", str(ROWS)]
        with subprocess.Popen([sys.executable, str(HERE / "driver.py"), *arguments]) as driver:
            assert proxy.held.wait(PATIENCE)
            rescue(ready, f"s3://{table}/", "--commit", "--older-than", "0s")
            proxy.release()
            status = driver.wait(PATIENCE)
    print(f"== {name}: the driver ended with {status}; {leftovers(ready, name)}", flush=True)


def leftovers(ready: dict[str, Any], name: str) -> dict[str, int]:
    """How many open uploads, and how many files, there are below the table."""
    s3, bucket, prefix = client(ready["endpoint"]), ready["bucket"], f"{name}/"
    objects = s3.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])
    files = [found for found in objects if found["Key"].endswith(".parquet")]
    uploads = s3.list_multipart_uploads(Bucket=bucket, Prefix=prefix).get("Uploads", [])
    return {"uploads": len(uploads), "data": len(files)}


def rescue(ready: dict[str, Any], *arguments: str) -> None:
    """The command as a person runs it."""
    environment = {
        **os.environ,
        "AWS_ENDPOINT_URL": ready["endpoint"],
        "AWS_REGION": ready["region"],
        "AWS_ACCESS_KEY_ID": ready["accessKey"],
        "AWS_SECRET_ACCESS_KEY": ready["secretKey"],
    }
    print(f"$ s3commit rescue {' '.join(arguments)}", flush=True)
    command = [sys.executable, "-m", "s3commit", "rescue", *arguments]
    subprocess.run(command, env=environment, check=True)


def read(ready: dict[str, Any], jars: Path, table: str) -> Any:
    """What Spark finds in the table."""
    command = [sys.executable, "-m", "tests.golden.s3a.reader", ready["endpoint"], str(jars), table]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(output.splitlines()[-1])


if __name__ == "__main__":
    main()
