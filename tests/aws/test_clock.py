"""The clock of the deployed functions."""

from __future__ import annotations

import time

import pytest

from s3commit.aws.clock import SystemClock


def test_who_lost_together_does_not_come_again_together(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    for _ in range(8):
        SystemClock().sleep(2)
    assert len(set(waits)) == len(waits)
    assert all(1 <= wait <= 2 for wait in waits)
