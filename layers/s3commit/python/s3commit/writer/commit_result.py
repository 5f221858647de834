"""The result of a write of a table, and the packages that it needs. Loads no client of AWS."""

from dataclasses import asdict, dataclass
from html import escape
from typing import Final

from s3commit.core.model.errors import S3CommitError

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
    """The result of a committed write. All values are plain: ``dataclasses.asdict`` of it is JSON.

    ``replaced`` counts the older files that were removed. ``manifest`` is the list of the
    committed files. ``already_committed``: an earlier job with the same idempotency key has
    committed the data, this one added nothing, and ``job_id`` and ``manifest`` are the earlier's.
    ``dry_run``: nothing was written, there is no job, and ``replaced`` counts the files that an
    overwrite would remove at most.
    """

    destination: str
    job_id: str = ""
    files: int = 0
    rows: int = 0
    bytes: int = 0
    replaced: int = 0
    manifest: str = ""
    already_committed: bool = False
    dry_run: bool = False

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        cells = ((name, str(value)) for name, value in asdict(self).items())
        rows = (f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in cells)
        return f"<table>{''.join(rows)}</table>"


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
