"""``s3commit uploads``: every open upload below a place, whoever began it."""

import json
import random
import tracemalloc
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import click
import pytest

from s3commit.aws.clients import make_client
from s3commit.aws.s3 import S3ObjectStore
from s3commit.cli.render import SHOWN
from s3commit.cli.session import WORKERS
from s3commit.cli.uploads import PRICES
from s3commit.core.jobs.listings import PAGE
from s3commit.core.model import destination
from s3commit.core.model.errors import AccessError, InvalidInputError
from s3commit.core.ports.objects import OpenUpload
from tests.cli.support import JOB, OTHER, SALES, Desk, run
from tests.cli.test_rescue import DAYS, dead
from tests.conftest import REGION
from tests.contract.given import make_bucket
from tests.core.world import BUCKET, job_directory

HOUR = 3600.0
WRITE = "4a76f917-ea92-413e-87c5-9ef7e47a9150"  # of Spark's, also of the recorded job
LIFECYCLE = "AbortIncompleteMultipartUpload"


def begin(desk: Desk, key: str, *parts: bytes) -> str:
    store = desk.world.store
    upload = store.create_upload(BUCKET, key, metadata={}, content_type="")
    for number, part in enumerate(parts, start=1):
        store.upload_part(BUCKET, key, upload, number, part)
    return upload


def lines(desk: Desk, place: str = SALES) -> dict[str, list[Any]]:
    """What a program reads, by the kind of line."""
    found = map(json.loads, desk.run("uploads", place, "--output", "json").stdout.splitlines())
    kinds: dict[str, list[Any]] = {"upload": [], "directory": [], "total": []}
    for one in found:
        kinds[one["kind"]].append(one)
    return kinds


def at_work(desk: Desk) -> None:
    """A job whose tasks have been writing for days."""
    desk.world.open(job_directory(JOB))
    desk.world.clock.advance(DAYS)
    begin(desk, f"sales/part-9-{JOB}.parquet")


def requested(desk: Desk) -> None:
    desk.requested_job()


def ended(desk: Desk) -> None:
    desk.committed_job()
    begin(desk, f"sales/part-9-{JOB}.parquet", b"late")


def unlisted(desk: Desk) -> None:
    desk.open_job()
    desk.world.plan.fail("list", AccessError("S3 says 403"), times=None)


def above(desk: Desk) -> None:
    """A job with the same id, whose directory is inside its table: the outer one is the job."""
    desk.open_job()
    desk.world.open(job_directory(JOB, "sales/dt=1/"))
    begin(desk, f"sales/dt=1/part-9-{JOB}.parquet")


# What lies there, the seconds since, and what is said of each upload: writer, job, state, command.
OURS = job_directory(JOB).typed
WHOSE: dict[str, tuple[Callable[[Desk], object], float, tuple[Any, ...]]] = {
    "ours": (Desk.open_job, HOUR, ("s3commit", JOB, "open", None)),
    "ours, dead": (Desk.open_job, DAYS, ("s3commit", JOB, "silent", f"s3commit abort {OURS}")),
    "ours, at work": (at_work, 0, ("s3commit", JOB, "open", None)),
    "ours, inside of it": (above, HOUR, ("s3commit", JOB, "open", None)),
    "ours, requested": (requested, 60, ("s3commit", JOB, "requested", None)),
    "ours, stuck": (requested, DAYS, ("s3commit", JOB, "silent", f"s3commit show {OURS}")),
    "ours, ended": (ended, 0, ("s3commit", JOB, "ended", "s3commit sweep")),
    "ours, by its name alone": (unlisted, 0, ("s3commit", JOB, None, None)),
    "ours, without a trace": (
        lambda desk: begin(desk, f"sales/part-0-{JOB}.parquet"),
        0,
        ("unknown", JOB, None, None),
    ),
    "S3A magic": (
        lambda desk: dead(desk, "partitioned"),
        0,
        ("S3A magic", "{}", None, "s3commit rescue s3://lake/sales/__magic_job-{}/"),
    ),
    "S3A magic, unnamed": (
        lambda desk: dead(desk, "task_running"),
        0,
        ("S3A magic", "{}", None, "s3commit rescue s3://lake/sales/__magic_job-{}/"),
    ),
    "S3A staging": (
        lambda desk: begin(desk, f"sales/part-00000-{WRITE}-c000-{OTHER}.snappy.parquet"),
        0,
        ("S3A staging", OTHER, None, None),
    ),
    "a stranger": (
        lambda desk: begin(desk, f"sales/part-00000-{WRITE}-c000.snappy.parquet"),
        0,
        ("unknown", None, None, None),
    ),
}


@pytest.mark.parametrize("case", WHOSE)
def test_whose_an_upload_is_and_what_ends_it(desk: Desk, case: str) -> None:
    lay, later, said = WHOSE[case]
    recorded = lay(desk)
    desk.world.clock.advance(later)
    before = desk.world.all_keys(), desk.world.open_uploads()
    s3as = getattr(getattr(recorded, "directory", None), "job_id", "")
    wanted = tuple(one and one.replace("{}", s3as) for one in said)
    found = lines(desk)["upload"]
    assert [one["key"] for one in found] == before[1]
    whose = {(one["writer"], one["jobId"], one["state"], one["command"]) for one in found}
    assert whose == {wanted}
    assert min(one["ageSeconds"] for one in found) >= int(later)
    told = desk.run("uploads", SALES).stderr
    assert (f"if it is dead: {wanted[3]}" in told) is (wanted[3] is not None)
    assert (LIFECYCLE in told) is (wanted[0] in {"unknown", "S3A staging"})
    assert ("s3:ListBucket" in told) is (lay is unlisted)
    assert (desk.world.all_keys(), desk.world.open_uploads()) == before


@pytest.mark.parametrize("storage_class", [*PRICES, "OF_NEXT_YEAR"])
@pytest.mark.parametrize("parts", [(), (b"x",), (b"x" * 2**20, b"y" * 2**20)])
def test_an_upload_costs_what_its_class_does(
    desk: Desk, storage_class: str, parts: tuple[bytes, ...]
) -> None:
    begin(desk, "sales/x", *parts)
    real = desk.world.store.list_uploads
    vars(desk.world.store)["list_uploads"] = lambda *where, **how: (
        replace(one, storage_class=storage_class) for one in real(*where, **how)
    )
    (one,) = lines(desk)["upload"]
    length, price = sum(map(len, parts)), PRICES.get(storage_class)
    assert (one["bytes"], one["storageClass"]) == (length, storage_class)
    assert one["usdPerMonth"] == (None if price is None else pytest.approx(length / 2**30 * price))


@pytest.mark.parametrize("count", [0, 1, SHOWN + 1, PAGE, PAGE + 1])
def test_the_sums_are_of_all_and_the_largest_are_shown(desk: Desk, count: int) -> None:
    chosen, names = random.Random(count), ["a", "a-", "b", "c"]
    uploads = {
        f"sales/{'/'.join(chosen.choices(names, k=chosen.randrange(4)))}/{number}": number % 60
        for number in range(count)
    }
    for key, length in uploads.items():
        begin(desk, key, b"x" * length)
    begin(desk, "salesmen/x", b"not there")
    told = lines(desk)
    assert {one["key"]: one["bytes"] for one in told["upload"]} == uploads
    (total,) = told["total"]
    assert (total["uploads"], total["bytes"]) == (count, sum(uploads.values()))
    sums, counts = Counter[str](), Counter[str]()
    for key, length in uploads.items():
        directory = f"s3://{BUCKET}/{key.rpartition('/')[0]}/"
        sums[directory] += length
        counts[directory] += 1
    found = {one["place"]: (one["uploads"], one["bytes"]) for one in told["directory"]}
    assert found == {place: (counts[place], sums[place]) for place in counts}
    assert len(found) == len(told["directory"])
    result = desk.run("uploads", SALES)
    rows = result.stdout.split("\n\n")[-1].splitlines()[1:]
    assert len(rows) == min(count, SHOWN)
    largest = sorted(uploads.values(), reverse=True)[:SHOWN]
    assert [int(row.split()[0]) for row in rows] == largest
    assert ("no open upload" in result.stderr) is (count == 0)
    assert (f"has {count - SHOWN} more" in result.stderr) is (count > SHOWN)


def test_an_upload_that_ends_meanwhile_is_none(desk: Desk) -> None:
    begin(desk, "sales/left", b"1")
    gone = begin(desk, "sales/gone", b"2")
    abort = desk.world.store.abort_upload
    desk.world.plan.run_before("upload_bytes", lambda: abort(BUCKET, "sales/gone", gone), nth=1)
    assert [one["key"] for one in lines(desk)["upload"]] == ["sales/left"]


def test_a_size_that_can_not_be_read_is_said(desk: Desk) -> None:
    for key in ("sales/a", "sales/b", "sales/c"):
        begin(desk, key, b"123")
    for key, error in (("a", AccessError("a key")), ("b", InvalidInputError("a 400"))):
        where = lambda call, key=key: call.key == f"sales/{key}"  # noqa: E731
        desk.world.plan.fail("upload_bytes", error, times=None, where=where)
    told = lines(desk)
    assert [one["bytes"] for one in told["upload"]] == [None, None, 3]
    assert (told["total"][0]["bytes"], told["total"][0]["sizesUnknown"]) == (3, 2)
    assert "2 sizes could not be read: a key" in desk.run("uploads", SALES).stderr


REFUSED = AccessError("S3 says 403")
NO_CREDENTIALS = AccessError("there are none", code="NO_CREDENTIALS")


@pytest.mark.parametrize(
    ("verb", "error", "told"),
    [
        ("list_uploads", REFUSED, "needs the right s3:ListBucketMultipartUploads [ACCESS_DENIED]"),
        ("upload_bytes", REFUSED, "needs the right s3:ListMultipartUploadParts [ACCESS_DENIED]"),
        ("upload_bytes", InvalidInputError("a 501"), "Error: a 501 [INVALID_INPUT]"),
        ("list_uploads", NO_CREDENTIALS, "Error: there are none [NO_CREDENTIALS]"),
    ],
)
@pytest.mark.parametrize("output", ["text", "json"])
def test_a_right_that_lacks_is_named(
    desk: Desk, verb: str, error: AccessError, told: str, output: str
) -> None:
    begin(desk, "sales/a", b"1")
    desk.world.plan.fail(verb, error, times=None)
    line = desk.fails("uploads", SALES, "--output", output, exit_code=1)
    assert told in line
    assert "nothing was changed" not in line


@pytest.mark.parametrize("place", ["lake/sales/", "gs://lake/x", "s3://", "s3://l/", "s3://a/../b"])
def test_a_place_that_can_not_be_is_a_usage_error(desk: Desk, place: str) -> None:
    desk.fails("uploads", place, exit_code=2)
    assert desk.world.plan.calls == []


def many(count: int) -> Iterator[OpenUpload]:
    for number in range(count):
        key = f"sales/{number:07}/part-{number}-{JOB}.parquet"
        yield OpenUpload(key, "u", "2026-11-21T22:00:00.000Z")


def test_millions_of_uploads_take_no_more_memory_than_some(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.session.store = store = desk.world.store  # without a record of all calls
    vars(store)["upload_bytes"] = lambda *_where: 1

    for name, few in (("PAGE", PAGE // 10), ("_KEPT", 16), ("SHOWN", 5)):
        monkeypatch.setattr(f"s3commit.cli.uploads.{name}", few)
    monkeypatch.setattr(destination, "_digits", lambda _: "0" * 32)  # which keeps a thousand

    def peak(count: int) -> int:
        vars(store)["list_uploads"] = lambda *_where, **_how: many(count)
        tracemalloc.start()
        desk.run("uploads", SALES)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(1)
    assert peak(PAGE) < 1.2 * peak(PAGE // 5)


def test_a_program_reads_a_line_before_all_is_listed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(click, "echo", said.append)

    def listed(*_where: str, **_how: str) -> Iterator[OpenUpload]:
        yield from many(PAGE)
        assert len(said) > PAGE
        yield from many(1)

    desk.session.store = store = desk.world.store
    vars(store).update(list_uploads=listed, upload_bytes=lambda *_where: 1)
    desk.run("uploads", SALES, "--output", "json")


@pytest.fixture
def lake(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    return make_bucket(make_client(), f"uploads-{uuid.uuid4().hex}")


def test_it_is_said_of_a_bucket_of_s3(lake: str) -> None:
    store = S3ObjectStore(make_client())
    for number in range(2 * WORKERS):
        key = f"t/part-{number}-{WRITE}-c000.parquet"
        upload = store.create_upload(lake, key, metadata={}, content_type="")
        store.upload_part(lake, key, upload, 1, b"x" * number)
    for number in range(2 * WORKERS):  # which are read by as many threads as look at uploads
        store.put(lake, f"t/__magic_job-{OTHER}/job-{OTHER}/00/{number}.pendingset", b"{}")
    total = json.loads(run("uploads", f"s3://{lake}", "--output", "json").stdout.splitlines()[-1])
    assert (total["uploads"], total["bytes"]) == (2 * WORKERS, sum(range(2 * WORKERS)))


def test_a_bucket_that_is_not_there_is_one_line(lake: str) -> None:
    told = run("uploads", f"s3://{lake}-not", exit_code=1).stderr
    assert "[NO_BUCKET]" in told
    assert len(told.splitlines()) == 1
