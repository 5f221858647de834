"""``s3commit rescue``: S3A jobs whose driver died, from what was recorded (tests/golden/s3a)."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from s3commit.cli.s3a import read_jobs
from s3commit.core.model.errors import AccessError, InvalidInputError, TransientError
from tests.cli.support import JOB, OTHER, SALES, Desk
from tests.core.world import BUCKET, World, job_directory
from tests.fakes.faults import Call
from tests.golden.s3a.replay import Recorded, read, replay

CASES = ["plain", "partitioned", "in_memory", "halfway", "task_running"]
DAYS = 2 * 86400.0


def dead(desk: Desk, case: str = "plain", *, later: float = DAYS) -> Recorded:
    """What the driver left behind, and some time after it."""
    recorded = read(case)
    replay(desk.world.store, recorded)
    desk.world.clock.advance(later)
    return recorded


def data(world: World) -> dict[str, bytes]:
    return {key: body for key, body in world.visible().items() if not key.endswith("/")}


def snapshot(desk: Desk) -> tuple[list[str], list[str]]:
    return desk.world.all_keys(), desk.world.open_uploads()


def look(desk: Desk, recorded: Recorded) -> Any:
    (job,) = desk.json("rescue", recorded.directory.uri)["jobs"]
    return job


def refused(desk: Desk, recorded: Recorded, *words: str) -> str:
    """What the refusal to act on the job says; nothing was changed."""
    before = snapshot(desk)
    line = desk.fails("rescue", recorded.directory.uri, *words, exit_code=3)
    assert snapshot(desk) == before
    return line


def change(desk: Desk, recorded: Recorded, **fields: Any) -> str:
    """Let the first file of the first manifest say something else; return the manifest's key."""
    key = next(iter(recorded.manifests))
    body = desk.world.json(key)
    body["commits"][0].update(fields)
    desk.world.store.put(BUCKET, key, json.dumps(body).encode())
    desk.world.clock.advance(DAYS)
    return key


@pytest.mark.parametrize("case", CASES)
def test_a_dead_drivers_job_is_completed(desk: Desk, case: str) -> None:
    recorded = dead(desk, case)
    partial = ["--partial"] * (case == "task_running")
    shown = desk.json("rescue", recorded.directory.uri, "--commit", *partial)["jobs"][0]
    assert data(desk.world) == recorded.files
    assert (shown["visible"], shown["open"], shown["gone"]) == (len(recorded.files), 0, 0)
    assert shown["unfinished"] == len(desk.world.open_uploads())
    assert desk.json("rescue", recorded.directory.uri, "--commit", *partial)  # again


def test_a_task_that_has_only_its_directory_is_missed(desk: Desk) -> None:
    """Files of an RDD have no id in their names, so the task's open upload is nobody's."""
    recorded = dead(desk)
    last = sorted(recorded.manifests)[-1]
    attempt = last.rsplit("task_", 1)[1].removesuffix("000002.pendingset") + "000003_0"
    root = recorded.directory.prefix
    desk.world.store.put(BUCKET, f"{root}job-x/00/tasks/attempt_{attempt}/__base/", b"")
    desk.world.clock.advance(DAYS)
    assert "1 task without a manifest" in refused(desk, recorded, "--commit")
    assert look(desk, recorded)["missingTasks"] == 1


def test_directories_of_attempts_hide_no_job_from_a_short_look(desk: Desk) -> None:
    directory = dead(desk).directory
    for n in range(9):
        desk.world.store.put(BUCKET, f"{directory.prefix}!attempt_{n}/__base/", b"")
    for most in (None, 8):
        assert len(list(read_jobs(desk.session.s3, directory.destination, most=most))) == 1


@pytest.mark.parametrize("case", CASES)
def test_an_abort_ends_what_was_shown_and_deletes_nothing_visible(desk: Desk, case: str) -> None:
    recorded = dead(desk, case)
    keys = desk.world.all_keys()
    desk.run("rescue", recorded.directory.uri, "--abort", look(desk, recorded)["shown"])
    assert desk.world.open_uploads() == []
    assert desk.world.all_keys() == keys
    assert data(desk.world) == recorded.visible


@pytest.mark.parametrize("verb", ["show", "commit", "commit --partial", "abort", "show --follow"])
@pytest.mark.parametrize("case", CASES)
def test_no_other_verb_takes_it_for_a_job_of_the_pipeline(desk: Desk, case: str, verb: str) -> None:
    """Hadoop's directory may have the name of ours: a request in it would hide it from rescue."""
    recorded = dead(desk, case)
    before, uri = snapshot(desk), recorded.directory.uri
    line = desk.fails(*verb.split(), uri, exit_code=1)
    assert line.startswith(f"Error: no job {recorded.directory.job_id} at {SALES}; if it is S3A's:")
    assert f" s3commit rescue {uri} [NO_JOB]" in line
    assert snapshot(desk) == before
    assert look(desk, recorded)["problems"] == []


def test_a_look_that_reaches_nothing_may_have_changed_nothing(desk: Desk) -> None:
    desk.world.plan.fail("list", TransientError("timed out"), times=None)
    assert desk.fails("rescue", SALES, exit_code=1).endswith("; try again")


def test_by_default_nothing_is_changed(desk: Desk) -> None:
    recorded = dead(desk, "halfway")
    before = snapshot(desk)
    header, row = desk.run("rescue", SALES).stdout.splitlines()
    columns = "JOB QUIET TASKS SIZE OPEN VISIBLE TAKEN GONE UNFINISHED"
    assert header.split() == columns.split()
    assert row.split()[0] == recorded.directory.job_id
    assert row.split()[-5:] == ["2", "1", "0", "0", "0"]
    result = desk.run("rescue", recorded.directory.uri)
    states = sorted(line.split()[-1] for line in result.stdout.splitlines()[1:])
    assert states == ["open", "open", "visible"]
    shown = look(desk, recorded)["shown"]
    assert f"s3commit rescue {recorded.directory.uri} --commit\n" in result.stderr
    assert f"s3commit rescue {recorded.directory.uri} --abort {shown}\n" in result.stderr
    assert snapshot(desk) == before


def test_what_a_program_reads(desk: Desk) -> None:
    job = look(desk, recorded := dead(desk, "task_running"))
    assert (job["jobId"], job["tasks"], job["missingTasks"]) == (recorded.directory.job_id, 2, 1)
    assert (job["open"], job["visible"], job["unfinished"]) == (6, 0, 3)
    assert job["bytes"] == sum(map(len, recorded.files.values()))
    assert {one["key"] for one in job["uploads"]} == set(desk.world.open_uploads())
    assert job["problems"] == []
    assert 0 < job["quietSeconds"] <= DAYS


def test_i5_only_what_was_shown_is_aborted(desk: Desk) -> None:
    """attack A5: a manifest that is put after the look adds no upload to the abort."""
    recorded = dead(desk)
    shown = look(desk, recorded)["shown"]
    upload = desk.world.store.create_upload(BUCKET, "sales/x.csv", metadata={}, content_type="")
    change(desk, recorded, destinationKey="sales/x.csv", uploadId=upload)
    told = refused(desk, recorded, "--abort", shown)
    assert "the open uploads have changed since they were shown" in told


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"destinationKey": "elsewhere/x.parquet"}, "NOT_CONTAINED"),
        ({"destinationKey": "sales/_commits/_x.jsonl"}, "NOT_CONTAINED"),
        ({"destinationKey": "sales/../x"}, "NOT_CONTAINED"),
        ({"bucket": "other"}, "NOT_CONTAINED"),
        ({"jobId": OTHER}, "WRONG_JOB"),
        ({"etags": [7]}, "BAD_FIELD"),
    ],
)
def test_i5_i7_a_manifest_has_its_own_job(desk: Desk, fields: dict[str, Any], code: str) -> None:
    recorded = dead(desk)
    manifest = change(desk, recorded, **fields)
    told = refused(desk, recorded, "--commit", "--partial")
    assert manifest in told
    assert f"[{code}]" in told


def test_i5_jobs_of_the_pipeline_are_left_alone(desk: Desk) -> None:
    ours, _ = desk.open_job(), desk.committed_job(OTHER)
    recorded = dead(desk)
    (job,) = desk.json("rescue", SALES)["jobs"]
    assert job["jobId"] == recorded.directory.job_id
    mine = [key for key in desk.world.open_uploads() if JOB in key]
    desk.run("rescue", recorded.directory.uri, "--abort", look(desk, recorded)["shown"])
    assert desk.world.open_uploads() == mine
    assert "NO_JOB" in desk.fails("rescue", ours.uri, "--commit", exit_code=1)


def forged(desk: Desk, root: str, job_id: str, suffix: str, key: str, upload_id: str) -> None:
    """A document of S3A's that names an upload, put below ``root`` by a stranger."""
    recorded = read("plain")
    body = json.loads(next(iter(recorded.manifests.values())))
    (file, *_) = body["commits"]
    file |= {"destinationKey": key, "uploadId": upload_id, "jobId": job_id, "bucket": BUCKET}
    file |= {"uri": f"s3a://{BUCKET}/{key}", "taskId": ""}
    document = {**body, "jobId": job_id, "commits": [file]} if suffix == "pendingset" else file
    name = f"{root}00/task_202611220000_0000_m_000000.{suffix}"
    desk.world.store.put(BUCKET, name, json.dumps(document).encode())


@pytest.mark.parametrize("named", ["its upload", "another of its write"])
@pytest.mark.parametrize("suffix", ["pendingset", "pending"])
@pytest.mark.parametrize("as_id", [JOB, OTHER])
@pytest.mark.parametrize("form", ["__magic/job-{}/", "__magic_job-{}/"])
@pytest.mark.parametrize("at", ["sales/", "sales/dt=1/", ""])
def test_i5_no_document_makes_a_live_pipeline_jobs_uploads_those_of_s3a(
    desk: Desk, at: str, form: str, as_id: str, suffix: str, named: str
) -> None:
    """Whatever id the document has, and wherever the live job lies: there, below or above."""
    destination = "sales/" if at else "lake/sales/"
    directory = job_directory(JOB, at or "lake/")
    within = (at or destination)[len(directory.destination.prefix) :] + "dt=1/"
    files = {f"{within}part-0-{JOB}.c000.parquet": b"live"}
    desk.world.attempt(directory, "0", files=files)
    desk.world.clock.advance(DAYS)
    root = destination + form.format(as_id)
    (upload,) = desk.world.store.list_uploads(BUCKET, "")
    key, upload_id = upload.key, upload.upload_id
    if named != "its upload":
        key, upload_id = f"{destination}x-{JOB}.c000.csv", "none"
    forged(desk, root, as_id, suffix, key, upload_id)
    desk.world.clock.advance(DAYS)
    jobs = desk.json("rescue", f"s3://{BUCKET}/{destination}")["jobs"]
    assert len(jobs) == (root != directory.prefix)  # what lies in the live job's own is none
    for job in jobs:
        assert (job["open"], job["unfinished"]) == (0, 0)
        desk.run("rescue", job["directory"], "--abort", job["shown"])
        desk.run_any("rescue", job["directory"], "--commit", "--partial")
    assert desk.world.open_uploads() == [upload.key]
    assert data(desk.world) == {}


@pytest.mark.parametrize("error", [InvalidInputError("S3 says 400"), AccessError("S3 says 403")])
@pytest.mark.parametrize("what", ["manifest", "data"])
def test_i12_what_can_not_be_read_forbids_a_commit(desk: Desk, what: str, error: Exception) -> None:
    recorded = dead(desk)
    key = next(iter(recorded.manifests if what == "manifest" else recorded.files))
    desk.world.store.put(BUCKET, f"{SALES[10:]}__magic/job-{OTHER}/00/task_x.pendingset", b"{}")
    for verb in ("head", "get"):
        desk.world.plan.fail(verb, error, times=None, where=lambda call: call.key == key)
    jobs = {one["jobId"]: one for one in desk.json("rescue", SALES)["jobs"]}
    assert jobs.keys() == {recorded.directory.job_id, OTHER}
    (problem,) = jobs[recorded.directory.job_id]["problems"]
    assert error.args[0] in problem if what == "manifest" else "at 1 of its keys" in problem
    assert "CANNOT_COMMIT" in refused(desk, recorded, "--commit")


def overwritten(desk: Desk, recorded: Recorded) -> None:
    desk.world.store.put(BUCKET, next(iter(recorded.files)), b"of another run")


def lost(desk: Desk, recorded: Recorded) -> None:
    desk.world.lose_uploads("sales/", slice(1))


def attempted_twice(desk: Desk, recorded: Recorded) -> None:
    key, body = next(iter(recorded.manifests.items()))
    desk.world.store.put(BUCKET, key.replace("/00/", "/01/"), body)


def with_checksums(desk: Desk, recorded: Recorded) -> None:
    real = desk.world.store.list_uploads
    vars(desk.world.store)["list_uploads"] = lambda *where, **how: (
        replace(one, composite=True) for one in real(*where, **how)
    )


@pytest.mark.parametrize(
    ("case", "happens", "told"),
    [
        (
            "task_running",
            lambda *_: None,
            "1 task without a manifest, 3 open uploads that no manifest names.*"
            r"add --partial \[INCOMPLETE\]; nothing was changed$",
        ),
        ("plain", overwritten, "other objects are visible at 1 of its keys"),
        ("plain", lost, "1 upload gone, and the data"),
        ("plain", attempted_twice, "two attempts of its application|same file"),
        ("plain", with_checksums, "has checksums of its parts"),
    ],
)
def test_what_can_not_be_completed_whole_is_left_as_it_is(
    desk: Desk, case: str, happens: Callable[[Desk, Recorded], None], told: str
) -> None:
    recorded = dead(desk, case)
    happens(desk, recorded)
    desk.world.clock.advance(DAYS)
    assert re.search(told, refused(desk, recorded, "--commit"))
    if happens is with_checksums:  # which can be aborted alone
        desk.run("rescue", recorded.directory.uri, "--abort", look(desk, recorded)["shown"])
        assert desk.world.open_uploads() == []


def test_what_uploads_are_left_is_completed_with_partial(desk: Desk) -> None:
    recorded = dead(desk)
    lost(desk, recorded)
    desk.run("rescue", recorded.directory.uri, "--commit", "--partial", exit_code=3)
    assert len(data(desk.world)) == len(recorded.files) - 1


def test_what_becomes_visible_meanwhile_is_not_overwritten_either(desk: Desk) -> None:
    recorded = dead(desk)
    key = next(iter(recorded.files))
    desk.world.plan.run_before(
        "complete_upload", lambda: desk.world.store.put(BUCKET, key, b"of another run"), nth=1
    )
    result = desk.run("rescue", recorded.directory.uri, "--commit", exit_code=3)
    assert "1 file of the job did not become visible" in result.stderr
    assert data(desk.world) == {**recorded.files, key: b"of another run"}


def test_a_completion_whose_answer_was_lost_counts(desk: Desk) -> None:
    recorded = dead(desk)

    def complete_twice(call: Call) -> object:
        desk.world.store.complete_upload(**call.arguments)
        return desk.world.store.complete_upload(**call.arguments)

    desk.world.plan.answer("complete_upload", complete_twice)
    desk.run("rescue", recorded.directory.uri, "--commit")
    assert data(desk.world) == recorded.files


@pytest.mark.parametrize("opaque", [False, True])
def test_behind_kms_the_length_says_what_the_driver_had_completed(opaque: bool) -> None:
    desk = Desk(World(opaque=opaque))
    assert look(desk, dead(desk, "halfway"))["visible"] == 1


@pytest.mark.parametrize("word", ["--commit", "--abort"])
def test_a_job_that_was_active_recently_is_left_alone(desk: Desk, word: str) -> None:
    """Whatever its documents say: `saved` is a stranger's word, the time is S3's."""
    recorded = dead(desk, later=0.0)
    arguments = [word, *[look(desk, recorded)["shown"]] * (word == "--abort")]
    assert "the job was active" in refused(desk, recorded, *arguments)
    desk.run("rescue", recorded.directory.uri, *arguments, "--older-than", "0s")
    assert desk.world.open_uploads() == []


def test_two_jobs_of_the_old_shared_directory_are_told_apart(desk: Desk) -> None:
    recorded = dead(desk, "shared")
    (running, done) = desk.json("rescue", SALES)["jobs"]
    ids = {json.loads(body)["jobId"] for body in recorded.manifests.values()}
    assert [running["jobId"], done["jobId"]] == sorted(ids)
    assert (running["tasks"], running["unfinished"]) == (2, 3)
    assert (done["tasks"], done["unfinished"]) == (3, 0)
    assert done["directory"] == f"{SALES}__magic/job-{done['jobId']}/"
    desk.run("rescue", done["directory"], "--commit")
    assert len(data(desk.world)) == 3
    desk.run("rescue", running["directory"], "--abort", running["shown"])
    assert desk.world.open_uploads() == []


def test_a_document_that_is_nested_deeply_is_a_problem_and_no_crash(desk: Desk) -> None:
    """attack: Python's reader of JSON goes deeper than a function may."""
    recorded, problems = dead(desk), 0
    for depth in (3, 5, 300, 600, 900, 100_000):
        body = b'{"commits":' * depth + b"[]" + b"}" * depth
        key = next(iter(recorded.manifests))
        desk.world.store.put(BUCKET, key, body)
        problems += len(look(desk, recorded)["problems"])
    assert problems == 6


def test_a_number_in_a_name_takes_no_memory(desk: Desk) -> None:
    """attack G1."""
    recorded = dead(desk)
    directory = next(iter(recorded.manifests)).rpartition("/")[0]
    name = "task_202611220000_0000_m_999999999999.pendingset"
    desk.world.store.put(BUCKET, f"{directory}/{name}", b"{}")
    assert look(desk, recorded)["missingTasks"] == 10**12 - 4


def test_one_job_must_be_named_and_one_word_given(desk: Desk) -> None:
    for arguments in (["--commit"], ["--abort", "x"]):
        assert "the directory of one job" in desk.fails("rescue", SALES, *arguments, exit_code=2)
    uri = job_directory(JOB).uri
    assert "exclude" in desk.fails("rescue", uri, "--commit", "--abort", "x", exit_code=2)


GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "s3a.md"
COMMANDS = re.findall(r"^s3commit (rescue .*)$", GUIDE.read_text(), re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_guides_commands_do_what_the_guide_says(desk: Desk, command: str) -> None:
    recorded = dead(desk, "partitioned")
    typed = re.sub(r"__magic_job-[0-9a-f-]+", f"__magic_job-{recorded.directory.job_id}", command)
    typed = re.sub(r"--abort \w+", f"--abort {look(desk, recorded)['shown']}", typed)
    result = desk.run(*typed.replace("s3://bucket/table/", SALES).split())
    if command.endswith("/table/"):
        headers = [line.split() for line in GUIDE.read_text().splitlines()]
        assert result.stdout.splitlines()[0].split() in headers
    assert data(desk.world) == (recorded.files if "--commit" in command else {})
    assert (desk.world.open_uploads() == []) is (" --" in command)


def test_the_guide_shows_a_look_a_commit_and_an_abort() -> None:
    words = [" --" in one and one.split()[2] for one in COMMANDS]
    assert words == [False, False, "--commit", "--abort"]


@pytest.mark.parametrize("verb", ["complete_upload", "abort_upload"])
def test_what_stops_half_way_is_not_said_to_have_changed_nothing(desk: Desk, verb: str) -> None:
    recorded = dead(desk)
    uri, left = recorded.directory.uri, len(desk.world.open_uploads())
    shown = look(desk, recorded)["shown"]
    words = ["--commit"] if verb == "complete_upload" else ["--abort", shown]
    desk.world.plan.fail(verb, AccessError("the token has expired"), nth=2)
    line = desk.fails("rescue", uri, *words, exit_code=1)
    assert len(desk.world.open_uploads()) == left - 1
    assert "nothing was changed" not in line
    assert "the token has expired [ACCESS_DENIED]; the command stopped partway; changes" in line
    desk.session.begun = ""
    desk.world.plan.fail("list_uploads", AccessError("the token has expired"))
    line = desk.fails("rescue", uri, "--abort", "x", exit_code=1)
    assert "nothing was changed" in line
