"""What a check says, in one line."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """``SKIPPED``: it could not be looked at, or nothing is there; that is no failure."""

    OK = "ok"
    DO = "do"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """A check's answer in one line: what is so, or what to do."""

    verdict: Verdict
    text: str


def ok(text: str) -> Finding:
    """All is well."""
    return Finding(Verdict.OK, text)


def to_do(text: str) -> Finding:
    """Something has to be done, and ``text`` says what."""
    return Finding(Verdict.DO, text)


def skipped(text: str) -> Finding:
    """It was not looked at, and ``text`` says why."""
    return Finding(Verdict.SKIPPED, text)
