"""The findings of a check of a table (`s3commit.core.fsck`)."""

from dataclasses import dataclass, field
from enum import StrEnum

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.destination import Destination

# A prefix, and a moment: files of jobs published before it were deleted on purpose (by S3's times).
Expiry = tuple[str, str]


class FindingKind(StrEnum):
    """A fault of a file, or of the list of a job's files."""

    GONE = "gone"
    CHANGED = "changed"
    BACK = "back"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Finding:
    """A committed file, or a commit manifest, that is not there as it was committed.

    Or one that is there (`FindingKind.BACK`), though a later job has removed it.
    """

    what: FindingKind
    key: str
    job_id: str
    fix: str


@dataclass(frozen=True, slots=True)
class OpenJob:
    """A job directory without a result. ``state`` is the ledger's; None: not in the ledger."""

    directory: JobDirectory
    requested: bool
    state: str | None


@dataclass
class Report:
    """A destination as it was found.

    ``jobs``, ``files`` and ``bytes`` are what commit manifests name and is there as committed.
    ``replaced`` files were removed by later jobs, ``expired`` ones by the ``rules``. ``foreign``
    files are in no commit manifest; ``examples`` are some of them.
    """

    destination: Destination
    rules: tuple[Expiry, ...] = ()
    is_table: bool = True  # a job has left something
    jobs: int = 0
    files: int = 0
    bytes: int = 0
    replaced: int = 0
    expired: int = 0
    foreign: int = 0
    examples: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    open_jobs: list[OpenJob] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        """True if all that was committed is there, was replaced and stays so, or has expired."""
        return not self.findings
