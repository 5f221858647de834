"""The sweep over the bucket's open uploads: invisible, paid for, of jobs that ended (I4, I5)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from s3commit.core.formats.file_names import owner_of
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import UploadGoneError
from s3commit.core.ownership.open_uploads import Ownership, UploadOwners
from s3commit.core.ports.objects import OpenUpload
from s3commit.core.sweep.directories import judge_unknown, read_directory
from s3commit.core.sweep.report import priced
from s3commit.core.sweep.sweep import Sweep


@dataclass(slots=True)
class _Freed:
    """What was aborted since it was last said, by job and whose it was: uploads, bytes."""

    counts: dict[tuple[str, Ownership], tuple[int, int]] = field(default_factory=dict)

    def add(self, job_id: str, owner: Ownership, count: int) -> None:
        uploads, before = self.counts.get((job_id, owner), (0, 0))
        self.counts[job_id, owner] = (uploads + 1, before + count)

    def note(self, sweep: Sweep) -> None:
        """Say of each job how much of it was aborted since it was last said."""
        for (job_id, owner), (uploads, count) in self.counts.items():
            many = "1 open upload" if uploads == 1 else f"{uploads} open uploads"
            sweep.report.note(f"job {job_id}, {owner}: {many} aborted, {priced(count)}")
        self.counts.clear()


def abort_orphaned_uploads(sweep: Sweep, cursor: str) -> str:
    """Abort the bucket's uploads whose job has ended, or is unknown and long gone.

    The cursor is a list in JSON: the directory below which the uploads lie (empty: anywhere), and
    key and id of the one with which the call before ended. What S3 leaves out of the key's others
    then (see `ObjectReader.list_uploads`) the next sweep finds. A directory whose share is up is
    put off.
    """
    owners, freed = _owners(sweep), _Freed()
    below, after = _decode(cursor)
    waits = ""
    try:
        while True:
            waits, last = _abort_below(sweep, below, after, owners, freed)
            if not waits:
                return _handed_over(sweep, below, last)
            # What comes after all keys of a directory: 0 is the character that follows the slash.
            after = (waits[:-1] + "0", "")
    finally:
        freed.note(sweep)


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


def _abort_below(
    sweep: Sweep, below: str, after: _Mark, owners: UploadOwners, freed: _Freed
) -> tuple[str, _Mark | None]:
    """Go through the uploads, up to a directory that has to wait for its turn: that one.

    If there was none: empty, and the last upload if the call has done enough.
    """
    last = None
    key, upload_id = after
    for upload in sweep.ports.store.list_uploads(
        sweep.bucket, below, after=key, after_upload=upload_id
    ):
        if last and sweep.spent:
            return "", last
        waits = "" if sweep.alone else _waiting(sweep, upload.key, last)
        if waits:
            return waits, None
        last = (upload.key, upload.upload_id)
        sweep.took()
        with sweep.each(f"upload of {upload.key}", upload.key):
            _judge(sweep, upload, owners, freed)
    return "", None


def _waiting(sweep: Sweep, key: str, last: _Mark | None) -> str:
    """The directory above the key that is put off, or is from now on; empty if none is."""
    costly = sweep.cost.overspent(key)
    if costly:
        mark = last if last and last[0].startswith(costly) else (costly, "")
        sweep.postpone(costly, json.dumps([costly, *mark]))
        return costly
    return next((one for one in sweep.put_off if key.startswith(one)), "")


def _owners(sweep: Sweep) -> UploadOwners:
    """Whose uploads are; a request that nobody has heard is heard here, if the ledger is lost."""

    def unended(directory: JobDirectory) -> None:
        found = read_directory(sweep, directory)
        if found is not None and found.own:
            judge_unknown(sweep, directory, found)

    return UploadOwners(sweep.ports, sweep.bucket, sweep.ports.ledger.jobs_with_id, unended)


def _judge(sweep: Sweep, upload: OpenUpload, owners: UploadOwners, freed: _Freed) -> None:
    job_id = owner_of(upload.key)
    if job_id is None:
        sweep.report.foreign += 1
        return
    if upload.initiated >= sweep.ago(sweep.limits.stuck):
        return
    owner = owners.of(upload)
    old = upload.initiated < sweep.ago(sweep.limits.orphaned)
    is_left = owner is Ownership.UNKNOWN and old and _is_silent(sweep, sweep.bucket, upload)
    if owner is Ownership.ENDED or is_left:
        count = _abort(sweep, sweep.bucket, upload)
        if count is not None:
            freed.add(job_id, owner, count)
    elif owner is Ownership.FOREIGN:
        sweep.report.foreign += 1


def _is_silent(sweep: Sweep, bucket: str, upload: OpenUpload) -> bool:
    parts = sweep.ports.store.upload_parts(bucket, upload.key, upload.upload_id)
    return parts.modified < sweep.ago(sweep.limits.orphaned)


def _abort(sweep: Sweep, bucket: str, upload: OpenUpload) -> int | None:
    """Abort the upload; its bytes, or None if somebody else was faster."""
    try:
        count = sweep.ports.store.upload_parts(bucket, upload.key, upload.upload_id).bytes
    except UploadGoneError:
        return None
    if not sweep.dry_run:
        sweep.ports.store.abort_upload(bucket, upload.key, upload.upload_id)
    sweep.report.uploads += 1
    sweep.report.upload_bytes += count
    return count
