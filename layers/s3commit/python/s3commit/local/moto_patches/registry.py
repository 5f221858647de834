"""How the patches are listed, applied and taken back."""

# ruff: noqa: PLC0415 - moto takes half a second: who only reads this module does not pay
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from s3commit.local import LocalRuntimeError
from s3commit.local.worker import CallOutcome

MOTO_VERSION = "5.2.5"  # the patches touch private names; a newer moto is looked at first


class Host(Protocol):
    """What the patches need of the runtime that they serve."""

    @property
    def endpoint(self) -> str:
        """The URL of the moto server."""
        ...

    def invoke(self, function: Any, payload: bytes) -> CallOutcome:
        """Call moto's ``LambdaFunction``."""
        ...

    def add_mapping(self, mapping: Any) -> None:
        """Poll for moto's ``EventSourceMapping`` from now on."""
        ...


class Patcher:
    """Replaces attributes of moto and puts them back; ``host`` is the runtime that is served."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._undo: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Set ``owner.name`` to ``make(what it was)``.

        Raises `LocalRuntimeError` if moto has no such name.
        """
        if not hasattr(owner, name):
            raise LocalRuntimeError(
                f"moto has no {owner.__name__}.{name}: the patch is out of date"
            )
        raw = vars(owner)[name]
        original = raw.__func__ if isinstance(raw, staticmethod | classmethod) else raw
        made = make(original)
        self._undo.append(partial(setattr, owner, name, raw))
        setattr(owner, name, staticmethod(made) if isinstance(raw, staticmethod) else made)

    def add(self, owner: Any, name: str, value: Any) -> None:
        """Set ``owner.name``, which moto does not have itself."""
        if name in vars(owner):
            raise LocalRuntimeError(f"moto has {owner.__name__}.{name} now: look at the patch")
        self._undo.append(partial(delattr, owner, name))
        setattr(owner, name, value)

    def undo(self) -> None:
        """Put back what was there, last first, and take away what was not."""
        while self._undo:
            self._undo.pop()()


Patch = Callable[[Patcher], None]
PATCHES: dict[str, Patch] = {}


def patch(function: Patch) -> Patch:
    """Register a patch under its function's name."""
    PATCHES[function.__name__] = function
    return function


def apply_patches(host: Host, *, without: frozenset[str] = frozenset()) -> Patcher:
    """Apply every patch but those ``without`` and return what takes them back.

    Raises `LocalRuntimeError` for another version of moto than the one that was measured.
    """
    import moto

    if moto.__version__ != MOTO_VERSION:
        raise LocalRuntimeError(
            f"the embedded runtime needs moto {MOTO_VERSION}, found {moto.__version__}: "
            "pip install -r requirements.txt"
        )
    patcher = Patcher(host)
    try:
        for name, function in PATCHES.items():
            if name not in without:
                function(patcher)
    except BaseException:
        patcher.undo()
        raise
    return patcher
