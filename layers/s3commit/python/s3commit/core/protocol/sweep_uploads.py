"""The sweep over the bucket's open uploads: invisible, paid for, of jobs that ended (I4, I5).

Whose an upload is the job's id in the file name says, and nothing else is proof. S3 alone has no
word for "foreign": whatever carries no id, or the id of a write of Spark's own, is left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from s3commit.core.errors import InvalidInputError, UploadGoneError
from s3commit.core.layout import (
    COMMITS,
    MAGIC_PREFIX,
    JobDirectory,
    is_of_other_writers,
    owner_of,
)
from s3commit.core.model import Destination, JobRecord
from s3commit.core.ports import OpenUpload
from s3commit.core.protocol.pipeline import read_spec
from s3commit.core.protocol.places import main_of, places_of
from s3commit.core.protocol.sweep import Sweep
from s3commit.core.protocol.sweep_directories import Found, judge_unknown, read_directory
from s3commit.core.protocol.sweep_report import priced
from s3commit.core.states import ENDED

MOST_REMEMBERED = 10_000  # answers; more are asked for again


class Fate(StrEnum):
    """What is known of the job whose id an upload's name carries."""

    ENDED = "ended"
    UNDER_WAY = "under way"
    UNKNOWN = "unknown"  # no trace of it, below a directory where jobs have been
    FOREIGN = "foreign"  # no trace of it, nor of any job in the directories above


@dataclass(slots=True)
class _Known:
    """What has been asked of ledger and S3; bounded, and forgotten as a whole."""

    records: dict[str, JobRecord | None] = field(default_factory=dict)
    places: dict[str, tuple[str, ...]] = field(default_factory=dict)
    traces: dict[tuple[str, str], Fate | None] = field(default_factory=dict)
    managed: dict[str, bool] = field(default_factory=dict)
    freed: dict[tuple[str, Fate], tuple[int, int]] = field(default_factory=dict)

    def bound(self) -> None:
        for each in (self.records, self.places, self.traces, self.managed):
            if len(each) > MOST_REMEMBERED:
                each.clear()

    def note(self, sweep: Sweep) -> None:
        """Say of each job how much of it was aborted since it was last said."""
        for (job_id, fate), (uploads, count) in self.freed.items():
            many = "1 open upload" if uploads == 1 else f"{uploads} open uploads"
            sweep.report.note(f"job {job_id}, {fate}: {many} aborted, {priced(count)}")
        self.freed.clear()


def abort_orphaned_uploads(sweep: Sweep, cursor: str) -> str:
    """Abort the bucket's uploads whose job has ended, or is unknown and long gone.

    The cursor is an upload's id and key, with which the call before ended. What S3 leaves out of
    the key's others then (see `Survey.uploads`) the next sweep finds.
    """
    known, bucket = _Known(), sweep.bucket
    last = ""
    upload_id, _, key = cursor.partition("\n")
    for upload in sweep.survey.uploads(bucket, after=key, after_upload=upload_id):
        if last and sweep.spent:
            known.note(sweep)
            return last
        last = f"{upload.upload_id}\n{upload.key}"
        sweep.took()
        with sweep.each(f"upload of {upload.key}"):
            _judge(sweep, bucket, upload, known)
        known.bound()
    known.note(sweep)
    return ""


def _judge(sweep: Sweep, bucket: str, upload: OpenUpload, known: _Known) -> None:
    job_id = owner_of(upload.key)
    if job_id is None:
        sweep.report.foreign += 1
        return
    if upload.initiated >= sweep.ago(sweep.limits.stuck):
        return
    fate = _fate(sweep, bucket, upload.key, job_id, known)
    if fate is Fate.UNKNOWN and is_of_other_writers(upload.key):
        fate = Fate.FOREIGN
    old = upload.initiated < sweep.ago(sweep.limits.orphaned)
    if fate is Fate.ENDED or (fate is Fate.UNKNOWN and old and _is_silent(sweep, bucket, upload)):
        count = _abort(sweep, bucket, upload)
        if count is not None:
            uploads, before = known.freed.get((job_id, fate), (0, 0))
            known.freed[job_id, fate] = (uploads + 1, before + count)
    elif fate is Fate.FOREIGN:
        sweep.report.foreign += 1


def _is_silent(sweep: Sweep, bucket: str, upload: OpenUpload) -> bool:
    parts = sweep.survey.parts(bucket, upload.key, upload.upload_id)
    return parts.modified < sweep.ago(sweep.limits.orphaned)


def _abort(sweep: Sweep, bucket: str, upload: OpenUpload) -> int | None:
    """Abort the upload; its bytes, or None if somebody else was faster."""
    try:
        count = sweep.survey.parts(bucket, upload.key, upload.upload_id).bytes
    except UploadGoneError:
        return None
    if not sweep.dry_run:
        sweep.pipeline.store.abort_upload(bucket, upload.key, upload.upload_id)
    sweep.report.uploads += 1
    sweep.report.upload_bytes += count
    return count


def _fate(sweep: Sweep, bucket: str, key: str, job_id: str, known: _Known) -> Fate:
    """By the ledger's record if the key lies in a place of that job, else by the directories."""
    if job_id not in known.records:
        known.records[job_id] = sweep.pipeline.ledger.job(job_id)
    record = known.records[job_id]
    if record is not None and _lies_in(sweep, bucket, key, record, known):
        return Fate.ENDED if record.state in ENDED else Fate.UNDER_WAY
    above = _directories_above(key)
    places = [JobDirectory(Destination(bucket, prefix), job_id) for prefix in above]
    traces = {_trace(sweep, place, record, known) for place in places}
    # A copied directory, or one of a job that was turned away, must not speak for one above it.
    for fate in (Fate.UNDER_WAY, Fate.ENDED):
        if fate in traces:
            return fate
    if record is not None:
        return Fate.UNDER_WAY  # its job is elsewhere, and nobody knows what this is
    is_managed = any(
        _is_managed(sweep, bucket, prefix, known) for prefix in _directories_above(key)
    )
    return Fate.UNKNOWN if is_managed else Fate.FOREIGN


def _lies_in(sweep: Sweep, bucket: str, key: str, record: JobRecord, known: _Known) -> bool:
    if record.destination.bucket != bucket:
        return False
    if key.startswith(record.destination.prefix):
        return True
    if record.job_id not in known.places:
        main = JobDirectory(record.destination, record.job_id)
        places = places_of(sweep.pipeline, main, record)
        known.places[record.job_id] = tuple(place.destination.prefix for place in places)
    return key.startswith(known.places[record.job_id])


def _directories_above(key: str) -> list[str]:
    """Of a key, from the nearest up; a job writes below its own only."""
    elements = key.split("/")[:-1]
    return ["/".join(elements[:depth]) + "/" for depth in range(len(elements), 0, -1)]


def _trace(
    sweep: Sweep, place: JobDirectory, record: JobRecord | None, known: _Known
) -> Fate | None:
    """What the job directory in one place says; a request that nobody heard is heard here."""
    asked = (place.destination.prefix, place.job_id)
    if asked not in known.traces:
        known.traces[asked] = _read_trace(sweep, place, record)
    return known.traces[asked]


def _read_trace(sweep: Sweep, place: JobDirectory, record: JobRecord | None) -> Fate | None:
    found = read_directory(sweep, place)
    if found is not None and found.job and not (found.request or found.result):
        try:
            main = main_of(sweep.pipeline, place)
        except InvalidInputError:
            return Fate.UNDER_WAY  # nobody can tell of what
        if main is not None:
            return _trace_of_main(sweep, main, place, record)
    return _trace_of(sweep, place, record, found)


def _trace_of_main(
    sweep: Sweep, main: JobDirectory, location: JobDirectory, record: JobRecord | None
) -> Fate | None:
    """What is known of a location's job, whose record in the ledger is lost or says less (ADR 13).

    Where the job's ``job.json`` does not name the location, the job can't commit what lies there:
    that is no job's, and old enough it goes. Without that document the location's word is taken for
    what it costs the location alone.
    """
    found = read_directory(sweep, main)
    if found is not None and found.job:
        try:
            spec = read_spec(sweep.pipeline, main)
        except InvalidInputError:
            return Fate.UNDER_WAY
        if location.destination.prefix not in spec.locations.values():
            return None
    return _trace_of(sweep, main, record, found)


def _trace_of(
    sweep: Sweep, place: JobDirectory, record: JobRecord | None, found: Found | None
) -> Fate | None:
    if found is not None and found.result is not None:
        return Fate.ENDED
    if found is not None:
        if found.own:
            judge_unknown(sweep, place, record, found)
        return Fate.UNDER_WAY
    commits = next(iter(sweep.survey.objects(place.bucket, place.commits)), None)
    return Fate.ENDED if commits is not None else None


def _is_managed(sweep: Sweep, bucket: str, prefix: str, known: _Known) -> bool:
    """Whether jobs have been at work in the directory: it has a job directory, or `_commits/`."""
    if prefix not in known.managed:
        known.managed[prefix] = any(
            next(iter(sweep.survey.objects(bucket, prefix + name)), None) is not None
            for name in (MAGIC_PREFIX, COMMITS)
        )
    return known.managed[prefix]
