"""What is installed here. On a cluster run it where driver and executors run."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from s3commit.cli.doctor.finding import Finding, ok, to_do
from s3commit.cli.doctor.surroundings import Surroundings
from s3commit.spark.setup import LEAST as LEAST_FOR_SPARK
from s3commit.version import __version__

PYTHON = (3, 11)
LEAST = {"boto3": (1, 44), **LEAST_FOR_SPARK}
NEEDED = {"boto3"}


def versions(_around: Surroundings) -> Finding:
    """Python, this package, and those of others that it writes with; Spark's only if it is here."""
    told, wrong = [f"s3commit {__version__}", f"Python {platform.python_version()}"], []
    if sys.version_info[:2] < PYTHON:
        wrong.append(f"Python {platform.python_version()} is too old: use {_text(PYTHON)} or later")
    for package, least in LEAST.items():
        found = _version(package)
        if found is None:
            if package in NEEDED:
                wrong.append(f"{package} is not installed: pip install '{package}>={_text(least)}'")
            continue
        told.append(f"{package} {found}")
        if _numbers(found) < least:
            wrong.append(f"{package} {found} is too old: s3commit needs {package}>={_text(least)}")
    return to_do("; ".join(wrong)) if wrong else ok(", ".join(told))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _numbers(found: str) -> tuple[int, ...]:
    return tuple(int(number) for number in found.split(".")[:2])


def _text(least: tuple[int, ...]) -> str:
    return ".".join(map(str, least))
