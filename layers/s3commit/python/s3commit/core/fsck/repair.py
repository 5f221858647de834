"""Applying repairs: each conditional on what was seen, each harmless when repeated.

They abort and delete as the protocol's own steps do, but one by one: those steps end all of a job,
and a plan chooses single uploads and objects.

What is applied is what a check finds now; a plan chooses among that. So a plan that has grown old,
or that somebody has changed, touches nothing that is not to be repaired any more, and whoever
begins again after a crash finds what is left to do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from s3commit.core.ending.objects import delete_as_seen
from s3commit.core.ending.uploads import abort
from s3commit.core.formats.layout import parse_directory
from s3commit.core.fsck.check import check
from s3commit.core.fsck.findings import Finding, Repair, Tally
from s3commit.core.fsck.other_rules import SCRATCH_LEFT
from s3commit.core.fsck.ports import Fsck
from s3commit.core.fsck.verdict import Action
from s3commit.core.model.errors import (
    NotFoundError,
    PreconditionError,
    S3CommitError,
    TransientError,
)
from s3commit.core.model.job import Destination

DONE: Final = "done"
PASSED_OVER: Final = "passed over"  # what was seen there has changed since
NOT_CHOSEN: Final = "not in the plan"
UNKNOWN: Final = "unknown"  # it may or may not have happened
FAILED: Final = "failed"


@dataclass(frozen=True, slots=True)
class Repaired:
    """A finding, and what became of each of its repairs; ``why`` says it for one that failed."""

    finding: Finding
    outcomes: tuple[str, ...]
    why: str = ""

    @property
    def is_left(self) -> bool:
        """Whether what was found is still so."""
        return not self.outcomes or any(one != DONE for one in self.outcomes)


def repair(
    fsck: Fsck,
    destination: Destination,
    chosen: Collection[Repair] | None = None,
    tally: Tally | None = None,
) -> Iterator[Repaired]:
    """Check, and repair what is found: all of it, or what ``chosen`` names.

    Working objects name uploads of exact names, so they go last, and only where a job's other
    repairs have all been done.
    """
    wanted = None if chosen is None else frozenset(chosen)
    troubled: set[str] = set()
    for finding in check(fsck, destination, tally):
        if finding.verdict is SCRATCH_LEFT and finding.job_id in troubled:
            yield Repaired(finding, (PASSED_OVER,) * len(finding.repairs))
            continue
        outcomes, why = [], ""
        for one in finding.repairs:
            if wanted is not None and one not in wanted:
                outcomes.append(NOT_CHOSEN)
                continue
            outcome, reason = _apply(fsck, one)
            outcomes.append(outcome)
            why = why or reason
        repaired = Repaired(finding, tuple(outcomes), why)
        if finding.repairs and repaired.is_left:
            troubled.add(finding.job_id)
        yield repaired


def _apply(fsck: Fsck, one: Repair) -> tuple[str, str]:
    try:
        return (DONE if _do(fsck, one) else PASSED_OVER), ""
    except PreconditionError:
        return PASSED_OVER, ""
    except NotFoundError:
        return DONE, ""
    except TransientError as error:
        return UNKNOWN, error.message
    except S3CommitError as error:
        return FAILED, error.message


def _do(fsck: Fsck, one: Repair) -> bool:
    store = fsck.ports.store
    if one.action is Action.ABORT_UPLOAD:
        return abort(store, one.bucket, one.key, one.upload_id)
    if one.action is Action.DELETE_OBJECT:
        delete_as_seen(store, one.bucket, one.key, one.etag, one.version_id)
        return True
    directory = parse_directory(one.bucket, one.key)
    record = fsck.ports.ledger.job(directory.ref)
    if (record.generation if record else 0) != one.generation:
        return False  # somebody has taken the job over since
    fsck.executions.start(directory, record)
    return True
