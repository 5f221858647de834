"""The versions that `write` needs."""

from __future__ import annotations

from typing import Final

from s3commit.core.model.errors import S3CommitError

LEAST: Final = {"pyspark": (3, 5), "pyarrow": (18, 0)}
# Spark is the cluster's: another one of pip's would cover it, and may not fit its Java part.
_SOURCES: Final = {
    "pyspark": "run this with the cluster's Python; where there is no cluster, pip install pyspark",
    "pyarrow": "pip install '.[spark]' in a checkout of s3commit, or pyarrow alone",
}


class WrongPythonError(S3CommitError):
    """A package is missing or too old. Nothing was written."""

    code = "WRONG_PYTHON"


def check_versions() -> None:
    """Raise `WrongPythonError` if a package is missing or too old."""
    for package, least in LEAST.items():
        if _release_of(package) < least:
            raise _too_old(package, least)


def _release_of(package: str) -> tuple[int, ...]:
    try:
        found = str(__import__(package).__version__)
    except ImportError as error:
        raise WrongPythonError(f"{package} is not installed here: {_SOURCES[package]}") from error
    return tuple(int(number) for number in found.split(".")[:2])


def _too_old(package: str, least: tuple[int, ...]) -> WrongPythonError:
    found, wanted = __import__(package).__version__, ".".join(map(str, least))
    return WrongPythonError(f"{package} {found} is too old: this needs {package}>={wanted}")
