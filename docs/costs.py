"""Prints what docs/deploy.md says of costs, in tables: listed prices times what the code does.

The prices are those of us-east-1 without free tiers. `tests/docs/test_costs.py` takes the counts
from the template and from jobs that it runs; only the durations are assumptions, and are marked.
"""

import sys
from dataclasses import dataclass
from typing import Final

from s3commit.core.model.limits import FEW_FILES, UNITS_OF_A_JOB

PRICED: Final = "2026-11"

# US dollars, below AWS's pages. The pages fill in their tables in a browser; those of Lambda,
# SQS and CloudWatch's alarms were compared with what others quote of AWS's price list, by its usage
# types (Request-ARM, Lambda-GB-Second-ARM, Requests-Tier1, CW:AlarmMonitorUsage); those of metrics
# and dashboards with what others write.
# https://aws.amazon.com/s3/pricing/
S3_WRITE: Final = 0.005 / 1000  # PUT, POST and LIST; a delete or an abort is free
S3_READ: Final = 0.0004 / 1000  # GET and HEAD
# https://aws.amazon.com/lambda/pricing/
LAMBDA_CALL: Final = 0.20 / 1e6
LAMBDA_GB_SECOND: Final = 0.0000133334  # arm64
# https://aws.amazon.com/step-functions/pricing/
TRANSITION: Final = 0.025 / 1000
EXPRESS_RUN: Final = 1.00 / 1e6
EXPRESS_GB_SECOND: Final = 0.00001667
# https://aws.amazon.com/dynamodb/pricing/on-demand/
WRITE_UNIT: Final = 0.625 / 1e6
READ_UNIT: Final = 0.125 / 1e6
# https://aws.amazon.com/sqs/pricing/
SQS_REQUEST: Final = 0.40 / 1e6
# https://aws.amazon.com/cloudwatch/pricing/
ALARM_METRIC: Final = 0.10  # a month; an alarm on a sum of metrics is billed for each of them
DASHBOARD: Final = 3.00
CUSTOM_METRIC: Final = 0.30

MINUTES: Final = 30 * 24 * 60  # of a month

# What is deployed.
ALARM_METRICS: Final = 23  # of thirteen alarms: two are sums over six functions
METRICS: Final = 11
SWEEP_MINUTES: Final = 60
SWEEP_QUERIES: Final = 36  # by state, from a moment on and before it, each of as many shelves
SHELVES: Final = 16
SWEEP_MB: Final = 1769
SWEEP_SECONDS: Final = 1.0  # assumed, of a sweep with nothing to do
POLLERS: Final = 5  # of a queue with a limit of its own; see services-sqs-scaling.html
POLL_SECONDS: Final = 20  # a long poll

# What a job does.
FILES: Final = 1_000_000
FILES_PER_TASK: Final = 100
UNITS: Final = 3_907
SMALL_TRANSITIONS: Final = 6  # the start and each state, without those of the units
JOB_TRANSITIONS: Final = 17  # of a job of more than `FEW_FILES`
STEP_CALLS: Final = 12  # at most: of steps, and of the two events of its client
EVENTS: Final = 2  # `_job.json`, `_request.json`
FILE_WRITES: Final = 3  # create, one part, complete
TASK_WRITES: Final = 1
MANIFEST_READS: Final = 2  # on arrival, and verified
FILES_PER_PAGE: Final = 256
PAGE_WRITES: Final = 2  # of the plan: put, and a listing of what lies at its names
PAGE_READS: Final = 2  # for the conditions and the commit manifest; and a unit reads one
JOB_READS: Final = 13
JOB_WRITES: Final = 7
JOB_LISTINGS: Final = 3
UPLOADS_LISTED: Final = 2  # times, a thousand a request
JOB_RECORD_WRITES: Final = 6  # each is two more in the index
JOB_TRANSACTIONS: Final = 2  # of them, each with the append that is listed beside the record
TRANSACTED: Final = 2  # times the units of a write by itself, as the note of an attempt is
MESSAGE_REQUESTS: Final = 3  # sent, received, deleted
ONE_MB, JOB_MB = 1024, 3008
INGEST_SECONDS: Final = 0.3  # assumed, of one manifest
UNIT_SECONDS: Final = 5.0  # of one unit, and of all steps of such a job: bench/model.py
STEPS_SECONDS: Final = 163
# Others: files, units, and seconds of a unit and of all steps, by the same model.
SIZES: Final = ((3, 1, 0.33, 1.4), (100, 7, 0.48, 1.4), (1_000, 40, 0.78, 1.4))
STREAM_SECONDS: Final = 10  # a micro-batch
JOBS_A_MONTH: Final = 30 * 1000

# What parameters add a month: a table in `freshTables`, and `catalogs`.
FRESH_TABLE: Final = CUSTOM_METRIC + ALARM_METRIC
CATALOGS: Final = 2 * ALARM_METRIC
# https://aws.amazon.com/cloudtrail/pricing/
DATA_EVENT: Final = 0.10 / 100_000


@dataclass(frozen=True, slots=True)
class Line:
    """One row: what, how often, for how much in US dollars."""

    what: str
    how_often: str
    cost: float


def at_rest() -> list[Line]:
    """A month without jobs."""
    sweeps = MINUTES // SWEEP_MINUTES
    polls = 2 * POLLERS * MINUTES * 60 // POLL_SECONDS
    seconds = sweeps * SWEEP_SECONDS * SWEEP_MB / 1024
    reads = sweeps * SWEEP_QUERIES * SHELVES * 0.5
    return [
        Line("dashboard", "1", DASHBOARD),
        Line("alarms", f"{ALARM_METRICS} metrics", ALARM_METRICS * ALARM_METRIC),
        Line(
            "sweep",
            f"{sweeps:,} calls, {seconds:,.0f} GB-s, {reads:,.0f} read units",
            sweeps * LAMBDA_CALL + seconds * LAMBDA_GB_SECOND + reads * READ_UNIT,
        ),
        Line("polling of the queues", f"{polls:,} requests", polls * SQS_REQUEST),
    ]


def million() -> list[Line]:
    """A job of a million small files."""
    return job(FILES, units=UNITS, unit=UNIT_SECONDS, steps=STEPS_SECONDS)


def transitions(files: int, units: int) -> int:
    """Those of Step Functions, of a job that waits for nobody; a unit is one as well.

    The state that completes the only unit has no other in it.
    """
    if files > FEW_FILES:
        return JOB_TRANSITIONS + units
    return SMALL_TRANSITIONS + (1 + units if units > 1 else units)


def pages(files: int) -> int:
    """Pages of the plan of a job of so many files."""
    return -(-files // FILES_PER_PAGE)


def job(files: int, *, units: int, unit: float, steps: float) -> list[Line]:
    """A job of so many small files; seconds of one unit, and of all steps. Its files come first.

    Each unit is a child of a distributed Map, which AWS bills as a state transition of its parent
    besides the child itself:
    https://docs.aws.amazon.com/step-functions/latest/dg/concepts-transitions.html
    """
    tasks = -(-files // FILES_PER_TASK)
    own = tasks * TASK_WRITES + pages(files) * PAGE_WRITES + JOB_WRITES + JOB_LISTINGS
    own += UPLOADS_LISTED * files // 1000
    reads = tasks * MANIFEST_READS + pages(files) * PAGE_READS + units + JOB_READS
    work = (tasks * INGEST_SECONDS + units * unit) * ONE_MB / 1024 + steps * JOB_MB / 1024
    moves, express = transitions(files, units), units * (units > UNITS_OF_A_JOB)
    written = tasks + TRANSACTED * JOB_TRANSACTIONS
    written += 3 * JOB_RECORD_WRITES + (TRANSACTED - 1) * JOB_TRANSACTIONS
    return [
        Line(
            "files: create, part, complete",
            f"{files * FILE_WRITES:,} requests",
            files * FILE_WRITES * S3_WRITE,
        ),
        Line("documents: put, list", f"{own:,} requests", own * S3_WRITE),
        Line("documents: get", f"{reads:,} requests", reads * S3_READ),
        Line(
            "functions",
            f"{tasks + units + STEP_CALLS:,} calls, {work:,.0f} GB-s",
            (tasks + units + STEP_CALLS) * LAMBDA_CALL + work * LAMBDA_GB_SECOND,
        ),
        Line(
            "state machine",
            f"{moves:,} transitions, {express:,} Express executions",
            moves * TRANSITION + express * (EXPRESS_RUN + unit / 16 * EXPRESS_GB_SECOND),
        ),
        Line("ledger", f"{written:,} write units", written * WRITE_UNIT),
        Line(
            "queues",
            f"{(tasks + EVENTS) * MESSAGE_REQUESTS:,} requests",
            (tasks + EVENTS) * MESSAGE_REQUESTS * SQS_REQUEST,
        ),
    ]


def small() -> str:
    """Jobs of other sizes in Markdown: many of each, and what S3 asks for their files."""
    heads = ("files", "USD a million jobs", "1,000 jobs a day, USD a month")
    rows = [f"| {' | '.join(heads)} | of it S3, for the files | transitions |"]
    rows.append("| --- | --- | --- | --- | --- |")
    for files, units, unit, steps in SIZES:
        lines = job(files, units=units, unit=unit, steps=steps)
        total = sum(one.cost for one in lines)
        daily, share = total * JOBS_A_MONTH, lines[0].cost / total
        said = f"{total * 1e6:,.0f} | {daily:,.0f} | {share:.0%} | {transitions(files, units)}"
        rows.append(f"| {files:,} | {said} |")
    return "\n".join(rows)


def stream() -> float:
    """USD a month of a stream whose every micro-batch is a job of the smallest of `SIZES`."""
    files, units, unit, steps = SIZES[0]
    jobs = MINUTES * 60 // STREAM_SECONDS
    return jobs * sum(one.cost for one in job(files, units=units, unit=unit, steps=steps))


def table(lines: list[Line], title: str) -> str:
    """The lines in Markdown, with their sum."""
    rows = [f"| {title} | how often | USD |", "|---|---|---|"]
    rows += [f"| {one.what} | {one.how_often} | {one.cost:.2f} |" for one in lines]
    total = sum(one.cost for one in lines)
    return "\n".join([*rows, f"| **together** | | **{total:.2f}** |"])


def sentence(lines: list[Line]) -> str:
    """The lines in one sentence, as the page has them."""
    return ", ".join(f"{one.what} {one.cost:.2f}" for one in lines)


if __name__ == "__main__":
    files = f"one job of {FILES:,} small files, {FILES_PER_TASK} a task"
    tables = table(at_rest(), "a month without jobs"), table(million(), files)
    sys.stdout.write("\n\n".join([*tables, small()]) + "\n")
