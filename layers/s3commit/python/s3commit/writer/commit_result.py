"""The result of a write of a table, and the packages that it needs. Loads no client of AWS."""

from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Final

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.outcome import Outcome

# The least release, and where to get one.
_LEAST: Final = {
    "pyspark": (
        # The cluster's: another one of pip's would cover it, and might not fit its Java part.
        (3, 5),
        "run this with the cluster's Python; where there is no cluster, pip install pyspark",
    ),
    "pyarrow": ((18, 0), "pip install '.[spark]' in a checkout of s3commit, or pyarrow alone"),
}


class WrongPythonError(S3CommitError):
    """A package is missing or too old. Nothing was written."""

    code = "WRONG_PYTHON"


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The result of a committed job, made by `write_table` and its like.

    All values are plain: ``dataclasses.asdict`` of it is JSON.
    """

    path: str
    """The directory, ``s3://bucket/prefix/``."""
    job_id: str = ""
    """The job's id; of a dry run none, nor of an earlier job that can't be found any more."""
    files: int = 0
    """How many files were committed."""
    rows: int = 0
    """The rows in them; 0 if they were not counted."""
    bytes: int = 0
    """The size of all of them."""
    replaced: int = 0
    """How many older files were removed; of a dry run, how many at most an overwrite would."""
    manifest: str = ""
    """The URI of the list of the committed files."""
    already_committed: bool = False
    """An earlier job with the key, whose ``job_id`` this is, has the data; none was added."""
    dry_run: bool = False
    """Nothing was written, and there is no job."""

    @property
    def outcome(self) -> str | None:
        """How ``job_id`` ended, as its event says it: every other end is an error, not a result."""
        return None if self.dry_run else Outcome.COMMITTED

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        cells = ((name, str(value)) for name, value in asdict(self).items())
        rows = (f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in cells)
        return f"<table>{''.join(rows)}</table>"


def result_at(directory: JobDirectory, **counts: Any) -> CommitResult:
    """The result of the job there."""
    listed = f"s3://{directory.bucket}/{directory.commits}"
    return CommitResult(directory.destination.uri, directory.job_id, manifest=listed, **counts)


def check_versions(*packages: str) -> None:
    """Raise `WrongPythonError` if a package is missing or too old."""
    for package in packages:
        least, where = _LEAST[package]
        try:
            found = str(__import__(package).__version__)
        except ImportError as error:
            raise WrongPythonError(f"{package} is not installed here: {where}") from error
        if tuple(map(int, found.split(".")[:2])) < least:
            wanted = ".".join(map(str, least))
            raise WrongPythonError(f"{package} {found} is too old: this needs {package}>={wanted}")
