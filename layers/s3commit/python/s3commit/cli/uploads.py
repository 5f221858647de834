"""``s3commit uploads``."""

import re
from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Any, Final

import click

from s3commit.cli import s3a
from s3commit.cli.advice import OPEN_PATIENCE, PATIENCE
from s3commit.cli.options import Parsed, with_session
from s3commit.cli.render import SHOWN, epoch_of, fields, usd
from s3commit.cli.session import Session
from s3commit.core.documents.pages import in_groups
from s3commit.core.formats import layout
from s3commit.core.jobs.listings import PAGE
from s3commit.core.model.amounts import many, size
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    S3CommitError,
    UploadGoneError,
)
from s3commit.core.ports.bundle import S3Ports
from s3commit.core.ports.objects import OpenUpload
from s3commit.core.ports.parallel import in_order

# US dollars for a GiB and month, of the first 50 TB. Parts for an archive are in S3 Standard until
# they are completed: https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html
PRICED: Final = "us-east-1's prices of 2026-11, https://aws.amazon.com/s3/pricing/"
PRICES: Final = {
    **dict.fromkeys(("STANDARD", "INTELLIGENT_TIERING", "GLACIER", "DEEP_ARCHIVE"), 0.023),
    **{"STANDARD_IA": 0.0125, "ONEZONE_IA": 0.01, "GLACIER_IR": 0.004, "REDUCED_REDUNDANCY": 0.024},
}
OURS, MAGIC, STAGING, UNKNOWN = "s3commit", "S3A magic", "S3A staging", "unknown"
ENDED = "ended"
# org.apache.hadoop.fs.s3a.commit.staging.Paths.addUUID: behind the name that Spark gives.
_STAGING = re.compile(rf"-c\d+-({layout.JOB_ID.pattern})(?:\.[^/]*)?\Z")
_READ = 8  # documents of an S3A job: one has the id of its write
_KEPT = 256  # directories, and jobs; uploads come in the order of their keys
_SIZES = "bytes as SIZE, usdPerMonth as USD, ageSeconds"
_COLUMNS = f"{_SIZES}, storageClass as CLASS, writer, state, jobId as JOB, key as FILE"

Row = dict[str, Any]
_ZERO: Row = {"uploads": 0, "bytes": 0, "usdPerMonth": 0.0, "ageSeconds": 0}


def parse_place(text: str) -> Destination:
    """A destination, or a whole bucket, whose prefix is empty. Raises `InvalidInputError`."""
    whole = re.fullmatch("(s3[an]?://[^/]+)/?", text)
    found = layout.parse_destination(f"{whole[1]}/x" if whole else text)
    return Destination(found.bucket, "") if whole else found


@click.command()
@click.argument("place", metavar="S3-URI", type=Parsed("place", parse_place))
@with_session
def uploads(session: Session, *, place: Destination) -> None:
    """List the open uploads of all writers, and their costs.

    Changes nothing, and needs no deployment, but the rights s3:ListBucketMultipartUploads and
    s3:ListMultipartUploadParts; with s3:ListBucket and s3:GetObject it also shows which jobs are
    dead. Makes a request for each upload and 1,000 parts. --output json is a line for each upload
    and directory, as they are found, and for the total.
    """
    look, out = _Look(session, place.bucket), session.out
    total = dict(_ZERO, kind="total", place=place.uri, sizesUnknown=0, unclaimed=0)
    shown: dict[str, list[Row]] = {"upload": [], "directory": []}
    for row in _rows(session, place, look, total):
        if out.json:
            out.line(row)
        else:
            insort(shown[row["kind"]], row, key=lambda one: -(one["bytes"] or 0))
            del shown[row["kind"]][SHOWN:]
    if out.json:
        out.line(total)
    elif not total["uploads"]:
        out.note(f"no open upload below {place.uri}")
    else:
        out.table(shown, "directory", f"uploads, {_SIZES}, place as DIRECTORY")
        click.echo()
        out.table(shown, "upload", _COLUMNS)
        out.note(*_notes(total, shown["upload"], look))


def _rows(session: Session, place: Destination, look: "_Look", total: Row) -> Iterator[Row]:
    """Of each upload, and of each directory once all of it is summed up; ``total`` is, too."""
    inside: list[Row] = []  # sums under way, of directories inside each other: keys come in order
    for page in in_groups(_open_uploads(session, place), PAGE):
        found = [row for row in in_order(session.parallel, look, page) if row]
        total["sizesUnknown"] += sum(row["bytes"] is None for row in found)
        if look.refused and total["sizesUnknown"] == total["uploads"] + len(found):
            raise _lacking(look.refused, "s3:ListMultipartUploadParts")
        for row in found:
            yield row
            directory = f"s3://{place.bucket}/{row['key']}".rpartition("/")[0] + "/"
            while inside and not directory.startswith(inside[-1]["place"]):
                yield inside.pop()
            if not inside or inside[-1]["place"] != directory:
                inside.append(dict(_ZERO, kind="directory", place=directory))
            total["unclaimed"] += row["writer"] in {STAGING, UNKNOWN}
            for one in (total, inside[-1]):
                one["uploads"] += 1
                one["bytes"] += row["bytes"] or 0
                one["usdPerMonth"] += row["usdPerMonth"] or 0
                one["ageSeconds"] = max(one["ageSeconds"], row["ageSeconds"])
    yield from reversed(inside)


def _open_uploads(session: Session, place: Destination) -> Iterator[OpenUpload]:
    try:
        yield from session.store.list_uploads(place.bucket, place.prefix)
    except AccessError as error:
        raise _lacking(error, "s3:ListBucketMultipartUploads") from error


def _lacking(error: S3CommitError, right: str) -> S3CommitError:
    line = f"{error.message}; this needs the right {right}"
    return AccessError(line) if error.code == AccessError.code else error  # such as NO_CREDENTIALS


@dataclass(frozen=True, slots=True)
class _Job:
    """A job of the pipeline, by the names in its directory, the last of which was put ``at``.

    If nothing comes for ``patience`` seconds it may be dead: then the ``command`` ends it.
    """

    state: str
    at: str
    patience: float
    command: str


class _Look:
    """The row of an upload, also in threads; None for one that has ended since it was listed."""

    def __init__(self, session: Session, bucket: str) -> None:
        self.store, self.bucket, self.now = session.store, bucket, session.epoch()
        self.refused: S3CommitError | None = None  # the first one without a size
        self.unread = False  # a directory, which may have jobs
        self._job = lru_cache(_KEPT)(self._read_job)
        self._s3a = lru_cache(_KEPT)(self._read_s3a)

    def __call__(self, upload: OpenUpload) -> Row | None:
        length: int | None = None
        try:
            length = self.store.upload_bytes(self.bucket, upload.key, upload.upload_id)
        except UploadGoneError:
            return None
        except (AccessError, InvalidInputError) as error:  # perhaps of this upload's KMS key alone
            self.refused = self.refused or error
        price = PRICES.get(upload.storage_class)
        return {
            "kind": "upload",
            **fields(upload, "key", "upload_id", "storage_class"),
            "initiatedAt": upload.initiated,
            "bytes": length,
            **dict.fromkeys(("jobId", "state", "command")),
            **self._whose(upload),
            "ageSeconds": int(self.now - epoch_of(upload.initiated)),
            "usdPerMonth": None if price is None or length is None else length * price / 2**30,
        }

    def _whose(self, upload: OpenUpload) -> Row:
        job_id, above = layout.owner_of(upload.key), list(layout.directories_above(upload.key))
        for place in above if job_id else ():
            if job := self._job(place, str(job_id)):
                silence = self.now - max(map(epoch_of, (job.at, upload.initiated)))
                state = "silent" if silence > job.patience else job.state
                command = job.command if state in {"silent", ENDED} else None
                return {"writer": OURS, "jobId": job_id, "state": state, "command": command}
        for one in (one for place in ("", *above) for one in self._s3a(place)):
            if one.owns(upload):
                return {"writer": MAGIC, "jobId": one.job_id, "command": one.command}
        if staging := _STAGING.search(upload.key):
            return {"writer": STAGING, "jobId": staging[1]}
        return {"writer": OURS if job_id and self.unread else UNKNOWN, "jobId": job_id}

    def _read_job(self, place: str, job_id: str) -> _Job | None:
        """The job, if there is one."""
        directory = layout.JobDirectory(Destination(self.bucket, place), job_id)
        there, at = set[str](), ""
        try:
            for one in self.store.list(self.bucket, directory.prefix):
                at = max(at, one.modified)
                there |= {one.key} & {directory.job, directory.request, directory.result}
        except AccessError:
            self.unread = True
        if directory.job not in there:
            return None
        if directory.result in there:
            return _Job(ENDED, at, inf, "s3commit sweep")
        if directory.request in there:
            return _Job("requested", at, PATIENCE, f"s3commit show {directory.typed}")
        return _Job("open", at, OPEN_PATIENCE, f"s3commit abort {directory.typed}")

    def _read_s3a(self, place: str) -> list[s3a.S3AJob]:
        try:
            ports = S3Ports(self.store)  # without threads: a thread must not wait for others
            return list(s3a.read_jobs(ports, Destination(self.bucket, place), most=_READ))
        except AccessError:
            self.unread = True
            return []


def _notes(total: Row, shown: list[Row], look: _Look) -> Iterator[str]:
    count, costs = total["uploads"], f"USD {usd(total['usdPerMonth'])} a month at {PRICED}"
    yield f"{many(count, 'open upload')} below {total['place']}, {size(total['bytes'])}: {costs}"
    if count > SHOWN:
        yield f"the {SHOWN} largest are shown; --output json has {count - SHOWN} more"
    if look.refused:
        yield f"{many(total['sizesUnknown'], 'size')} could not be read: {look.refused.message}"
    if look.unread:
        yield "without s3:ListBucket and s3:GetObject jobs are recognized by file names alone"
    for job_id, command in dict.fromkeys((row["jobId"], row["command"]) for row in shown):
        if command:
            yield f"job {job_id}, if it is dead: {command}"
    if unclaimed := total["unclaimed"]:
        yield (
            f"{many(unclaimed, 'upload')} of others, or of jobs without a trace: only a lifecycle"
            " rule with AbortIncompleteMultipartUpload ends them, after more days than a job runs"
        )
