"""The words of the two truth tables: what can be known of a file, and of a job."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from s3commit.core.model.states import JobState


class Standing(StrEnum):
    """What is known of the job that a file belongs to: the ledger's state, or why there is none."""

    UNKNOWN = "unknown"  # no record, and nothing of the job at the destination
    UNRECORDED = "unrecorded"  # no record and no result, but something of the job is there
    IN_DOUBT = "in doubt"  # its documents contradict each other, or can't be read
    OPEN = JobState.OPEN.value
    SEALED = JobState.SEALED.value
    COMMITTING = JobState.COMMITTING.value
    PUBLISHING = JobState.PUBLISHING.value
    COMMITTED = JobState.COMMITTED.value
    ABORTING = JobState.ABORTING.value
    ABORTED = JobState.ABORTED.value
    ROLLING_BACK = JobState.ROLLING_BACK.value
    ROLLED_BACK = JobState.ROLLED_BACK.value


class Named(StrEnum):
    """Where a file is named."""

    LISTED = "listed"  # in `_commits/<job>.jsonl`
    PENDING = "pending"  # in a manifest of a task attempt
    NEITHER = "neither"  # its own name carries the job's id, that is all


class Upload(StrEnum):
    """Whether an upload of the job is open at the file's key."""

    OPEN = "open"
    NONE = "none"


class Thing(StrEnum):
    """What lies at the file's key."""

    ABSENT = "absent"
    REPLACED = "replaced"  # absent, and a job that came later has removed files here
    OURS = "ours"  # by metadata, or by length and etag
    FOREIGN = "another's"  # its metadata names another job
    ALIKE = "alike"  # the length and parts of a listed file; its etag tells nothing, as behind KMS
    OTHER = "other"  # other bytes, or nobody can tell whose


class Record(StrEnum):
    """What the ledger has under the job's id."""

    ABSENT = "absent"
    OPEN = JobState.OPEN.value
    SEALED = JobState.SEALED.value
    COMMITTING = JobState.COMMITTING.value
    PUBLISHING = JobState.PUBLISHING.value
    COMMITTED = JobState.COMMITTED.value
    ABORTING = JobState.ABORTING.value
    ABORTED = JobState.ABORTED.value
    ROLLING_BACK = JobState.ROLLING_BACK.value
    ROLLED_BACK = JobState.ROLLED_BACK.value


class Commits(StrEnum):
    """The job's manifest in ``_commits/``."""

    ABSENT = "absent"
    THERE = "there"
    UNREADABLE = "unreadable"


class Result(StrEnum):
    """The job's ``result.json``."""

    ABSENT = "absent"
    COMMITTED = "COMMITTED"
    ABORTED = "ABORTED"
    ROLLED_BACK = "ROLLED_BACK"
    UNREADABLE = "unreadable"


class Request(StrEnum):
    """The job's ``request.json``."""

    ABSENT = "absent"
    THERE = "there"


class Level(StrEnum):
    """How much a row matters: a finding makes the exit code 1, a note is only told."""

    FINE = "fine"
    NOTE = "note"
    FINDING = "finding"


class Action(StrEnum):
    """A repair; each is conditional, and repeating it does no harm."""

    ABORT_UPLOAD = "abort-upload"
    DELETE_OBJECT = "delete-object"
    START_EXECUTION = "start-execution"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a row of a table says: its name, what is true, and what is to be done about it."""

    name: str
    level: Level
    means: str
    do: str
    actions: tuple[Action, ...] = ()
