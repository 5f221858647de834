"""What a rescue found, and what came of it, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from s3commit.cli.printer import Column, Printer
from s3commit.cli.rescue.judgement import UNFINISHED, Judgement, incomplete
from s3commit.cli.text import age, amount, fields, many, size
from s3commit.core.model.job import Destination, Failure, JobResult


@dataclass
class RescueReport:
    """All of one call; ``word`` is commit, abort, or None for a look."""

    destination: Destination
    word: str | None
    dry_run: bool
    found: list[Judgement]
    strangers: list[str] = field(default_factory=list)
    results: dict[str, JobResult] = field(default_factory=dict)

    @property
    def changes(self) -> bool:
        """Whether anything is requested."""
        return self.word is not None and not self.dry_run


def tell(printer: Printer, report: RescueReport) -> None:
    """Print it."""
    documents = [_job(report, one) for one in report.found]
    if report.changes and not printer.json:
        for one in report.found:
            printer.line(_outcome(report, one))
    else:
        about = {
            "destination": report.destination.uri,
            "action": report.word,
            "dryRun": not report.changes,
            "leftOut": report.strangers,
        }
        printer.listing(about, "jobs", documents, _COLUMNS)
    if not printer.json:
        _notes(printer, report)


def _can_commit(job: dict[str, Any]) -> str:
    if job["requested"]:
        return "requested"
    code = next((problem["code"] for problem in job["problems"]), None)
    if code is None:
        return "yes"
    return "with --partial" if code == UNFINISHED else f"no: {code}"


_COLUMNS = (
    Column("JOB", "jobId"),
    Column("QUIET", "quietSeconds", age),
    Column("TASKS", "tasks", right=True),
    Column("FILES", "files", right=True),
    Column("SIZE", "bytes", size, right=True),
    Column("VISIBLE", "visibleFiles", right=True),
    Column("UNFINISHED", "unfinishedUploads", lambda uploads: str(len(uploads)), right=True),
    Column("COMMIT", text=_can_commit),
)


def _notes(printer: Printer, report: RescueReport) -> None:
    if not report.changes:
        for one in report.found:
            for problem in _reasons(one):
                printer.note(f"{one.job.directory.job_id}: {problem.message} [{problem.code}]")
    for directory in report.strangers:
        printer.note(
            f"s3://{report.destination.bucket}/{directory} is left out: its id is no UUID; see:"
            f" s3commit uploads {report.destination.uri}"
        )
    jobs = f"{many(len(report.found), 'job')} of S3A's left behind at {report.destination.uri}"
    if not report.found:
        printer.note(f"no job of S3A's is left behind at {report.destination.uri}")
    elif not report.changes:
        where = report.found[0].job.uri if len(report.found) == 1 else report.destination.uri
        hint = f"dry run: would {report.word}" if report.word else "to finish or to give up"
        printer.note(
            f"{jobs}; nothing was changed; {hint}: s3commit rescue {where}"
            f" {'--' + report.word if report.word else '--commit|--abort'}"
        )


def _reasons(one: Judgement) -> list[Failure]:
    hint = incomplete(one)
    return [*one.problems, *([hint] if hint else [])]


def _outcome(report: RescueReport, one: Judgement) -> str:
    result = report.results.get(one.job.directory.job_id)
    job = f"job {one.job.directory.job_id}"
    if result is None:
        return f"{job}: {report.word} requested; follow it: s3commit watch {one.job.directory.uri}"
    content = amount(result.files, result.bytes, result.rows)
    return f"{job}: {result.outcome}{f', {content}' if result.files else ''}"


def _job(report: RescueReport, one: Judgement) -> dict[str, Any]:
    result = report.results.get(one.job.directory.job_id)
    return {
        "jobId": one.job.directory.job_id,
        "directory": one.job.uri,
        "requested": one.job.requested or report.changes,
        "quietSeconds": one.quiet,
        "tasksWithoutPendingset": one.began,
        **fields(one, "tasks", "files", "bytes"),
        "visibleFiles": len(one.visible),
        "unfinishedUploads": [fields(upload, "key", "upload_id") for upload in one.unfinished],
        "problems": [fields(problem, "code", "message") for problem in _reasons(one)],
        "outcome": result.outcome if result else None,
    }
