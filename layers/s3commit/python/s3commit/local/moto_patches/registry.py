"""How the patches are listed, applied and removed."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any
from unittest import mock

import moto

from s3commit.local import LocalRuntimeError

MOTO_VERSION = "5.2.5"  # the patches touch private names; a newer moto is looked at first


class Patcher:
    """Replaces attributes of moto and puts them back; ``host`` is the `LocalRuntime`."""

    def __init__(self, host: Any) -> None:
        self.host = host
        self._undo = ExitStack()

    def wrap(self, owner: Any, name: str, call: Callable[..., Any]) -> None:
        """Let ``call`` answer for ``owner.name``; it gets the original, then the arguments."""
        original = vars(owner)[name]

        def wrapped(*args: Any, **named: Any) -> Any:
            return call(original, *args, **named)

        self.replace(owner, name, wrapped)

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Set ``owner.name``, which moto may lack."""
        self._undo.enter_context(mock.patch.object(owner, name, value, create=True))

    def undo(self) -> None:
        """Put back what was there, last first."""
        self._undo.close()


Patch = Callable[[Patcher], None]
PATCHES: dict[str, Patch] = {}


def patch(function: Patch) -> Patch:
    """Register a patch under its function's name."""
    PATCHES[function.__name__] = function
    return function


def one_at_a_time(lock: AbstractContextManager[Any]) -> Callable[..., Any]:
    """For `Patcher.wrap`: every call holds the lock."""

    def call(original: Any, *args: Any, **named: Any) -> Any:
        with lock:
            return original(*args, **named)

    return call


def apply_patches(host: Any) -> Patcher:
    """Apply every patch and return what takes them back.

    Raises `LocalRuntimeError` for another version of moto than the one that was measured.
    """
    if moto.__version__ != MOTO_VERSION:
        raise LocalRuntimeError(
            f"the embedded runtime needs moto {MOTO_VERSION}, found {moto.__version__}: "
            "pip install -r requirements.txt"
        )
    patcher = Patcher(host)
    for function in PATCHES.values():
        function(patcher)
    return patcher
