"""Signs of life of a job that nobody has asked for yet: a live one is never touched (I5).

What was put into its directory a listing tells, and when its uploads were begun another one. Only
a job of which both are old is asked for the parts of its uploads: a request each.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import UploadGoneError
from s3commit.core.ownership.named_uploads import uploads_of_job
from s3commit.core.ports.objects import OpenUpload
from s3commit.core.sweep.sweep import Sweep

ASKED_ANEW: Final = 4  # the part of `abandoned` after which those asked first are asked again


@dataclass(frozen=True, slots=True)
class Suspect:
    """A job that may be dead, and since when a sign is fresh."""

    directory: JobDirectory
    opened_at: str
    since: str


@dataclass(frozen=True, slots=True)
class Life:
    """``last`` is the last sign that was found: any later one is welcome, none is older.

    ``left`` says where the next call goes on asking; empty: there is nothing left to ask, or a sign
    was found that is fresh enough.
    """

    last: str
    left: str = ""


def last_sign(sweep: Sweep, job: Suspect, *, known: str, left: str = "") -> Life:
    """The last sign of life of the job; looked for until one is fresh.

    ``known`` is the last one that the caller has seen. A job may have a million uploads: then those
    begun last are asked at once, and all of them when the job's turn comes (`Sweep.alone`), which
    may take several calls: ``left`` is that of the call before.
    """
    if left:
        asked, last, key = left.split(" ", 2)
        # Else an upload that was asked first may have got a part since.
        if sweep.ago(sweep.limits.abandoned // ASKED_ANEW) < asked:
            return _ask_all(sweep, job, max(last, known), key, asked)
    last = known
    if last >= job.since:
        return Life(last)
    most = sweep.asked_at_once
    begun = _until_fresh(sweep, job)
    latest = heapq.nlargest(most + 1, begun, key=lambda upload: upload.initiated)
    last = max([last, *(upload.initiated for upload in latest)])
    if last < job.since:  # what is still written to was mostly begun last
        last = max(last, _last_part(sweep, job, latest[:most]))
    if last >= job.since or len(latest) <= most:
        return Life(last)
    return Life(last, f"{sweep.now} {last} ")


def _ask_all(sweep: Sweep, job: Suspect, last: str, after: str, asked: str) -> Life:
    """Ask each upload, in the order of the listing, as many as the call has time for.

    A call stops between two keys: of a key's uploads S3 promises to list those alone, behind one of
    them, whose ids are greater, and that is not the order in which it lists them
    (https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html).
    """
    uploads: Iterable[OpenUpload] = _own_uploads(sweep, job, after)
    for some in _by_keys(uploads, sweep.asked_at_once):
        last = max(last, _last_part(sweep, job, some))
        if last >= job.since:
            return Life(last)
        sweep.took(len(some))
        if sweep.spent:
            return Life(last, f"{asked} {last} {some[-1].key}")
    return Life(last)


def _by_keys(uploads: Iterable[OpenUpload], least: int) -> Iterator[list[OpenUpload]]:
    """At least so many at once, and all of a key together."""
    some: list[OpenUpload] = []
    for upload in uploads:
        if len(some) >= least and upload.key != some[-1].key:
            yield some
            some = []
        some.append(upload)
    if some:
        yield some


def _until_fresh(sweep: Sweep, job: Suspect) -> Iterator[OpenUpload]:
    for upload in _own_uploads(sweep, job):
        yield upload
        if upload.initiated >= job.since:
            return


def _last_part(sweep: Sweep, job: Suspect, uploads: Iterable[OpenUpload]) -> str:
    """When the last part of the uploads came; up to the first that is fresh. Empty: none did."""
    bucket = job.directory.bucket

    def ask(upload: OpenUpload) -> str:
        try:
            return sweep.ports.store.upload_parts(bucket, upload.key, upload.upload_id).modified
        except UploadGoneError:
            return sweep.now  # somebody has just ended it

    last = ""
    for moment in sweep.ports.parallel(ask, uploads):
        last = max(last, moment)
        if last >= job.since:
            break
    return last


def _own_uploads(sweep: Sweep, job: Suspect, after: str = "") -> Iterator[OpenUpload]:
    store, directory = sweep.ports.store, job.directory
    uploads = store.list_uploads(directory.bucket, directory.destination.prefix, after=after)
    return uploads_of_job(sweep.ports, directory, job.opened_at, uploads)
