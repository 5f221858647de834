"""CompleteUnit: a worker makes the files of one unit visible, after the decision."""

from functools import partial

from s3commit.core.documents.pages import Unit
from s3commit.core.documents.pendingset import PendingFile
from s3commit.core.documents.plan import files_of_unit
from s3commit.core.documents.ticket import Ticket, UnitResult
from s3commit.core.formats.strict_json import one_line
from s3commit.core.jobs.guards import own_record, unless_overtaken
from s3commit.core.model.errors import (
    CONFLICT,
    AccessError,
    JobRefusedError,
    NotFoundError,
    PreconditionError,
    S3CommitError,
    TransientError,
)
from s3commit.core.model.limits import LONGEST_WORDS, SHORTEST_WORDS, WORDS_OF_A_JOB
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports, S3Ports
from s3commit.core.ports.ledger import LostRaceError
from s3commit.core.ports.objects import listed_at
from s3commit.core.ports.parallel import together


def complete_unit(ports: Ports, ticket: Ticket, unit: Unit) -> UnitResult:
    """Complete every upload of one unit of the plan; count the files visible, and lost.

    Repeating it is harmless. The job's state and generation are asked first, so that nothing is
    completed before the decision (I1) or during a roll back; a worker that stalls right after
    asking is fenced by the uploads themselves, which a roll back aborts before it deletes. A worker
    of an execution that was overtaken completes nothing and reports it: BeginPublish then finds out
    by the ledger. Raises `TransientError` (try the unit again) and `NeedsOperatorError` (the page
    is missing: nothing was completed, and nothing is undone for it).
    """
    try:
        with unless_overtaken(ports, ticket, JobState.COMMITTING):
            record, files = together(
                ports.parallel,
                partial(own_record, ports, ticket, JobState.COMMITTING),
                partial(files_of_unit, ports.store, ticket.directory, unit),
            )
    except LostRaceError:
        return UnitResult(unit.number, files=0, lost=0)
    lost = list(filter(None, ports.parallel(partial(complete_file, ports), files)))
    # Answers that another look does not change come first.
    lost.sort(key=lambda error: isinstance(error, AccessError))
    why = _words(lost[0], record.planned.units) if lost else ""
    return UnitResult(unit.number, files=len(files) - len(lost), lost=len(lost), why=why)


def _words(error: S3CommitError, units: int) -> str:
    """The error's code and S3's message, if the results of so many units have room for it."""
    most = min(max(WORDS_OF_A_JOB // units, SHORTEST_WORDS), LONGEST_WORDS)
    return one_line(f"{error.code}: {error.message}", most)


def complete_file(ports: S3Ports, file: PendingFile) -> S3CommitError | None:
    """Complete one upload; S3's message, if the file is lost.

    Where the upload does not exist, the key shows if it was completed before: no object had it at
    the decision, and a writer there could overwrite the file at any time. A listing shows it, which
    needs no right to the object's own key. An upload that S3 refuses to complete is lost too, if
    that stays so (`begin_publish`): the unit's page, the pipeline's own, was read a moment ago.
    """
    try:
        ports.store.complete_upload(
            file.bucket, file.key, file.upload_id, file.etags, length=file.length
        )
    except (NotFoundError, PreconditionError, JobRefusedError, AccessError) as error:
        facts = listed_at(ports.store, file.bucket, file.key)
        if facts is None and error.code == CONFLICT:
            # S3 answers 409 to one of two that complete together, before the other one's is there.
            raise TransientError(f"another request completes the upload of {file.key}") from error
        if facts is None or facts.length != file.length:
            return error
    return None
