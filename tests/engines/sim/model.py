"""What the simulation knows of each job by itself, apart from the code under test."""

from __future__ import annotations

from dataclasses import dataclass, field

from s3commit.core.documents.job_json import JobSpec
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.locks import key_digest
from s3commit.core.model.states import JobState

DECIDED = frozenset(
    {JobState.COMMITTING, JobState.PUBLISHING, JobState.COMMITTED, JobState.ROLLING_BACK}
)
UNDER_WAY = DECIDED - {JobState.COMMITTED}
SURE = frozenset({JobState.PUBLISHING, JobState.COMMITTED})  # never undone
UNDOING = frozenset(
    {JobState.ABORTING, JobState.ABORTED, JobState.ROLLING_BACK, JobState.ROLLED_BACK}
)
KEEPERS = frozenset({"sweep", "fsck"})  # processes that act for jobs of which they know nothing
ENDED = frozenset({JobState.COMMITTED, JobState.ABORTED, JobState.ROLLED_BACK})


@dataclass(frozen=True, slots=True)
class File:
    """One upload of one attempt: where it would appear, and its bytes."""

    job: str
    task: str
    attempt: str
    key: str
    upload_id: str
    body: bytes
    since: int
    origin: str = ""  # the key that an undo's copy had first

    @property
    def first_key(self) -> str:
        """The key that its data had first."""
        return self.origin or self.key


@dataclass(frozen=True, slots=True)
class Copy:
    """What an undo copies for one of its files."""

    key: str
    version_id: str
    origin: str
    body: bytes


@dataclass(eq=False)
class Job:
    """A job of the run. ``planned`` and ``replaced`` are read from S3 at its decision."""

    name: str
    directory: JobDirectory
    spec: JobSpec
    hostile: bool = False
    victim: Job | None = None  # the job that it undoes
    copies: dict[str, Copy] = field(default_factory=dict)  # by the key of its own file
    leaves_removed: bool = False  # it was decided without what the other one had replaced
    intruder: bool = False  # its directory lies where the adversary may put
    life: int = 0  # of an intruder: how often it was opened again after its end
    given_up: bool = False  # by a sweep
    retired_by: str = ""  # the sweep that has deleted its result
    outer: str = ""  # the job with the same id in a directory above, to which the id belongs
    reset: int = 0  # how often the ledger was lost under it
    lost_step: int = -1  # when that was
    lost_as: JobState | None = None  # what it was then, and what was decided
    before_loss: tuple[dict[str, File], dict[str, str], str] = field(
        default_factory=lambda: ({}, {}, "")
    )
    expired: bool = False  # its record has reached its time to live
    record_state: JobState | None = None
    requested: float = 0.0  # seconds of the run
    looked_at: int | None = None  # steps of the run: at whose turn it is
    faltered: bool = False  # an execution of it has ended before it had
    sealed_at: int | None = None
    decided_at: int | None = None
    ended_at: int | None = None
    decided: bool = False
    appends: bool = True  # by its record, if it is decided
    plan: str = ""  # its digest
    planned: dict[str, File] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    sabotaged: set[str] = field(default_factory=set)
    undoing_since: int | None = None
    freed: bool = False  # it is rolled back, and has given back its locks
    result: str = ""
    failure: str = ""
    message: str = ""

    @property
    def under_way(self) -> bool:
        """Whether it was decided, and others that replace the same may not be beside it."""
        return self.record_state in UNDER_WAY and not self.freed

    @property
    def nested(self) -> bool:
        """Whether a directory above has a job of the same id: this one is refused (I12)."""
        return bool(self.outer)

    @property
    def prefix(self) -> str:
        return self.directory.destination.prefix

    @property
    def key_notes(self) -> tuple[str, ...]:
        """The keys of the notes that say who has the job's idempotency key."""
        if self.spec.idempotency_key is None:
            return ()
        digest = key_digest(self.spec.idempotency_key)
        return self.directory.once(digest), self.directory.key_note(digest)

    def relative(self, key: str) -> str:
        """The key below the destination."""
        return key[len(self.prefix) :]

    @property
    def ended(self) -> bool:
        """Whether the ledger has said so, even if it has forgotten it since."""
        return self.record_state in ENDED

    @property
    def over(self) -> bool:
        """Whether the job has ended, by the ledger or by its result."""
        return self.ended or bool(self.result)

    def region(self) -> list[tuple[str, bool]]:
        """What the policy claims: prefixes, each with whether it reaches down to every depth."""
        if self.spec.conflict is Conflict.APPEND:
            return []
        if self.spec.scope is Scope.DIRECTORY:
            return [(self.prefix, True)]
        directories = {key[: key.rindex("/") + 1] for key in self.planned}
        return [(directory, directory != self.prefix) for directory in sorted(directories)]

    def claims(self, key: str) -> bool:
        """Whether a file lies in the region."""
        return any(
            key.startswith(prefix) and (deep or "/" not in key[len(prefix) :])
            for prefix, deep in self.region()
        )

    def conflicts(self, other: Job) -> bool:
        """Whether they may not be under way together: both replace something, or have one key."""
        once = self.spec.idempotency_key
        if once and once == other.spec.idempotency_key and self.prefix == other.prefix:
            return True
        return any(
            mine == theirs
            or (deep and theirs.startswith(mine))
            or (also_deep and mine.startswith(theirs))
            for mine, deep in self.region()
            for theirs, also_deep in other.region()
        )
