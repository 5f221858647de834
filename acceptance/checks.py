"""The checks of commits: by each client, and when something of the pipeline fails."""

import json
import signal
import subprocess
import sys
import time
from typing import Any

import pyarrow as pa

import s3commit
from acceptance.places import ROOT, BrokenError, NotSeenError, running
from acceptance.run import Run, check, equal
from s3commit.aws import env
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.destination import Destination
from s3commit.core.model.outcome import Outcome
from s3commit.spark.native import NoJarError, find_jar
from tests.native import s3a

ROWS = 1_000
PAGE_BYTES = 1 << 25


@check("No file of a job of `open_job` is visible before its commit, and all are when it returns")
def a_job_by_open_job(run: Run) -> str:
    job, counted = run.write("open-job")
    equal(run.data("open-job"), [], "files before the commit")
    began = time.monotonic()
    equal(job.commit(counted).files, 3, "files")
    equal(len(run.data("open-job")), 3, "visible files")
    return f"3 files, {time.monotonic() - began:.1f} s from request to result"


@check("A table of pyarrow that `write_table` writes is committed, once for one idempotency key")
def a_table_by_write_table(run: Run) -> str:
    table = pa.table({"id": range(ROWS), "day": [f"d{n % 3}" for n in range(ROWS)]})
    how: Any = {"partition_by": ["day"], "idempotency_key": "first", "mode": "append"}
    results = [s3commit.write_table(table, run.uri("write-table"), **how) for _ in range(2)]
    first, again = results
    equal((first.rows, again.already_committed), (ROWS, True), "rows, and that they are there")
    equal(len(run.data("write-table")), 3, "visible files")
    return f"{ROWS} rows in 3 partitions; the second write added nothing"


def _by_spark(run: Run, client: str) -> str:
    """Rows that a Spark program of its own process has written, and read again."""
    if not s3a.jars():
        raise NotSeenError(
            "S3A's jars are not here: `python tests/native/s3a.py` brings them by Maven"
        )
    command = [sys.executable, "-m", "acceptance.spark_program", client]
    with running([*command, run.uri(f"spark-{client}"), str(ROWS)], cwd=ROOT) as process:
        equal(process.wait(), 0, "exit code of Spark's driver (its output is above)")
    files = run.data(f"spark-{client}")
    if not files:
        raise BrokenError("no file is visible")
    return f"{ROWS} rows in {len(files)} files, written and read by Spark"


@check("A DataFrame that `s3commit.spark.write` writes is committed", minutes=2)
def a_frame_by_spark_write(run: Run) -> str:
    return _by_spark(run, "write")


@check("A DataFrame that Spark's own writer writes is committed by the jar", minutes=2)
def a_frame_by_the_jar(run: Run) -> str:
    try:
        find_jar()
    except NoJarError as error:
        raise NotSeenError(error.message) from error
    return _by_spark(run, "jar")


@check("A large job is committed by a distributed Map with express executions", minutes=8)
def a_large_job_by_the_map(run: Run) -> str:
    names = [f"part-{number:05d}.txt" for number in range(run.files)]
    job, counted = run.write("large", names)
    began = time.monotonic()
    job.commit(counted)
    seconds = time.monotonic() - began
    result = run.ended(job.directory, Outcome.COMMITTED)
    equal(len(run.data("large")), run.files, "visible files")
    if not _has(run, result.execution, "MapRunSucceeded"):
        raise NotSeenError(f"{run.files} files need no Map Run: give --files 10500")
    return run.by_express(f"{run.files} files, {seconds:.0f} s from request to result")


def _decided(run: Run, table: str) -> s3commit.Job:
    """A job that is decided, and whose files are still invisible; in `Run.events_off`."""
    job, counted = run.write(table)
    run.decide(job, counted)
    equal(run.data(table), [], "visible files before an execution")
    return job


def _has(run: Run, execution: str, kind: str) -> bool:
    return any(event["type"] == kind for event in run.history(execution))


def _commit_without(run: Run, table: str, part: str, event: str, *, again: bool) -> str:
    """Take one of the pipeline's own objects away, until the execution has the event; its ARN.

    Then the object comes back, and the job is committed, by an execution that is started ``again``.
    """
    store = run.ports.store
    with run.events_off():
        job = _decided(run, table)
        key = run.pipelines(job, part)
        body = store.get(run.bucket, key, max_bytes=PAGE_BYTES).body
        # With the manifests, of which the pipeline would write it again.
        for each in [*(one.key for one in store.list(run.bucket, job.directory.tasks)), key]:
            store.delete(run.bucket, each)
        execution = run.start(job)
        run.until(lambda: _has(run, execution, event), f"the event {event}")
        equal(run.data(table), [], f"visible files without {part}")
        store.put(run.bucket, key, body)
        if again:
            run.start(job, "-again")
        equal(run.ended(job.directory, Outcome.COMMITTED).files, 3, "files")
    return execution


@check("If a child of the Map fails, the Map is tried again until the job is committed", minutes=5)
def a_child_of_the_map_fails(run: Run) -> str:
    _commit_without(run, "child-fails", "/_pages/", "MapRunFailed", again=False)
    return run.by_express(
        "a Map Run failed while a page of the plan was missing; the next one completed all files"
    )


@check(
    "If the Map cannot read its dataset, nothing is undone, and the job can be committed later",
    minutes=5,
)
def the_dataset_of_the_map_is_missing(run: Run) -> str:
    failed = _commit_without(run, "no-dataset", "/_index-", "ExecutionFailed", again=True)
    error = run.clients("stepfunctions").describe_execution(executionArn=failed).get("error")
    equal(error, "NeedsOperatorError", "the error of the execution")
    return run.by_express("the execution failed without the dataset, and committed with it")


DRIVER = """
import os, signal, sys
import s3commit
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.documents.request_json import encode_request
from s3commit.core.documents.request_json import CommitRequest
job = s3commit.open_job(sys.argv[1])
with job.task("0") as task, task.open("a.txt") as file:
    file.write(b"rows")
print(job.job_id, flush=True)
if sys.argv[2] == "after":
    request = encode_request(CommitRequest(job.job_id, (task.counted,)))
    S3ObjectStore().put(job.directory.bucket, job.directory.request, request, if_absent=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@check("A driver killed before its request leaves no visible file; after it, its job is committed")
def a_killed_driver(run: Run) -> str:
    for when, files in (("before", 0), ("after", 1)):
        uri = run.uri(f"killed-{when}")
        command = [sys.executable, "-c", DRIVER, uri, when]
        with running(command, stdout=subprocess.PIPE) as driver:
            job_id = driver.communicate(timeout=run.patience)[0].strip()
        equal(driver.returncode, -signal.SIGKILL, "exit code of the driver")
        directory = JobDirectory(Destination(run.bucket, f"killed-{when}/"), job_id)
        if when == "after":
            run.ended(directory, Outcome.COMMITTED)
        equal(len(run.data(f"killed-{when}")), files, f"visible files, killed {when} the request")
    return "killed by SIGKILL before and after its request"


@check("A request whose event is lost is found by the sweep", minutes=4)
def the_sweep_finds_a_job(run: Run) -> str:
    with run.events_off():
        job, counted = run.write("swept")
        run.until(lambda: run.ports.ledger.job(job.directory.ref), "the job in the ledger")
        run.request(job, counted)
        began = time.monotonic()
        run.until(lambda: _swept(run, job), "the result of a job that a sweep has started")
        equal(run.ended(job.directory, Outcome.COMMITTED).files, 3, "files")
    return f"committed {time.monotonic() - began:.1f} s after the first sweep, its event source off"


def _swept(run: Run, job: s3commit.Job) -> bool:
    """Call the sweep, which takes any silence for a lost event; true if the job has its result."""
    rule = run.outputs[env.SWEEP_RULE_OUTPUT].rpartition("|")[2]
    (target,) = run.clients("events").list_targets_by_rule(Rule=rule)["Targets"]
    limits = json.dumps({**env.SWEEP_LIMITS, "stuckMinutes": 0})
    answer = run.clients("lambda").invoke(FunctionName=target["Arn"], Payload=limits)
    if "FunctionError" in answer:
        raise BrokenError(f"the sweep failed: {answer['Payload'].read()}")
    return run.ports.store.head(run.bucket, job.directory.result) is not None


@check("When a job that replaces has ended, its files are visible and the earlier ones removed")
def a_job_that_replaces(run: Run) -> str:
    run.commit("replaced", "old.txt")
    result = run.commit("replaced", "new.txt", mode="overwrite")
    (visible,) = run.data("replaced")
    equal(visible.startswith("new-"), True, f"{visible} is the new file")
    return f"{result.replaced} file removed"


@check("An undo removes the job's files and brings back what the job had replaced", minutes=2)
def an_undo(run: Run) -> str:
    run.commit("undone", "old.txt")
    wrong = run.commit("undone", "wrong.txt", mode="overwrite")
    s3commit.undo(run.uri("undone"), wrong.job_id)
    (visible,) = run.data("undone")
    body = run.ports.store.get(run.bucket, f"undone/{visible}", max_bytes=100).body
    equal(body, b"old.txt", "the content of the file that is visible")
    return "the file of the overwrite was removed, the one before it is back"


@check("A job of which a file is lost after the decision is rolled back as a whole", minutes=3)
def a_rollback(run: Run) -> str:
    with run.events_off():
        job = _decided(run, "rolled-back")
        lost = next(iter(run.ports.store.list_uploads(run.bucket, "rolled-back/")))
        run.ports.store.abort_upload(run.bucket, lost.key, lost.upload_id)
        run.start(job)
        run.ended(job.directory, Outcome.ROLLED_BACK)
    equal(run.data("rolled-back"), [], "visible files")
    return "an upload was aborted after the decision: no file is visible"


NAMES = ("a b", "a+b", "a%b", "a%20b", "ä€😀", "day=1")


def keys(run: Run, how: str) -> str:
    """Commit jobs below directories with such names."""
    for number, name in enumerate(NAMES):
        table = f"keys-{how}/{name}"
        committed = run.commit(table, f"x={name}/part.txt", check_names=False)
        equal(committed.files, 1, f"files below {table}")
        equal(len(run.data(table)), 1, f"visible files below {table} ({number})")
    return f"destinations and partitions named {', '.join(NAMES)}"


@check("Keys with spaces, `+`, `%` and unicode are found by the bucket's notifications", minutes=2)
def keys_by_notifications(run: Run) -> str:
    return keys(run, "notified")
