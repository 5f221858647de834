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
OLD = "old-layout"

# A driver that was not dead: held at these requests, released after the rescue.
WAKERS = {"wakes-before-loading": r"^GET .*[.]pendingset", "wakes-completing": COMPLETES}


def main() -> None:
    """Play every run against one pipeline."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jars", type=Path, required=True)
    parser.add_argument("--old-jars", type=Path, help="of pom-3.3.xml: plays the old layout too")
    parser.add_argument("--old-python", help="with pyspark 3.5")
    parser.add_argument("--only", choices=[*RUNS, *WAKERS, OLD], action="append")
    given = parser.parse_args()
    jars, wanted = given.jars, given.only or [*RUNS, *WAKERS, OLD]
    command = [sys.executable, "-m", "s3commit", "local", "up", "--project", "."]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as runtime:
        try:
            assert runtime.stdout is not None
            ready = json.loads(runtime.stdout.readline())
            for name in wanted:
                if name in RUNS:
                    play(ready, jars, name, *RUNS[name])
                elif name in WAKERS:
                    wake(ready, jars, name, WAKERS[name])
                elif given.old_jars:
                    left = (given.old_jars, given.old_python)
                    play(ready, jars, name, Run(WIDE), "--commit", left_by=left)
        finally:
            runtime.send_signal(signal.SIGINT)
            runtime.wait(60)


def play(
    ready: dict[str, Any],
    jars: Path,
    name: str,
    run: Run,
    word: str,
    *,
    left_by: tuple[Path, str] | None = None,
) -> None:
    """One driver's death, and what becomes of its job; ``left_by`` are another Hadoop's jars."""
    table = f"{ready['bucket']}/{name}"
    print(f"== {name}: the driver runs, and is killed", flush=True)
    its_jars, python = left_by or (jars, sys.executable)
    run_and_kill(ready["endpoint"], its_jars, run, destination=f"s3a://{table}", python=python)
    rescue(ready, f"s3://{table}/", word)
    if word == "--commit":
        found = read(ready, jars, f"s3a://{table}")
        assert found == {"rows": ROWS, "ids": ROWS, "sum": ROWS * (ROWS - 1) // 2}, found
        print(f"== {name}: Spark reads back {found}", flush=True)
    left = leftovers(ready, name)
    assert not left["uploads"], left
    print(f"== {name}: {left}", flush=True)


def wake(ready: dict[str, Any], jars: Path, name: str, hold: str) -> None:
    """A driver that goes on after its job was rescued: what becomes of the files."""
    table = f"{ready['bucket']}/{name}"
    print(f"== {name}: the driver runs, and stalls", flush=True)
    with HoldingProxy(ready["endpoint"], hold) as proxy:
        arguments = [proxy.endpoint, str(jars), f"s3a://{table}", "--rows", str(ROWS)]
        with subprocess.Popen([sys.executable, str(HERE / "driver.py"), *arguments]) as driver:
            assert proxy.held.wait(PATIENCE)
            rescue(ready, f"s3://{table}/", "--commit")
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


def rescue(ready: dict[str, Any], table: str, word: str) -> None:
    """The commands as a person runs them: a look, and what it leads to."""
    shown = command(ready, "rescue", table, "--output", "json")
    (job,) = json.loads(shown)["jobs"]
    act = [word] if word == "--commit" else [word, job["shown"]]
    print(command(ready, "rescue", job["directory"], *act, "--older-than", "0s"), flush=True)


def command(ready: dict[str, Any], *arguments: str) -> str:
    """What the command prints."""
    environment = {
        **os.environ,
        "AWS_ENDPOINT_URL": ready["endpoint"],
        "AWS_REGION": ready["region"],
        "AWS_ACCESS_KEY_ID": ready["accessKey"],
        "AWS_SECRET_ACCESS_KEY": ready["secretKey"],
    }
    print(f"$ s3commit {' '.join(arguments)}", flush=True)
    line = [sys.executable, "-m", "s3commit", *arguments]
    run = subprocess.run(line, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return run.stdout


def read(ready: dict[str, Any], jars: Path, table: str) -> Any:
    """What Spark finds in the table."""
    command = [sys.executable, "-m", "tests.golden.s3a.reader", ready["endpoint"], str(jars), table]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(output.splitlines()[-1])


if __name__ == "__main__":
    main()
