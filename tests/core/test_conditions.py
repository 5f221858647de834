"""A job's own conditions as documents have them, and how counts are judged."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3commit.core.formats.strict_json import dump, parse
from s3commit.core.model.conditions import (
    Conditions,
    decode_conditions,
    encode_conditions,
)
from s3commit.core.model.errors import InvalidInputError

COUNTS = st.none() | st.integers(0, 10**12)


@given(low=COUNTS, high=COUNTS, files=COUNTS)
def test_conditions_survive_their_document(
    low: int | None, high: int | None, files: int | None
) -> None:
    if low is not None and high is not None and low > high:
        low, high = high, low
    conditions = Conditions(low, high, files)
    body = dump(encode_conditions(conditions))
    assert decode_conditions(parse(body, what="conditions", max_bytes=10**6)) == conditions
    assert bool(conditions) == (body != b"{}")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"minRow": 1}, "condition 'minRow' is not known; known are minRows, maxRows, minFiles"),
        ({"minRows": -1}, "minRows -1 is no count"),
        ({"maxRows": 1.0}, "maxRows 1.0 is no count"),
        ({"minFiles": True}, "minFiles True is no count"),
        ({"minRows": "1"}, "minRows '1' is no count"),
        ({"minRows": 2, "maxRows": 1}, "minRows 2 is more than maxRows 1"),
    ],
)
def test_what_is_no_condition_is_refused_by_name(value: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInputError, match="conditions: ") as refused:
        decode_conditions(value)
    assert refused.value.code == "BAD_CONDITION"
    assert told in refused.value.message


def test_the_first_condition_that_fails_is_said_files_before_rows() -> None:
    conditions = Conditions(2, 3, 2)
    assert "minFiles" in str(conditions.failed(1, 1))
    assert "minRows" in str(conditions.failed(2, 1))
    assert "maxRows" in str(conditions.failed(2, 4))
    assert conditions.failed(2, 3) is None
