"""``_job.json``: the client's description of its job (docs/protocol.md)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

from s3commit.core.formats.codec import VERSION, Codec, Form, RefusedError, each, read_text
from s3commit.core.formats.layout import JOB_ID, JobDirectory, parse_destination
from s3commit.core.formats.strict_json import digest
from s3commit.core.model.amounts import many
from s3commit.core.model.checks import MAX_CHECKS, Check, Column
from s3commit.core.model.destination import Conflict, Destination, JobId, Scope
from s3commit.core.model.errors import InvalidInputError, JobRefusedError, NotFoundError
from s3commit.core.model.fields import SPARSE, Several, Text
from s3commit.core.model.outcome import MAX_TEXT
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.objects import ObjectReader, listed_at

if TYPE_CHECKING:  # a writer's process needs none of its kind
    from s3commit.core.ports.bundle import S3Ports

MAX_JOB_BYTES = 256 * 1024
JOB_CHANGED = "JOB_CHANGED"

MAX_KEY_CHARACTERS: Final = 1024  # of an idempotency key
MAX_COLUMNS: Final = 100  # of partitionBy
Moment = Annotated[str, Text(64)]  # RFC 3339, UTC
Columns = Annotated[tuple[Column, ...], Several(MAX_COLUMNS)]
Key = Annotated[str, Text(MAX_KEY_CHARACTERS, least=1)]
MAX_WHO: Final = 256  # characters of each text that says who writes
WhoText = Annotated[str, Text(MAX_WHO), SPARSE]
MAX_NOTE: Final = 500  # characters
MAX_LABELS: Final = 10
# The jar has the same limits (``Limits.java``). No control character, and no half of a character.
_PLAIN = r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]"
NOTE: Final = re.compile(f"{_PLAIN}{{0,{MAX_NOTE}}}")
LABEL: Final = re.compile(f"[A-Za-z0-9_.:/-]{{1,64}}={_PLAIN}{{0,256}}")
Note = Annotated[str, Text(pattern=NOTE), SPARSE]
Labels = Annotated[tuple[Annotated[str, Text(pattern=LABEL)], ...], Several(MAX_LABELS), SPARSE]
_COUNTS = {"minRows": "min_rows", "maxRows": "max_rows", "minFiles": "min_files"}


@dataclass(frozen=True, slots=True)
class Conditions:
    """Bounds, each None where the job sets none; both ends of a range are allowed."""

    min_rows: int | None = None
    max_rows: int | None = None
    min_files: int | None = None
    checks: tuple[Check, ...] = ()

    def __post_init__(self) -> None:
        for name, attribute in _COUNTS.items():
            value = getattr(self, attribute)
            if value is not None and (type(value) is not int or value < 0):
                _refuse(f"{name} {value!r} is invalid: give a whole number from 0")
        most = float("inf") if self.max_rows is None else self.max_rows
        if (self.min_rows or 0) > most:
            _refuse(f"at least {self.min_rows} rows and at most {self.max_rows} can't be")

    def __bool__(self) -> bool:
        return any(getattr(self, name) is not None for name in _COUNTS.values())

    def failed(self, files: int, rows: int | None) -> str | None:
        """The first condition that the counts do not meet, with the figure; None if all are met.

        ``rows`` None means that the writer did not count.
        """
        if self.min_files is not None and files < self.min_files:
            return f"the job has {many(files, 'file')}, fewer than {self.min_files}"
        if self.min_rows is None and self.max_rows is None:
            return None
        if rows is None:
            return "the rows were not counted: pass each file's rows to the writer"
        if self.min_rows is not None and rows < self.min_rows:
            return f"the job has {many(rows, 'row')}, fewer than {self.min_rows}"
        if self.max_rows is not None and rows > self.max_rows:
            return f"the job has {many(rows, 'row')}, more than {self.max_rows}"
        return None


def encode_conditions(conditions: Conditions) -> dict[str, Any]:
    """The conditions as ``_job.json`` has them."""
    counts = {
        name: getattr(conditions, attribute)
        for name, attribute in _COUNTS.items()
        if getattr(conditions, attribute) is not None
    }
    checks = list(map(_CHECK.write, conditions.checks))
    return {**counts, **({"checks": checks} if checks else {})}


def decode_conditions(value: Any) -> Conditions:
    """Read them. A condition that is not known is refused: ignoring it would break a promise.

    Raises `InvalidInputError` (``BAD_CONDITION``).
    """
    if not isinstance(value, Mapping):
        _refuse("must be an object")
    known = (*_COUNTS, "checks")
    unknown = sorted(set(value) - set(known))
    if unknown:
        _refuse(f"condition {unknown[0][:80]!r} is not known; known are {', '.join(known)}")
    try:
        checks = _CHECKS.read(value.get("checks", []))
    except RefusedError as refused:
        _refuse(f"checks{refused.path} {refused}")
    counts = {attribute: value.get(name) for name, attribute in _COUNTS.items()}
    return Conditions(**counts, checks=checks)


def _refuse(message: str) -> NoReturn:
    raise InvalidInputError(f"conditions: {message}", code="BAD_CONDITION")


_CHECK: Final = Codec(Check, closed=True)
_CHECKS: Final = each(Form(_CHECK.member), Several(MAX_CHECKS))


@dataclass(frozen=True, slots=True)
class Who:
    """The writer of a job, as its client names it; empty: not named. For people: no rule reads it.

    ``airflow`` is the run: dag, run and task, with the index of a mapped task and the try.
    """

    application_id: WhoText = ""
    application: WhoText = ""
    user: WhoText = ""
    host: WhoText = ""
    airflow: WhoText = ""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """``_job.json``: the client's document of job setup. Times are RFC 3339, UTC.

    ``note`` and ``labels`` (``name=value``) are for people: no rule reads them, nor do keys.
    ``undoes`` is the id of the job at the same destination that this one undoes; empty: none. With
    ``leave_removed`` it brings back nothing of what that one had replaced. ``sha256`` is the digest
    of the document that was read, ``put_at`` when S3 has got it: neither is part of it.
    """

    job_id: JobId
    destination: Destination
    conflict: Conflict = Conflict.APPEND
    scope: Scope = Scope.DIRECTORY
    partition_by: Columns = ()
    idempotency_key: Key | None = None
    created_at: Moment = ""
    client: Annotated[str, Text(MAX_TEXT)] = ""
    conditions: Conditions = field(default_factory=Conditions)
    who: Annotated[Who | None, SPARSE] = None
    note: Note = ""
    labels: Labels = ()
    undoes: Annotated[JobId, SPARSE] = ""
    leave_removed: Annotated[bool, SPARSE] = False
    sha256: str = field(default="", compare=False)
    put_at: str = field(default="", compare=False)


DESTINATION: Final = Form(
    lambda value: parse_destination(read_text(Text(), value)), lambda one: one.uri
)
JOB_JSON: Final = Codec(
    JobSpec,
    "_job.json",
    VERSION,
    max_bytes=MAX_JOB_BYTES,
    closed=True,
    forms={"destination": DESTINATION, "conditions": Form(decode_conditions, encode_conditions)},
    unwritten={"sha256": "", "put_at": ""},
)


def decode_job(body: bytes, directory: JobDirectory) -> JobSpec:
    """Read the ``_job.json`` of ``directory``. Raises `InvalidInputError`.

    A job that names another id or destination than its own place is refused (``WRONG_JOB``): the
    place is what S3 permissions are given for. So is one with a field that is not known
    (``BAD_FIELD``): to ignore it could break what the client requested.
    """
    spec = JOB_JSON.decode(body)
    is_undo = spec.conflict is Conflict.REPLACE and spec.scope is Scope.DIRECTORY
    if spec.undoes and not (is_undo and JOB_ID.fullmatch(spec.undoes)):
        raise InvalidInputError(
            "undoes names no job, or conflict and scope are not replace and directory",
            code="BAD_FIELD",
        )
    if spec.leave_removed and not spec.undoes:
        raise InvalidInputError("leaveRemoved is of a job that undoes another", code="BAD_FIELD")
    if len(set(spec.partition_by)) != len(spec.partition_by):
        raise InvalidInputError("partitionBy has a column twice", code="BAD_FIELD")
    if len({label.partition("=")[0] for label in spec.labels}) != len(spec.labels):
        raise InvalidInputError("labels has a name twice", code="BAD_FIELD")
    if (spec.job_id, spec.destination) != (directory.job_id, directory.destination):
        raise InvalidInputError(
            f"_job.json of {spec.job_id!r} at {spec.destination.uri} is in {directory.prefix}",
            code="WRONG_JOB",
        )
    return replace(spec, sha256=digest(body))


def read_spec(ports: "S3Ports", directory: JobDirectory) -> JobSpec:
    """The job's ``_job.json``.

    Raises `InvalidInputError` if it is not acceptable, with ``JOB_CHANGED`` if there is none: a
    directory without one is not a job.
    """
    try:
        stored = ports.store.get(directory.bucket, directory.job, max_bytes=MAX_JOB_BYTES)
    except NotFoundError:
        raise InvalidInputError(f"{directory.job} does not exist", code=JOB_CHANGED) from None
    return replace(decode_job(stored.body, directory), put_at=stored.facts.modified)


def opened_at(store: ObjectReader, record: JobRecord) -> str:
    """When S3 got the job's ``_job.json``; empty if there is none.

    The ledger does not know it if the job's abort was requested before ``_job.json`` was put.
    """
    if record.opened_at:
        return record.opened_at
    directory = JobDirectory.of(record)
    found = listed_at(store, directory.bucket, directory.job)
    return found.modified if found is not None else ""


def refuse_changed(spec: JobSpec, record: JobRecord) -> None:
    """Raise `JobRefusedError` (``JOB_CHANGED``) if it is not the document that the ledger knows."""
    now = (spec.conflict, spec.scope, spec.idempotency_key)
    same = now == (record.conflict, record.scope, record.idempotency_key)
    if not same or record.job_sha256 not in {None, spec.sha256}:
        raise JobRefusedError("_job.json is not what it was when the job began", code=JOB_CHANGED)
