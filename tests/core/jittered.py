"""Threads that get in between any two calls."""

from __future__ import annotations

import random
import time
from typing import Any

JITTER = 0.0005  # seconds, at most, before a call


class Jittered:
    """Another thread may get in before any call; the pauses follow from the seed."""

    def __init__(self, target: object, seed: str) -> None:
        self._target = target
        self._random = random.Random(seed)

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._target, name)

        def late(*args: Any, **kwargs: Any) -> Any:
            time.sleep(self._random.random() * JITTER)
            return call(*args, **kwargs)

        return late
