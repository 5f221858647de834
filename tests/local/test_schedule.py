"""Which schedules there are; test_moto_events.py has when they fire."""

from __future__ import annotations

import pytest

from s3commit.local import UnsupportedTemplateError
from s3commit.local.triggers import rate


@pytest.mark.parametrize(
    "expression",
    ["", "rate(0 hours)", "rate(hour)", "rate(5 seconds)", "cron(0 2 * * ? *)", "at(2026-12-01)"],
)
def test_what_is_no_rate_is_refused(expression: str) -> None:
    with pytest.raises(UnsupportedTemplateError, match="is no rate"):
        rate(expression)
