"""``s3commit abort`` and ``commit``: a driver's word in the driver's place."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from s3commit.core.documents.pendingset import PendingSet
from s3commit.core.documents.request_json import AbortRequest, encode_request
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.errors import AccessError, TransientError
from s3commit.core.model.limits import TURN_DAYS
from tests.cli.support import JOB, OTHER, TABLE, THIRD, Desk
from tests.core.world import BUCKET, job_directory


def test_i4_an_aborted_job_ends_with_no_upload_open(desk: Desk) -> None:
    directory = desk.open_job()
    result = desk.run("abort", JOB, "--table", TABLE, "--reason", "wrong date")
    assert result.stdout == f"requested the abort of job {JOB}\n"
    assert result.stderr == f"follow it: s3commit show --follow {JOB} --table {TABLE}\n"
    desk.world.run(directory)
    error = desk.world.failure(directory)
    assert (error.code, error.message) == ("ABORTED_BY_CLIENT", "wrong date")
    assert desk.world.open_uploads() == []


def test_a_first_word_stands_where_no_execution_can_be_started(desk: Desk) -> None:
    directory = desk.requested_job()
    line = desk.fails("abort", JOB, "--table", TABLE, exit_code=3)
    assert f"its commit was already requested, and decides; see: s3commit show {JOB}" in line
    assert "nothing was changed" in line
    desk.world.run(directory)
    assert desk.world.result(directory).outcome == "COMMITTED"


def test_a_second_abort_has_nothing_to_do(desk: Desk) -> None:
    directory = desk.open_job()
    desk.run("abort", directory.uri)
    document = desk.json("abort", directory.uri)
    assert (document["written"], document["state"]) == (False, "REQUESTED")
    desk.world.run(directory)
    again = desk.run("abort", directory.uri)
    assert again.stdout.endswith("already requested, and the job is ABORTED\n")


@pytest.mark.parametrize("verb", ["abort", "commit"])
def test_a_committed_job_takes_no_word(desk: Desk, verb: str) -> None:
    desk.committed_job()
    assert f"job {JOB} is COMMITTED already" in desk.fails(verb, JOB, "--table", TABLE, exit_code=3)


@pytest.mark.parametrize("verb", ["abort", "commit"])
def test_a_dry_run_writes_nothing(desk: Desk, verb: str) -> None:
    directory = desk.open_job()
    before = desk.world.all_keys()
    said = ["--tasks", "2"] if verb == "commit" else []
    result = desk.run(verb, directory.uri, "--dry-run", *said)
    assert result.stdout.startswith(f"would request the {verb} of job {JOB}")
    document = desk.json(verb, directory.uri, "--dry-run", *said)
    assert (document["dryRun"], document["written"]) == (True, False)
    assert desk.world.all_keys() == before


def test_a_request_that_can_not_be_read_is_left_alone_and_aborts_the_job(desk: Desk) -> None:
    directory = desk.open_job()
    desk.world.store.put(BUCKET, directory.request, b"{}")
    assert "cannot be read" in desk.fails("commit", JOB, "--table", TABLE, exit_code=3)
    desk.stacks.deploy()
    assert "or else aborts the job" in desk.run("abort", JOB, "--table", TABLE).stdout
    assert desk.world.store.get(BUCKET, directory.request, max_bytes=9).body == b"{}"


@pytest.mark.parametrize("abandoned", [True, False])
@pytest.mark.parametrize("verb", ["abort", "commit"])
def test_of_two_that_ask_at_once_the_later_one_is_told(
    desk: Desk, verb: str, abandoned: bool
) -> None:
    """The sweep's abort, or a driver's, comes between the look at the job and the request."""
    directory = desk.open_job()
    first = encode_request(AbortRequest(JOB, "faster", abandoned))

    def request_first() -> None:
        desk.world.store.put(BUCKET, directory.request, first, if_absent=True)

    desk.world.plan.run_before("put", request_first)
    if verb == "abort":
        told = desk.run("abort", JOB, "--table", TABLE).stdout
        assert told == f"requested the abort of job {JOB}\n"
        return
    line = desk.fails("commit", JOB, "--table", TABLE, "--tasks", "2", exit_code=3)
    assert "abort" in line
    assert line.endswith("[ABORT_REQUESTED]; nothing was changed")


def test_i2_the_job_of_a_dead_driver_is_committed_whole(desk: Desk) -> None:
    directory = desk.open_job(tasks=3)
    result = desk.run("commit", directory.uri, "--tasks", "3")
    assert result.stdout == (
        f"requested the commit of job {JOB}, 3 manifests with 3 files, 12 B, 12 rows\n"
    )
    request = desk.world.json(directory.request)
    assert [one["taskId"] for one in request["attempts"]] == ["0", "1", "2"]
    assert request["jobDigest"] == desk.world.record(directory).job_sha256
    desk.world.run(directory)
    assert len(desk.world.visible()) == 3
    assert desk.world.open_uploads() == []


def test_uploads_without_a_manifest_need_a_word(desk: Desk) -> None:
    directory = desk.open_job()
    desk.world.upload(directory, f"part-9-{JOB}.parquet", b"half", task="9", attempt="a9")
    line = desk.fails("commit", JOB, "--table", TABLE, exit_code=3)
    assert f"job {JOB}: 1 open upload is in no manifest" in line
    assert f"To abort the job: s3commit abort {JOB}" in line
    assert "--partial" in line
    result = desk.run("commit", JOB, "--table", TABLE, "--partial")
    assert "1 open upload in no manifest: to be aborted at the end" in result.stderr
    desk.world.run(directory)
    assert len(desk.world.visible()) == 2
    assert desk.world.open_uploads() == []


def two_attempts(desk: Desk, directory: JobDirectory) -> None:
    desk.world.attempt(directory, "1", "a1", files={f"part-1b-{JOB}.parquet": b"x"})


def a_gone_upload(desk: Desk, _: JobDirectory) -> None:
    desk.world.lose_uploads("sales/", slice(1))


def a_bad_manifest(desk: Desk, directory: JobDirectory) -> None:
    desk.world.store.put(BUCKET, directory.manifest("9", "a9"), b"{}")


def no_document(desk: Desk, directory: JobDirectory) -> None:
    desk.world.store.delete(BUCKET, directory.job)
    assert desk.json("show", directory.uri)["conflict"] is None


def a_bad_document(desk: Desk, directory: JobDirectory) -> None:
    desk.world.store.put(BUCKET, directory.job, b"{")


def no_right(desk: Desk, directory: JobDirectory) -> None:
    is_it = lambda call: call.key == directory.job  # noqa: E731
    desk.world.plan.fail("get", AccessError("403"), times=None, where=is_it)


@pytest.mark.parametrize(
    ("happens", "told"),
    [
        (two_attempts, "1 task has two manifests, and only the driver knows which one counts: 1"),
        (a_gone_upload, f"1 upload is missing that the manifests name.*part-0-{JOB}.parquet"),
        (a_bad_manifest, "_tasks/9/_a9.pendingset cannot be read: "),
        (no_document, "_job.json was deleted or changed. A commit would end in an abort"),
        (a_bad_document, "_job.json cannot be read: "),
        (no_right, "as it was, or run the command with the right to read it"),
    ],
)
def test_i3_i7_what_could_not_be_committed_whole_is_not_requested(
    desk: Desk, happens: Callable[[Desk, JobDirectory], None], told: str
) -> None:
    directory = desk.open_job()
    happens(desk, directory)
    for partial in ([], ["--partial"]):
        assert re.search(told, desk.fails("commit", directory.uri, *partial, exit_code=3))
    assert not asked(desk, directory)


def test_a_commit_whose_fate_is_unknown_exits_4(desk: Desk) -> None:
    directory = desk.open_job()
    desk.world.plan.fail("put", TransientError("timed out"), times=None)
    line = desk.fails("commit", directory.uri, "--partial", exit_code=4)
    assert f"outcome of job {JOB} unknown: timed out; it may still commit" in line


@pytest.mark.parametrize("verb", ["abort", "commit"])
def test_a_dry_run_that_reaches_nothing_changes_nothing(desk: Desk, verb: str) -> None:
    directory = desk.open_job()
    desk.world.plan.fail("get", TransientError("timed out"), times=None)
    line = desk.fails(verb, directory.uri, "--dry-run", exit_code=1)
    assert line.endswith("try again")


def test_an_abort_whose_answer_is_lost_may_be_repeated(desk: Desk) -> None:
    directory = desk.open_job()
    desk.world.plan.lose_response("put")
    line = desk.fails("abort", directory.uri, exit_code=1)
    assert "the change may have been made; it is safe to run the command again" in line
    assert desk.json("abort", directory.uri)["written"] is False


def job(desk: Desk, *said: int | None) -> JobDirectory:
    """A job with a task for each of ``said``, which is the number of tasks in its manifest."""
    directory = job_directory(JOB)
    desk.world.open(directory)
    for number, count in enumerate(said):
        name = f"part-{number}-{JOB}.csv"
        file = desk.world.upload(directory, name, b"x", task=str(number), attempt="a0")
        pending = PendingSet(JOB, (file,), str(number), "a0", count)
        desk.world.drop(directory, pending, str(number), "a0")
    return directory


def asked(desk: Desk, directory: JobDirectory) -> bool:
    return desk.world.store.head(BUCKET, directory.request) is not None


def test_i2_a_task_that_the_manifests_miss_needs_a_word(desk: Desk) -> None:
    directory = job(desk, 3, 3)
    line = desk.fails("commit", directory.uri, exit_code=3)
    assert f"job {JOB}: there are manifests of 2 tasks, not 3" in line
    assert f"To abort the job: s3commit abort {directory.typed} [TASKS_MISSING]" in line
    for wrong, more in (("2", []), ("5", ["--partial"])):
        line = desk.fails("commit", directory.uri, "--tasks", wrong, *more, exit_code=3)
        assert f"--tasks is {wrong}, but its manifests say that it has 3 tasks: correct" in line
    assert not asked(desk, directory)
    assert desk.json("show", directory.uri)["tasks"] == {"done": 2, "of": 3}
    assert "\ntasks done 2, of 3\n" in desk.text("show", directory.uri)
    told = desk.run("commit", directory.uri, "--partial")
    assert "1 task has no manifest: their files are not committed" in told.stderr
    desk.world.run(directory)
    assert len(desk.world.visible()) == 2


def test_i2_an_open_upload_does_not_hide_that_a_task_is_missing(desk: Desk) -> None:
    directory = job(desk, 2)
    desk.world.upload(directory, f"part-1-{JOB}.csv", b"half", task="1", attempt="a0")
    line = desk.fails("commit", directory.uri, "--dry-run", exit_code=3)
    assert "manifests of 1 task, not 2, and 1 open upload is in no manifest: of tasks that" in line
    assert "To commit without the other tasks, and abort the uploads, add --partial" in line


def test_as_many_tasks_as_the_manifests_say_need_none(desk: Desk) -> None:
    directory = job(desk, 2, None)
    document = desk.json("commit", directory.uri)
    assert (document["tasks"], document["taskCount"]) == (2, 2)
    assert asked(desk, directory)


def test_i2_where_nobody_says_how_many_tasks_there_are_a_person_must(desk: Desk) -> None:
    directory = job(desk, None, None)
    assert desk.json("show", directory.uri)["tasks"] is None
    line = desk.fails("commit", directory.uri, exit_code=3)
    assert "manifests of 2 tasks, and the number of tasks is not recorded" in line
    assert "--tasks 2" in line
    assert f"s3commit abort {directory.typed}" in line
    line = desk.fails("commit", directory.uri, "--tasks", "3", exit_code=3)
    assert "manifests of 2 tasks, not 3" in line
    line = desk.fails("commit", directory.uri, "--tasks", "1", exit_code=3)
    assert "--tasks is 1, but 2 tasks have manifests: correct --tasks, or leave it out" in line
    assert not asked(desk, directory)
    desk.run("commit", directory.uri, "--tasks", "2")
    assert asked(desk, directory)


@pytest.mark.parametrize("word", [("--tasks", "2"), ("--partial",)])
def test_i2_a_manifest_deleted_after_the_look_is_missed(desk: Desk, word: tuple[str, ...]) -> None:
    """The request names what was looked at: less is never committed in silence."""
    directory = job(desk, None, None)
    desk.run("commit", directory.uri, *word)
    desk.world.store.delete(BUCKET, directory.manifest("1", "a0"))
    desk.world.run(directory)
    assert desk.world.failure(directory).code == "MANIFEST_MISSING"
    assert desk.world.visible() == {}


APPEND: dict[str, Any] = {}
OVERWRITE: dict[str, Any] = {"conflict": Conflict.REPLACE}
PARTITIONS: dict[str, Any] = {**OVERWRITE, "scope": Scope.PARTITION, "partition_by": ("dt",)}


KINDS = {"append": APPEND, "overwrite": OVERWRITE, "partitions": PARTITIONS}
# Another job, where it writes, and which kinds of a job with a file in dt=1/ it meets. Of a table
# inside an append looks at none: its second run is none of them.
LATER = [
    (None, "", "", ""),
    (APPEND, "x/sales/", "dt=1/", "overwrite partitions"),
    (APPEND, "x/sales/", "dt=2/", "overwrite"),
    (APPEND, "x/sales/", "", "overwrite"),
    (OVERWRITE, "x/sales/", "dt=2/", "append overwrite partitions"),
    (PARTITIONS, "x/sales/", "dt=1/", "append overwrite partitions"),
    (PARTITIONS, "x/sales/", "dt=2/", "overwrite"),
    (APPEND, "x/", "dt=1/", ""),
    (APPEND, "x/", "sales/dt=1/", "overwrite partitions"),
    (OVERWRITE, "x/", "dt=1/", "append overwrite partitions"),
    (APPEND, "x/sales/dt=1/", "", "overwrite partitions"),
    (APPEND, "x/sales/dt=2/", "", "overwrite"),
    (OVERWRITE, "x/sales/dt=1/", "", "overwrite partitions"),
    (OVERWRITE, "x/sales/dt=2/", "", "overwrite"),
]


@pytest.mark.parametrize("is_noted", [True, False])
@pytest.mark.parametrize(("later", "place", "into", "met"), LATER)
@pytest.mark.parametrize("kind", KINDS)
def test_i6_who_commits_for_a_dead_driver_does_not_remove_its_correction(
    desk: Desk,
    kind: str,
    later: dict[str, Any] | None,
    place: str,
    into: str,
    met: str,
    is_noted: bool,
) -> None:
    """An overwrite is as old as its tasks. ``is_noted``: the ledger knows the job."""
    own, meets = KINDS[kind], kind in met.split()
    world, old, new = desk.world, job_directory(JOB, "x/sales/"), job_directory(OTHER, place)
    world.commit(job_directory(THIRD, "x/sales/"))  # from before: nobody is told of it
    world.clock.advance(60)
    world.open(old, **own)
    attempt = world.attempt(old, "0", files={f"dt=1/part-{JOB}.csv": b"old"})
    if is_noted:
        world.announce(old, attempt)
    world.clock.advance(60)
    if later is not None:
        world.ask(new, files={f"{into}part-{OTHER}.csv": b"new"}, **later)
        world.run(new)
    world.clock.advance(60)
    words = ["commit", old.uri, "--tasks", "1"]
    if not meets:
        is_named = later is not None and (own is not APPEND or not place.startswith("x/sales/dt="))
        for each in (desk.run(*words, "--dry-run"), desk.run(*words)):
            assert THIRD not in each.stderr
            assert (f"{OTHER} at {new.destination.uri} (" in each.stderr) == is_named
    else:
        line = desk.fails(*words, "--dry-run", exit_code=3)
        assert f"{OTHER} at {new.destination.uri} (" in line
        assert line == desk.fails(*words, exit_code=3)
        assert not asked(desk, old)
        assert desk.json(*words, "--after-others")["others"] == [OTHER]
    world.run(old)
    is_overtaken = meets and own is not APPEND and later is not APPEND
    assert world.ended(old)[1] == ("OVERTAKEN" if is_overtaken else "")
    seen = {*world.visible("x/").values()}
    assert (b"old" in seen) != is_overtaken
    assert (b"new" in seen) == (later is not None and not (meets and later is APPEND))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("seconds", "is_late"), [(-60, False), (60, True)])
def test_i6_an_overwrite_that_is_old(desk: Desk, kind: str, seconds: int, is_late: bool) -> None:
    """It would end so: the ledger has forgotten what was committed since."""
    job = job_directory(JOB)
    desk.world.open(job, **KINDS[kind])
    desk.world.attempt(job, "0", files={f"dt=1/part-{JOB}.csv": b"old"})
    desk.world.clock.advance(TURN_DAYS * 86_400 + seconds)
    words = ["commit", job.uri, "--tasks", "1"]
    if is_late and kind != "append":
        assert f"more than {TURN_DAYS} days ago" in desk.fails(*words, exit_code=3)
        assert not asked(desk, job)
    else:
        desk.run(*words)
        desk.world.run(job)
        assert desk.world.ended(job)[0] == "COMMITTED"
