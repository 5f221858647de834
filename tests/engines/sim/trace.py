"""A run in words, one line a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Line:
    """One line of a trace."""

    number: int
    seconds: float
    process: str
    what: str
    outcome: str


_TELLING = frozenset(
    {"if_absent", "if_match", "source", "target", "generation", "execution", "locks",
     "plan", "replaced", "failure", "before", "after", "epoch", "below"}
)  # fmt: skip


def brief(value: object) -> str:
    """A value, short."""
    if isinstance(value, bytes):
        return _short(value.decode(errors="replace"))
    if isinstance(value, list | tuple):
        if value and hasattr(value[0], "key"):
            return "[" + " ".join(getattr(one, "key", "") for one in value) + "]"
        return _short(" ".join(brief(one) for one in value))
    state = getattr(value, "state", None)
    if state is not None:
        return f"{state} g{getattr(value, 'generation', '?')}"
    name = type(value).__name__
    if name == "StoredObject":
        return brief(getattr(value, "body", b""))
    if name == "ObjectFacts":
        return f"object {getattr(value, 'etag', '')[:9]}"
    if name == "Turn":
        return f"{getattr(value, 'stage', '')} e{getattr(value, 'epoch', '?')}"
    if name == "Claimed":
        return f"{getattr(value, 'claim', '')} of {getattr(value, 'ref', '')}"
    if name == "Claim":
        return f"{getattr(value, 'mode', '')} {getattr(value, 'node', '')}"
    if name in {"PlanFacts", "ReplacedFacts"}:
        return str(getattr(value, "sha256", ""))[:8]
    if name == "Failure":
        return str(getattr(value, "code", ""))
    return _short(str(value))


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "…"


def told(error: BaseException) -> str:
    """An error as an outcome."""
    return f"{type(error).__name__}: {error}"


def in_words(
    verb: str, args: tuple[Any, ...], kwargs: dict[str, Any], outcome: str, kind: str
) -> tuple[str, str]:
    """A call, and what came of it."""
    words = [brief(one) for one in args if one != "lake"]
    words += [f"{name}={brief(value)}" for name, value in kwargs.items() if name in _TELLING]
    return f"{verb}({', '.join(words)})", outcome + (f"  [{kind}]" if kind else "")
