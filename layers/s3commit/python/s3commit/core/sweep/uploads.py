"""The sweep over the bucket's open uploads: invisible, paid for, of jobs that ended (I4, I5).

Whose an upload is the job's id in the file name says, and nothing else is proof. S3 alone has no
word for "foreign": whatever carries no id, or the id of a write of Spark's own, is left alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum

from s3commit.core.formats.layout import (
    COMMITS,
    MAGIC_PREFIX,
    JobDirectory,
    directories_above,
    is_of_other_writers,
    owner_of,
)
from s3commit.core.job.documents import read_spec
from s3commit.core.job.locations import main_of, places_of
from s3commit.core.model.errors import InvalidInputError, UploadGoneError
from s3commit.core.model.job import Destination
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED
from s3commit.core.ports.objects import OpenUpload
from s3commit.core.sweep.directories import Found, judge_unknown, read_directory
from s3commit.core.sweep.report import priced
from s3commit.core.sweep.sweep import Sweep

MOST_REMEMBERED = 10_000  # answers; more are asked for again


DEEPEST = (
    96  # directories above a key that are asked; what lies deeper is left to the lifecycle rule
)


class Fate(StrEnum):
    """What is known of the job whose id an upload's name carries."""

    ENDED = "ended"
    UNDER_WAY = "under way"
    UNKNOWN = "unknown"  # no trace of it, below a directory where jobs have been
    FOREIGN = "foreign"  # no trace of it, nor of any job in the directories above


@dataclass(slots=True)
class _Known:
    """What has been asked of ledger and S3; bounded, and forgotten as a whole."""

    records: dict[str, list[JobRecord]] = field(default_factory=dict)
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

    The cursor is a list in JSON: the directory below which the uploads lie (empty: anywhere), and
    key and id of the one with which the call before ended. What S3 leaves out of the key's others
    then (see `Survey.uploads`) the next sweep finds. A directory whose share is up is put off.
    """
    known = _Known()
    below, after = _decode(cursor)
    waits = ""
    try:
        while True:
            waits, last = _abort_below(sweep, below, after, known)
            if not waits:
                return _handed_over(sweep, below, last)
            # What comes after all keys of a directory: 0 is the character that follows the slash.
            after = (waits[:-1] + "0", "")
    finally:
        known.note(sweep)


_Mark = tuple[str, str]  # an upload's key and its id: a listing goes on behind it


def _decode(cursor: str) -> tuple[str, _Mark]:
    below, key, upload_id = json.loads(cursor) if cursor else ("", "", "")
    return below, (key, upload_id)


def _handed_over(sweep: Sweep, below: str, last: _Mark | None) -> str:
    """The cursor for the next call; empty if there is nothing left, or it waits for its turn."""
    cursor = json.dumps([below, *last]) if last else ""
    if cursor and sweep.alone:
        sweep.postpone(below, cursor)
        return ""
    return cursor


def _abort_below(sweep: Sweep, below: str, after: _Mark, known: _Known) -> tuple[str, _Mark | None]:
    """Go through the uploads, up to a directory that has to wait for its turn: that one.

    If there was none: empty, and the last upload if the call has done enough.
    """
    last = None
    key, upload_id = after
    for upload in sweep.survey.uploads(sweep.bucket, below, after=key, after_upload=upload_id):
        if last and sweep.spent:
            return "", last
        waits = "" if sweep.alone else _waiting(sweep, upload.key, last)
        if waits:
            return waits, None
        last = (upload.key, upload.upload_id)
        sweep.took()
        with sweep.each(f"upload of {upload.key}", upload.key):
            _judge(sweep, sweep.bucket, upload, known)
        known.bound()
    return "", None


def _waiting(sweep: Sweep, key: str, last: _Mark | None) -> str:
    """The directory above the key that is put off, or is from now on; empty if none is."""
    costly = sweep.cost.overspent(key)
    if costly:
        mark = last if last and last[0].startswith(costly) else (costly, "")
        sweep.postpone(costly, json.dumps([costly, *mark]))
        return costly
    return next((one for one in sweep.put_off if key.startswith(one)), "")


def _judge(sweep: Sweep, bucket: str, upload: OpenUpload, known: _Known) -> None:
    job_id = owner_of(upload.key)
    if job_id is None:
        sweep.report.foreign += 1
        return
    if upload.initiated >= sweep.ago(sweep.limits.stuck):
        return
    fate = _fate(sweep, bucket, upload, job_id, known)
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


def _fate(sweep: Sweep, bucket: str, upload: OpenUpload, job_id: str, known: _Known) -> Fate:
    """By the ledger's record or the job directory of the outermost directory that has one.

    Whoever may write below a directory alone can't have made one further up (I12). An upload that
    was begun before the job of its id is another program's.
    """
    key = upload.key
    if key.count("/") > DEEPEST:
        return Fate.UNDER_WAY  # too deep to be asked for: nobody knows
    if job_id not in known.records:
        known.records[job_id] = sweep.pipeline.ledger.jobs_with_id(job_id)
    records = known.records[job_id]
    here = {
        prefix: one
        for one in records
        if one.destination.bucket == bucket
        for prefix in _prefixes(sweep, one, known)
    }
    is_managed = False
    for prefix in directories_above(key):
        record = here.get(prefix)
        if record is not None and upload.initiated < record.opened_at:
            return Fate.FOREIGN
        if record is not None:
            return Fate.ENDED if record.state in ENDED else Fate.UNDER_WAY
        # Where no job has ever been nothing can be this one's: few places are asked for each id.
        if _is_managed(sweep, bucket, prefix, known):
            is_managed = True
            found = _trace(sweep, JobDirectory(Destination(bucket, prefix), job_id), known)
            if found is not None:
                return found
    if records:
        return Fate.UNDER_WAY  # its job is elsewhere, and nobody knows what this is
    return Fate.UNKNOWN if is_managed else Fate.FOREIGN


def _prefixes(sweep: Sweep, record: JobRecord, known: _Known) -> tuple[str, ...]:
    """Where the job's files lie: its destination, and its locations."""
    if record.ref not in known.places:
        main = JobDirectory(record.destination, record.job_id)
        places = places_of(sweep.pipeline, main, record)
        known.places[record.ref] = tuple(place.destination.prefix for place in places)
    return known.places[record.ref]


def _trace(sweep: Sweep, place: JobDirectory, known: _Known) -> Fate | None:
    """What the job directory in one place says; a request that nobody heard is heard here."""
    asked = (place.destination.prefix, place.job_id)
    if asked not in known.traces:
        known.traces[asked] = _read_trace(sweep, place)
    return known.traces[asked]


def _read_trace(sweep: Sweep, place: JobDirectory) -> Fate | None:
    found = read_directory(sweep, place)
    if found is not None and found.job and not (found.request or found.result):
        try:
            main = main_of(sweep.pipeline, place)
        except InvalidInputError:
            return Fate.UNDER_WAY  # nobody can tell of what
        if main is not None:
            return _trace_of_main(sweep, main, place)
    return _trace_of(sweep, place, found)


def _trace_of_main(sweep: Sweep, main: JobDirectory, location: JobDirectory) -> Fate | None:
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
    return _trace_of(sweep, main, found)


def _trace_of(sweep: Sweep, place: JobDirectory, found: Found | None) -> Fate | None:
    if found is not None and found.result is not None:
        return Fate.ENDED
    if found is not None:
        if found.own:
            judge_unknown(sweep, place, found)
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
