"""``s3commit uploads``: what is open, whose it is, and what may be aborted."""

from __future__ import annotations

from contextlib import suppress

import pytest

from s3commit.core.model.errors import AccessError, TransientError
from tests.cli.support import JOB, OTHER, SALES, TABLE, Desk
from tests.core.world import BUCKET, job_directory

STRANGER = "33333333-7425-40de-944b-e07fc1f90ae7"
DAY = 86400


def start(desk: Desk, name: str, body: bytes = b"12345") -> str:
    """An upload of which there is no manifest."""
    key = f"sales/{name}"
    upload_id = desk.world.store.create_upload(BUCKET, key, metadata={}, content_type="text/plain")
    desk.world.store.upload_part(BUCKET, key, upload_id, 1, body)
    return key


@pytest.fixture
def left(desk: Desk) -> dict[str, str]:
    """One upload of each owner, by owner."""
    desk.open_job(JOB, tasks=0)
    desk.aborted_job(OTHER)
    return {
        "under way": start(desk, f"part-9-{JOB}.parquet"),
        "ended": start(desk, f"dt=1/part-9-{OTHER}.c000.parquet"),
        "unknown": start(desk, f"part-9-{STRANGER}.parquet"),
        "foreign": start(desk, "backup.tar"),
    }


def owners(desk: Desk, *arguments: str) -> dict[str, str]:
    found = desk.json("uploads", SALES, *arguments)["uploads"]
    return {upload["owner"]: upload["key"] for upload in found}


@pytest.mark.parametrize("table", [(), ("--table", TABLE)])
def test_each_upload_has_its_owner(
    desk: Desk, left: dict[str, str], table: tuple[str, ...]
) -> None:
    assert owners(desk, *table) == left


def test_the_text_tells_age_owner_and_file(desk: Desk, left: dict[str, str]) -> None:
    desk.world.clock.advance(3 * DAY)
    result = desk.run("uploads", SALES, "--bytes")
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["AGE", "OWNER", "SIZE", "FILE"]
    assert lines[1].split() == ["3d", "under", "way", "5", "B", f"part-9-{JOB}.parquet"]
    assert result.stderr == (
        "4 open uploads below s3://lake/sales/: 1 ended, 1 under way, 1 unknown, 1 foreign\n"
    )
    assert len(left) == 4


def test_i5_only_what_is_dead_is_aborted(desk: Desk, left: dict[str, str]) -> None:
    desk.world.clock.advance(3 * DAY)
    result = desk.run("uploads", SALES, "--abort")
    assert desk.world.open_uploads() == sorted([left["under way"], left["foreign"]])
    assert result.stderr.endswith("1 foreign; 2 kept, 2 aborted\n")


def test_i5_an_unknown_upload_that_is_young_is_kept(desk: Desk, left: dict[str, str]) -> None:
    desk.world.clock.advance(DAY)
    desk.run("uploads", SALES, "--abort")
    assert left["unknown"] in desk.world.open_uploads()
    assert left["ended"] not in desk.world.open_uploads()
    desk.run("uploads", SALES, "--abort", "--older-than", "12h")
    assert left["unknown"] not in desk.world.open_uploads()


def test_a_dry_run_aborts_nothing_and_says_what_it_would(desk: Desk, left: dict[str, str]) -> None:
    found = desk.json("uploads", SALES, "--abort", "--dry-run")["uploads"]
    assert {upload["owner"]: upload["done"] for upload in found} == {
        "under way": "would keep",
        "ended": "would abort",
        "unknown": "would keep",
        "foreign": "would keep",
    }
    assert desk.world.open_uploads() == sorted(left.values())


def test_i5_a_job_that_s3_shows_as_under_way_is_kept_without_a_ledger(desk: Desk) -> None:
    directory = desk.requested_job(JOB)
    desk.world.clock.advance(9 * DAY)
    desk.run("uploads", SALES, "--abort")
    desk.world.run(directory)
    assert desk.world.result(directory).outcome == "COMMITTED"


@pytest.mark.parametrize("table", [(), ("--table", TABLE)])
@pytest.mark.parametrize("prefix", ["sales/", "sales/north/", "sales/north/dt=1/"])
def test_i5_a_job_under_way_is_kept_wherever_above_the_file_it_lies(
    desk: Desk, prefix: str, table: tuple[str, ...]
) -> None:
    directory = job_directory(JOB, prefix)
    desk.world.open(directory)
    name = f"sales/north/dt=1/part-{JOB}.x".removeprefix(prefix)
    desk.world.announce(directory, desk.world.attempt(directory, "0", files={name: b"1"}))
    desk.world.clock.advance(9 * DAY)
    for destination in (SALES, "s3://lake/sales/north/", "s3://lake/sales/north/dt=1/"):
        found = desk.json("uploads", destination, "--abort", *table)["uploads"]
        assert {upload["owner"] for upload in found} <= {"under way"}
    assert len(desk.world.open_uploads()) == 1


@pytest.mark.parametrize("table", [(), ("--table", TABLE)])
def test_i5_a_result_further_down_does_not_speak_for_a_job_above_it(
    desk: Desk, table: tuple[str, ...]
) -> None:
    """Somebody asked for a job of the same id there, and was turned away."""
    directory = desk.requested_job(JOB)
    desk.world.store.put(BUCKET, job_directory(JOB, "sales/b/").result, b"{}")
    victim = start(desk, f"b/part-{JOB}.parquet")
    for destination in (SALES, "s3://lake/sales/b/"):
        found = desk.json("uploads", destination, "--abort", *table)["uploads"]
        assert {upload["owner"] for upload in found} == {"under way"}
    assert victim in desk.world.open_uploads()
    assert directory.prefix.startswith("sales/")


def test_i5_a_job_that_ended_elsewhere_does_not_speak_for_its_id_here(desk: Desk) -> None:
    """The ledger has one place for an id; what lies here is nobody's that it knows."""
    desk.aborted_job(JOB)
    key = "other/part-0-" + JOB + ".parquet"
    desk.world.store.create_upload(BUCKET, key, metadata={}, content_type="text/plain")
    desk.world.clock.advance(9 * DAY)
    desk.run("uploads", "s3://lake/other/", "--abort", "--table", TABLE)
    assert key in desk.world.open_uploads()


@pytest.mark.parametrize("counter", ["-c000.snappy", ".c000.snappy"])
def test_i5_a_file_of_sparks_or_deltas_own_is_foreign(desk: Desk, counter: str) -> None:
    start(desk, f"part-00000-{STRANGER}{counter}.parquet")
    assert list(owners(desk)) == ["foreign"]


def test_an_upload_of_a_job_that_ended_above_is_ended(desk: Desk) -> None:
    desk.aborted_job(JOB)
    start(desk, f"dt=1/part-9-{JOB}.parquet")
    (upload,) = desk.json("uploads", "s3://lake/sales/dt=1/")["uploads"]
    assert upload["owner"] == "ended"


def test_i12_a_commit_manifest_alone_ends_no_upload(desk: Desk) -> None:
    """Anyone may put one, and nothing tells any more when the job began."""
    directory = desk.committed_job(JOB)
    for key in desk.world.all_keys(directory.prefix):
        desk.world.store.delete(BUCKET, key)
    start(desk, f"part-9-{JOB}.parquet")
    assert list(owners(desk)) == ["unknown"]


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        (f"part-{OTHER}-{JOB}.parquet", "under way"),
        (f"part-{OTHER}-{STRANGER}.{OTHER}.parquet", "unknown"),
        (f"part-{JOB}-{OTHER}.parquet", "ended"),
        (f"{OTHER}.parquet", "ended"),
        (f"part-{OTHER}-0.parquet", "foreign"),
        (f"part-a{OTHER}.parquet", "foreign"),
        (f"{OTHER}/part.{OTHER}", "foreign"),
    ],
)
def test_i5_only_the_id_that_ends_the_name_before_its_first_dot_tells_the_owner(
    desk: Desk, name: str, owner: str
) -> None:
    desk.aborted_job(OTHER)
    desk.open_job(JOB, tasks=0)
    start(desk, name)
    assert list(owners(desk)) == [owner]


def test_an_abort_that_fails_is_said_and_exits_1(desk: Desk, left: dict[str, str]) -> None:
    desk.world.plan.fail("abort_upload", AccessError("denied"), times=None)
    result = desk.run("uploads", SALES, "--abort", exit_code=1)
    assert "failed: denied" in result.stdout
    assert result.stderr.splitlines()[-1] == (
        "error: 1 upload could not be aborted, failed: denied; run it again"
    )
    assert desk.world.open_uploads() == sorted(left.values())


def test_no_upload_is_no_error(desk: Desk) -> None:
    result = desk.run("uploads", SALES, "--abort")
    assert (result.stdout, result.stderr) == ("", "0 open uploads below s3://lake/sales/\n")


def test_a_dry_run_of_nothing_is_usage(desk: Desk) -> None:
    assert "--dry-run goes with --abort" in desk.fails("uploads", SALES, "--dry-run", exit_code=2)


def test_a_key_can_not_move_the_cursor(desk: Desk) -> None:
    with suppress(TransientError):  # done, and answered in XML that can't carry the key
        start(desk, "evil\x1b[2J.bin")
    assert "\x1b" not in desk.run("uploads", SALES).stdout
    assert "evil\\x1b[2J.bin" in desk.run("uploads", SALES).stdout


def test_i12_nobody_ends_an_upload_of_sparks_own_name_by_a_forged_list(desk: Desk) -> None:
    """Of an S3A job that lies above: its files carry the id of the write, which is no job's."""
    key = start(desk, f"dt=1/part-0-{STRANGER}-c000.parquet")
    desk.world.store.put(BUCKET, f"sales/dt=1/_commits/{STRANGER}.jsonl", b"{}")
    assert desk.run("uploads", SALES, "--abort").exit_code == 0
    assert desk.world.open_uploads() == [key]
