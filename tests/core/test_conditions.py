"""A job's own conditions as documents have them, and how counts are judged."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3commit.core.formats.strict_json import dump, parse
from s3commit.core.model.conditions import (
    MAX_COLUMN_NAME,
    MAX_COLUMNS,
    Conditions,
    decode_conditions,
    encode_conditions,
)
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.pending import add_nulls

COUNTS = st.none() | st.integers(0, 10**12)
NAMES = st.text(min_size=1, max_size=40).filter(lambda text: text.isprintable())
SHARES = st.dictionaries(NAMES, st.floats(0, 1) | st.integers(0, 1), max_size=5)


@given(low=COUNTS, high=COUNTS, files=COUNTS, shares=SHARES)
def test_conditions_survive_their_document(
    low: int | None, high: int | None, files: int | None, shares: dict[str, float]
) -> None:
    if low is not None and high is not None and low > high:
        low, high = high, low
    conditions = Conditions(low, high, files, shares)
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
        ({"maxNullFraction": [0.1]}, "must map columns to numbers"),
        ({"maxNullFraction": {"x": 1.1}}, "maxNullFraction.x 1.1 is no share"),
        ({"maxNullFraction": {"x": -0.1}}, "maxNullFraction.x -0.1 is no share"),
        ({"maxNullFraction": {"x": "0.1"}}, "maxNullFraction.x '0.1' is no share"),
        ({"maxNullFraction": {"x": False}}, "maxNullFraction.x False is no share"),
        ({"maxNullFraction": {"x": None}}, "maxNullFraction.x None is no share"),
        (
            {"maxNullFraction": {str(number): 1 for number in range(MAX_COLUMNS + 1)}},
            "names more than 100 columns",
        ),
        ({"maxNullFraction": {"x" * (MAX_COLUMN_NAME + 1): 1}}, "1 to 255 characters"),
    ],
)
def test_what_is_no_condition_is_refused_by_name(value: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInputError, match="conditions: ") as refused:
        decode_conditions(value)
    assert refused.value.code == "BAD_CONDITION"
    assert told in refused.value.message


def test_a_share_that_is_no_number_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        Conditions(max_null_fraction={"x": float("nan")})


def test_the_first_condition_that_fails_is_told_files_before_rows_before_nulls() -> None:
    conditions = Conditions(2, 3, 2, {"b": 0.0, "a": 0.0})
    nulls = {"a": 1, "b": 1}
    assert "minFiles" in str(conditions.failed(1, 1, nulls))
    assert "minRows" in str(conditions.failed(2, 1, nulls))
    assert "maxRows" in str(conditions.failed(2, 4, nulls))
    assert "maxNullFraction.a" in str(conditions.failed(2, 3, nulls))
    assert conditions.failed(2, 3, {"a": 0, "b": 0}) is None


@given(rows=st.integers(1, 10**9), nulls=st.integers(0, 10**9), share=st.floats(0, 1))
def test_a_share_is_met_if_and_only_if_no_more_are_null(
    rows: int, nulls: int, share: float
) -> None:
    failed = Conditions(max_null_fraction={"x": share}).failed(1, rows, {"x": nulls})
    assert (failed is None) == (nulls / rows <= share)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 9)), max_size=5))
def test_nulls_add_up_by_column_and_are_unknown_if_one_did_not_count(
    counts: list[dict[str, int]],
) -> None:
    total = add_nulls(counts)
    assert set(total) == {column for one in counts for column in one}
    for column, found in total.items():
        known = [one[column] for one in counts if column in one]
        assert found == (sum(known) if len(known) == len(counts) else None)
