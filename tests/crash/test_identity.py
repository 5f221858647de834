"""Where an etag tells nothing (SSE-KMS): whose a file is, and that a job stops where nobody knows.

A lost answer of CompleteMultipartUpload is recognised as success; where identity can not be known
the job stops where it is, says so, and touches nothing (I2, I5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from s3commit.core.commit.complete_unit import IN_DOUBT_SHOWN
from s3commit.core.formats.documents import encode_request
from s3commit.core.formats.layout import META_ATTEMPT, META_JOB, META_TASK, parse_manifest_key
from s3commit.core.model.errors import IdentityUnknownError, PreconditionError
from s3commit.core.model.job import CommitRequest, Names, Outcome
from s3commit.core.model.limits import MAX_UNITS
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import OpenUpload
from tests.core.test_s3a import data
from tests.core.world import BUCKET, JOB, World, job_directory
from tests.fakes.bucket import Version
from tests.fakes.faults import Call, Crash, FaultPlan
from tests.fakes.memory import MemoryObjectStore
from tests.golden.s3a.replay import Recorded, read, replay


def s3a_job(world: World, case: str = "plain") -> Recorded:
    """A job of S3A's: uploads without metadata, names that do not carry the job's id."""
    recorded = read(case)
    replay(world.store, recorded)
    body = encode_request(CommitRequest(recorded.directory.job_id, None))
    world.store.put(BUCKET, recorded.directory.request, body, if_absent=True)
    return recorded


def seen(world: World) -> tuple[Any, ...]:
    """All that a job could touch: versions of objects, and uploads."""
    bucket = world.store.bucket(BUCKET)
    objects = {key: tuple(versions) for key, versions in bucket.objects.items()}
    return objects, set(bucket.uploads)


def stops(world: World, recorded: Recorded, state: JobState) -> str:
    """Run the job as often as anyone likes: it stays where it is; what it says."""
    before = None
    for number in range(3):
        with pytest.raises(IdentityUnknownError) as caught:
            world.run(recorded.directory, f"again-{number}")
        assert world.record(recorded.directory).state is state
        assert before in {None, repr(seen(world)[0])}
        before = repr(seen(world)[0])
    return caught.value.message


def change(world: World, key: str, metadata: dict[str, str]) -> None:
    """What ``aws s3 cp`` onto itself with ``--metadata-directive REPLACE`` does."""
    versions = world.store.bucket(BUCKET).objects
    (version,) = versions[key]
    versions[key] = [
        Version(None, version.body, '"copied"', metadata, version.content_type, opaque=True)
    ]


def mark(world: World, recorded: Recorded, key: str) -> None:
    """A person has looked, and says that the file is the job's."""
    (manifest,) = [name for name, body in recorded.manifests.items() if key.encode() in body]
    directory, task, attempt = parse_manifest_key(BUCKET, manifest)
    change(world, key, {META_JOB: directory.job_id, META_TASK: task, META_ATTEMPT: attempt})


def lose_answers(plan: FaultPlan) -> FaultPlan:
    return plan.lose_response("complete_upload", nth=2)


def test_i2_a_lost_answer_is_recognised_by_metadata_whatever_the_etag_is() -> None:
    for names in Names:
        world = World(opaque=True, plan=lose_answers(FaultPlan()))
        directory = job_directory()
        world.open(directory, names=names)
        files = [{f"part-t{number}-{JOB}.x": b"x"} for number in range(3)]
        counted = [world.attempt(directory, f"t{n}", files=one) for n, one in enumerate(files)]
        world.request(directory, *counted)
        world.run(directory)
        assert world.result(directory).outcome is Outcome.COMMITTED
        assert len(world.visible()) == 3


@pytest.mark.parametrize("opaque", [False, True], ids=["plain", "SSE-KMS"])
def test_i2_a_lost_answer_is_recognised_by_the_name_where_a_client_sets_no_metadata(
    opaque: bool,
) -> None:
    """Names that carry the job's id are nobody else's (ADR 4)."""
    world, directory = World(opaque=opaque, plan=lose_answers(FaultPlan())), job_directory()
    world.request(directory, *[world.attempt(directory, f"t{number}") for number in range(3)])
    for upload in world.store.bucket(BUCKET).uploads.values():
        upload.metadata.clear()
    world.run(directory)
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert len(world.visible()) == 3


def test_i2_a_lost_answer_to_an_upload_of_s3a_is_recognised_by_etag_and_length() -> None:
    world = World(plan=lose_answers(FaultPlan()))
    recorded = s3a_job(world)
    world.run(recorded.directory)
    assert world.result(recorded.directory).outcome is Outcome.COMMITTED
    assert data(world) == recorded.files


def test_i2_what_s3_answers_to_a_repetition_tells_whose_the_object_is() -> None:
    """200 with the etag of what the upload became; the object has the same one."""
    plan = lose_answers(FaultPlan())
    world = World(opaque=True, repeats_complete=True, plan=plan)
    recorded = s3a_job(world)
    world.run(recorded.directory)
    assert world.result(recorded.directory).outcome is Outcome.COMMITTED
    assert data(world) == recorded.files


def test_i2_a_unit_begun_twice_is_completed_though_no_etag_can_be_foretold() -> None:
    """The first worker died before it completed anything: the second one looks at each object."""
    world = World(opaque=True, plan=FaultPlan().crash_after("begin_unit"))
    recorded = s3a_job(world)
    with pytest.raises(Crash):
        world.run(recorded.directory)
    world.run(recorded.directory, "execution-2")
    assert world.result(recorded.directory).outcome is Outcome.COMMITTED
    assert data(world) == recorded.files


def in_doubt_after_the_decision() -> tuple[World, Recorded, str]:
    plan = lose_answers(FaultPlan())
    world = World(opaque=True, plan=plan)
    recorded = s3a_job(world)
    message = stops(world, recorded, JobState.COMMITTING)
    # The second worker looks at the whole unit: what the first one was told is not proven either.
    lost = plan.fired[0].key
    assert any(key in message for key in recorded.files)
    assert "SSE-KMS" in message
    assert "Nothing was touched" in message
    return world, recorded, lost


def test_i2_i5_a_decided_job_stops_where_nobody_can_tell_and_goes_on_when_it_is_settled() -> None:
    world, recorded, lost = in_doubt_after_the_decision()
    assert data(world) == recorded.files  # all of it is there, and not all of it is proven
    assert world.open_uploads() == []
    mark(world, recorded, lost)
    stops(world, recorded, JobState.COMMITTING)
    for key in recorded.files:
        mark(world, recorded, key)
    world.run(recorded.directory, "settled")
    assert world.result(recorded.directory).outcome is Outcome.COMMITTED
    assert data(world) == recorded.files


@pytest.mark.parametrize("repeats", [False, True], ids=["gone", "repeats"])
@pytest.mark.parametrize("when", ["before", "answer lost"])
def test_i2_i5_whatever_the_crash_point_a_job_behind_kms_ends_whole_or_stops_untouched(
    when: str, repeats: bool
) -> None:
    """Each call of a job of S3A's; where S3 repeats what an upload became, none of them stops."""
    stopped = point = 0
    while True:
        point += 1
        plan = FaultPlan()
        {"before": plan.crash_before, "answer lost": plan.lose_response}[when](nth=point)
        world = World(opaque=True, repeats_complete=repeats, plan=plan)
        recorded = s3a_job(world)
        try:
            try:
                world.run(recorded.directory)
            except Crash:
                world.run(recorded.directory, "execution-2")
        except IdentityUnknownError:
            assert world.record(recorded.directory).state is JobState.COMMITTING
            stopped += 1
            for key in data(world):
                mark(world, recorded, key)
            world.run(recorded.directory, "settled")
        assert world.result(recorded.directory).outcome is Outcome.COMMITTED
        assert data(world) == recorded.files
        assert world.open_uploads() == []
        if not [call for call in plan.fired if call.number == point]:
            assert (stopped == 0) is repeats
            return


def test_i2_i5_a_file_that_is_another_programs_is_left_and_the_job_rolled_back() -> None:
    """A person says so by any other mark: then the file is lost, and the job undone."""
    world, recorded, lost = in_doubt_after_the_decision()
    for key in recorded.files.keys() - {lost}:
        mark(world, recorded, key)
    change(world, lost, {META_JOB: "another"})
    world.run(recorded.directory, "settled")
    assert world.result(recorded.directory).outcome is Outcome.ROLLED_BACK
    assert set(data(world)) == {lost}


def test_i2_i5_a_roll_back_stops_before_it_touches_anything_in_doubt() -> None:
    world = World(opaque=True)
    recorded = s3a_job(world)
    victim = list(world.store.list_uploads(BUCKET, "sales/part-0000"))[1]

    def lose() -> None:
        world.store.abort_upload(BUCKET, victim.key, victim.upload_id)

    def mark_first(_call: Call) -> bool:
        first = min(recorded.files)
        if first in data(world):
            mark(world, recorded, first)
        return False

    world.plan.run_after("decide", lose)
    world.plan.run_before("advance", lambda: None, where=mark_first)
    message = stops(world, recorded, JobState.ROLLING_BACK)
    assert victim.key not in data(world)
    assert min(recorded.files) in data(world)  # certainly the job's, and not touched all the same
    assert max(recorded.files) in message
    for key in data(world):  # moved away by a person
        world.store.delete(BUCKET, key)
    world.run(recorded.directory, "settled")
    assert world.result(recorded.directory).outcome is Outcome.ROLLED_BACK
    assert data(world) == {}
    assert world.open_uploads() == []


def test_i2_i5_a_zombie_that_completes_a_file_in_doubt_during_a_roll_back_is_found() -> None:
    """A stranger had the name, so the upload was open; then the zombie has it."""
    world, directory, key = World(opaque=True), job_directory(), "sales/a.csv"
    world.open(directory, names=Names.EXACT)
    world.request(directory, world.attempt(directory, "t0", files={"a.csv": b"a"}))
    (upload,) = world.store.list_uploads(BUCKET, key)
    world.store.bucket(BUCKET).uploads[upload.upload_id].metadata.clear()
    etag = world.store.upload_part(BUCKET, key, upload.upload_id, 1, b"a")
    world.plan.run_after("decide", lambda: world.store.put(BUCKET, key, b"theirs"))

    def wake() -> None:
        world.store.delete(BUCKET, key)
        world.store.complete_upload(BUCKET, key, upload.upload_id, [etag], length=1)

    world.plan.run_before("abort_upload", wake)
    with pytest.raises(IdentityUnknownError):
        world.run(directory)
    assert world.record(directory).state is JobState.ROLLING_BACK
    assert world.visible() == {key: b"a"}


@pytest.mark.parametrize("settled", ["mark", "delete"])
def test_i2_i5_a_job_whose_dead_driver_had_completed_files_stops_before_its_decision(
    settled: str,
) -> None:
    world = World(opaque=True)
    recorded = s3a_job(world, "halfway")
    visible = data(world)
    assert visible
    before = seen(world)[1]
    message = stops(world, recorded, JobState.SEALED)
    assert seen(world)[1] == before  # its uploads are open: an abort would give the data up
    (key,) = visible
    assert key in message
    if settled == "mark":
        mark(world, recorded, key)
    else:
        world.store.delete(BUCKET, key)
    world.run(recorded.directory, "settled")
    committed = settled == "mark"
    outcome = Outcome.COMMITTED if committed else Outcome.ABORTED
    assert world.result(recorded.directory).outcome is outcome
    assert data(world) == (recorded.files if committed else {})


def test_i5_i12_an_abort_leaves_alone_what_may_be_the_jobs() -> None:
    """Before its decision the pipeline has completed nothing of it."""
    world = World(opaque=True)
    recorded = read("halfway")
    replay(world.store, recorded)
    world.request_abort(recorded.directory)
    before = data(world)
    assert len(before) == 1
    world.run(recorded.directory)
    assert world.result(recorded.directory).outcome is Outcome.ABORTED
    assert data(world) == before
    assert world.open_uploads() == []


def test_i5_a_stranger_who_took_the_name_is_told_by_the_open_upload() -> None:
    """S3 refuses the completion (412), and the upload stays: what is there is not from it."""
    world = World(opaque=True)
    recorded = s3a_job(world)
    key, body = sorted(recorded.files.items())[0]
    world.plan.run_after("decide", lambda: world.store.put(BUCKET, key, body[::-1]))
    with pytest.raises(IdentityUnknownError):
        world.run(recorded.directory)
    assert world.record(recorded.directory).state is JobState.ROLLING_BACK
    failure = world.record(recorded.directory).failure
    assert failure is not None
    assert failure.code == "UPLOADS_LOST"


def test_i2_two_workers_that_complete_one_upload_at_once_do_not_undo_the_job() -> None:
    """S3 answers 409 to one of them, before what the other one makes is to be seen."""
    error = PreconditionError("409", code="CONFLICT")
    world = World(plan=FaultPlan().fail("complete_upload", error))
    directory = job_directory()
    world.open(directory, names=Names.EXACT)
    world.request(directory, world.attempt(directory, "t0", files={"a.csv": b"a"}))
    assert world.run(directory)[-1] == "TidyUp"
    assert world.result(directory).outcome is Outcome.COMMITTED


def test_a_conflict_after_which_the_upload_is_gone_is_a_loss() -> None:
    """By S3's documentation the parts have to be sent again after a 409."""
    world = World(plan=FaultPlan().fail("complete_upload", PreconditionError("", code="CONFLICT")))
    directory = job_directory()
    world.open(directory, names=Names.EXACT)
    world.request(directory, world.attempt(directory, "t0", files={"a.csv": b"a"}))
    upload = next(world.store.list_uploads(BUCKET, "sales/"))

    def gone() -> None:
        world.store.abort_upload(BUCKET, upload.key, upload.upload_id)

    world.plan.run_before("head", gone, where=lambda call: call.key == upload.key, nth=2)
    world.run(directory)
    assert world.result(directory).outcome is Outcome.ROLLED_BACK
    assert world.visible() == {}


class Checksummed(MemoryObjectStore):
    """One upload was created with checksums of its parts."""

    def list_uploads(self, *where: str, **after: str) -> Iterator[OpenUpload]:
        """With the word that S3 has for it."""
        for upload in super().list_uploads(*where, **after):
            yield replace(upload, composite="part-t1-" in upload.key)


def test_i2_an_upload_whose_checksums_nobody_can_repeat_refuses_the_job_before_its_decision() -> (
    None
):
    """S3 would refuse its completion, when other files are visible already."""
    world, directory = World(), job_directory()
    world.store = Checksummed(BUCKET, clock=world.clock)
    world.ports = Ports(world.plan.wrap(world.store), world.plan.wrap(world.ledger), world.clock)
    world.request(directory, *[world.attempt(directory, f"t{number}") for number in range(3)])
    world.run(directory)
    error = world.result(directory).error
    assert error is not None
    assert error.code == "UNSUPPORTED_CHECKSUM"
    assert "complete_upload" not in world.plan.counts()
    assert world.open_uploads() == []


def test_the_lists_of_a_job_in_many_units_fit_into_what_a_state_may_carry() -> None:
    """4,000 units at most, 256 KiB for all that they say (Step Functions' quota of a payload)."""
    line = len('{"unit":4000,"files":1000,"lost":1000,"in_doubt":""},')
    assert MAX_UNITS * line + IN_DOUBT_SHOWN < 256 * 1024 - 8 * 1024
