"""What the simulation knows of each job by itself, apart from the code under test."""

from __future__ import annotations

from dataclasses import dataclass, field

from s3commit.core.layout import JobDirectory
from s3commit.core.model import Conflict, JobSpec, Names, Scope
from s3commit.core.states import JobState

DECIDED = frozenset(
    {JobState.COMMITTING, JobState.PUBLISHING, JobState.COMMITTED, JobState.ROLLING_BACK}
)
UNDER_WAY = DECIDED - {JobState.COMMITTED}
UNDOING = frozenset(
    {JobState.ABORTING, JobState.ABORTED, JobState.ROLLING_BACK, JobState.ROLLED_BACK}
)
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


@dataclass(eq=False)
class Job:
    """A job of the run. ``planned`` and ``replaced`` are read from S3 at its decision."""

    name: str
    place: JobDirectory
    spec: JobSpec
    counts_all: bool = False
    hostile: bool = False
    record_state: JobState | None = None
    decided: bool = False
    planned: dict[str, File] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    covered: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    sabotaged: set[str] = field(default_factory=set)
    undoing_since: int | None = None
    result: str = ""
    failure: str = ""
    message: str = ""
    expected_refusal: bool = False

    @property
    def prefix(self) -> str:
        """The destination's prefix."""
        return self.place.destination.prefix

    @property
    def ended(self) -> bool:
        """Whether the ledger has said so, even if it has forgotten it since."""
        return self.record_state in ENDED

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
        """Whether the two may not be under way together: one writes what the other one claims."""
        once = self.spec.idempotency_key
        if once and once == other.spec.idempotency_key and self.prefix == other.prefix:
            return True
        if any(self.claims(key) for key in other.planned):
            return True
        if any(other.claims(key) for key in self.planned):
            return True
        return any(
            (deep and theirs.startswith(mine)) or (also_deep and mine.startswith(theirs))
            for mine, deep in self.region()
            for theirs, also_deep in other.region()
        )

    @property
    def exact(self) -> bool:
        """Whether the job's file names are the program's own."""
        return self.spec.names is Names.EXACT
