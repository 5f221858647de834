"""How the patches are listed, applied and taken back."""

# ruff: noqa: PLC0415 - moto takes half a second: who only reads this module does not pay
from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from s3commit.local import LocalRuntimeError
from s3commit.local.worker import CallOutcome

MOTO_VERSION = "5.2.5"  # the patches touch private names; a newer moto is looked at first


class Host(Protocol):
    """What the patches need of the runtime that they serve."""

    def client(self, service: str, **config: Any) -> Any:
        """A boto3 client of the moto server, with these settings of botocore's besides."""
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

    def wrap(self, owner: Any, name: str, call: Callable[..., Any]) -> None:
        """Let ``call`` answer for ``owner.name``; it gets the original, then the arguments."""
        raw = vars(owner).get(name)
        original = getattr(raw, "__func__", raw)  # of a static method

        def wrapped(*args: Any, **named: Any) -> Any:
            return call(original, *args, **named)

        is_static = isinstance(raw, staticmethod)
        self.replace(owner, name, staticmethod(wrapped) if is_static else wrapped)

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Set ``owner.name``. Raises `LocalRuntimeError` if moto has no such name."""
        if name not in vars(owner):
            raise LocalRuntimeError(
                f"moto has no {owner.__name__}.{name}: the patch is out of date"
            )
        self._undo.append(partial(setattr, owner, name, vars(owner)[name]))
        setattr(owner, name, value)

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


def one_at_a_time(lock: threading.RLock) -> Callable[..., Any]:
    """For `Patcher.wrap`: every call holds the lock."""

    def call(original: Any, *args: Any, **named: Any) -> Any:
        with lock:
            return original(*args, **named)

    return call


def apply_patches(host: Host) -> Patcher:
    """Apply every patch and return what takes them back.

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
        for function in PATCHES.values():
            function(patcher)
    except BaseException:
        patcher.undo()
        raise
    return patcher
