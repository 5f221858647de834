"""Checks of columns: what Parquet's footers say is what Python finds in the rows."""

import io
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

import s3commit
from s3commit import InvalidInputError, JobFailedError
from s3commit.arrow.checks import Footers, with_checks
from s3commit.arrow.parquet import Sink, open_writer
from s3commit.core.documents.job_json import decode_conditions, encode_conditions
from s3commit.core.model.checks import MAX_BOUND, CheckedColumn
from s3commit.writer.options import make_options
from tests.lake import Lake

LONG = "x" * MAX_BOUND
MOMENTS = [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(9999, 12, 31)]
AWARE = [one.replace(tzinfo=UTC) for one in MOMENTS]
# Of each type values in their order: what is written is two in the middle, or one of them.
VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [False, False, True, True]),
    *(
        (kind(), [-(2**7), -1, 2**7 - 2, 2**7 - 1])
        for kind in (pa.int8, pa.int16, pa.int32, pa.int64)
    ),
    *(
        (kind, [0, 1, 2**kind.bit_width - 2, 2**kind.bit_width - 1])
        for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
    ),
    (pa.int64(), [-(2**63), 2**53, 2**53 + 1, 2**63 - 1]),
    *(
        (pa.decimal128(size, 2), [Decimal(one) for one in ("-999.99", "-0.01", "0.1", "999.9")])
        for size in (5, 15, 38)
    ),
    (pa.decimal256(70, 0), [Decimal(10) ** 69 * one for one in (-1, 1, 2, 9)]),
    (pa.float32(), [-float("inf"), -(2.0**-149), 0.1, float("inf")]),
    (pa.float64(), [-1e300, -0.0, 5e-324, 1e300]),
    *((kind(), ["", "Z", LONG, LONG + "yz"]) for kind in (pa.string, pa.large_string)),
    (pa.string(), ["é", "\uffff", "\U00010000", "\U0010ffff"]),
    *(
        (kind(), [date(1, 1, 1), date(1969, 12, 31), date(2026, 2, 28), date(9999, 12, 31)])
        for kind in (pa.date32, pa.date64)
    ),
    (pa.timestamp("us"), [*MOMENTS[:2], datetime(2026, 1, 1), MOMENTS[2]]),
    (pa.timestamp("us", "UTC"), [*AWARE[:2], datetime(2026, 1, 1, tzinfo=UTC), AWARE[2]]),
]
NULL_ONLY = [pa.binary(), pa.duration("us"), pa.float16(), pa.binary(4)]


def failed(
    kind: pa.DataType, groups: list[list[Any]], bounds: Mapping[str, Any], column: str = "n"
) -> str:
    """The refusal of a job with a file of these row groups and an empty one; "" if it passes."""
    inner = pa.struct({"n": kind, "o": kind})  # its leaves are columns of the footer, too
    schema = pa.schema({"s": inner, "n": kind, "s.n": kind})
    options = with_checks(make_options("s3://lake/t/", checks={column: bounds}), schema)
    (check,) = decode_conditions(encode_conditions(options.conditions)).checks
    footers = Footers([check], schema)
    for file in (groups, []):
        sink = Sink(io.BytesIO())  # type: ignore[arg-type]
        writer = open_writer(sink, schema, "snappy", None, ())
        for rows in file:
            data = pa.array(rows, kind)
            nothing = [pa.nulls(len(rows), one) for one in (inner, kind)]
            table = pa.table([nothing[0], data, nothing[1]], schema=schema)
            writer.write_table(table, row_group_size=max(1, len(rows)))
            footers.add_floats(table.to_batches()[0])
        writer.close()
        footers.add(writer.writer.metadata)
    found = CheckedColumn(check)
    (figures,) = footers.figures
    found.add(figures, sum(map(len, groups)))
    return found.failed() or ""


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=lambda value: str(value)[:20])
def test_a_bound_is_judged_as_python_judges_the_rows(kind: pa.DataType, values: list[Any]) -> None:
    low, *middle, high = values
    shapes: list[list[list[Any]]] = [
        [middle, [middle[0]]],
        [middle, [high]],
        [[middle[0], None], [None, None], [middle[1]]],
        [[None] * 3],
        [],
    ]
    ends = [
        one for one in dict.fromkeys(values) if not isinstance(one, str) or len(one) <= len(LONG)
    ]
    for groups, end, name in product(shapes, ends, ("min", "max")):
        rows = [pa.scalar(one, kind).as_py() for group in groups for one in group]
        known = [one for one in rows if one is not None]
        bound = pa.scalar(end, kind).as_py()  # 0.1 is another number where floats are short
        passes = all(one >= bound if name == "min" else one <= bound for one in known)
        said = failed(kind, groups, {name: end})
        assert (said == "") is passes, (groups, name, end, said)
        word = "least" if name == "min" else "greatest"
        assert passes or f"column 'n': the {word} value" in said
    for groups, most in product(shapes, (0, 2, 3)):
        nulls = sum(group.count(None) for group in groups)
        said = failed(kind, groups, {"nulls": most, "min": low})
        assert (said == "") is (nulls <= most), said


@pytest.mark.parametrize("kind", [*NULL_ONLY, *(kind for kind, _ in VALUES)], ids=str)
def test_nulls_are_counted_in_columns_of_every_type(kind: pa.DataType) -> None:
    groups = [[None, None], [None]]
    assert failed(kind, groups, {"nulls": 3}) == ""
    assert failed(kind, groups, {"nulls": 2}) == "column 'n' has 3 nulls, more than the bound 2"


@pytest.mark.parametrize(
    ("kind", "groups"),
    [(pa.string(), [["a"], ["b" * 5000]]), (pa.timestamp("us"), [[2**60]])],
    ids=str,
)
def test_a_footer_without_figures_does_not_pass(kind: pa.DataType, groups: list[Any]) -> None:
    least = "" if kind == pa.string() else datetime(1, 1, 1)
    assert "the files do not state its figures" in failed(kind, groups, {"min": least})
    assert failed(kind, groups, {"nulls": 0}) == ""


def test_a_column_whose_name_is_the_path_of_a_structs_field_is_checked() -> None:
    assert failed(pa.int64(), [[1, 2]], {"nulls": 2}, "s.n") == ""
    assert failed(pa.int64(), [[1, 2]], {"nulls": 1}, "s.n").startswith("column 's.n' has 2 nulls")


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_nan_is_no_value_however_the_rows_are_cut(kind: pa.DataType) -> None:
    nan = float("nan")
    cuts: list[list[list[Any]]] = [[[1.0, nan, None]], [[nan], [1.0, None]], [[1.0], [nan, None]]]
    for groups in (*cuts, [[nan, nan]]):
        has_one = 1.0 in groups[0] + groups[-1]
        assert failed(kind, groups, {"min": 1, "max": 1.0, "nulls": 1}) == ""
        assert bool(failed(kind, groups, {"min": 1.5})) is has_one
        assert bool(failed(kind, groups, {"max": 0.5})) is has_one


def test_figures_are_exact_whatever_precision_the_program_has_set() -> None:
    value, bound = Decimal("1234564.89"), Decimal("1234564.50")
    for precision in (3, 28):
        with localcontext(prec=precision):
            assert "greatest value 1234564.89" in failed(
                pa.decimal128(15, 2), [[value]], {"max": bound}
            )


TABLE = pa.table(
    {
        "n": [1, None, 3],
        "dt": [date(2026, 11, 20), date(2026, 11, 21), None],
        "at": pa.array([0, 1, 2], pa.timestamp("us")),
        "price": [0.5, 1.5, 2.5],
        "list": [[1]] * 3,
        "tiny": pa.array([b"a"] * 3),
        "yes": [True] * 3,
        "name": ["a"] * 3,
    }
)


@pytest.fixture
def lake(memory_lake: Lake) -> Lake:
    return memory_lake


@pytest.mark.parametrize(
    ("checks", "says"),
    [
        *(
            (one, "checks=.*: give a dict of columns, each with a dict of min, max or nulls")
            for one in (7, ["n"], {"n": 0}, {"n": {"least": 0}}, {"n": {1: 2}}, {0: {"min": 1}})
        ),
        ({"n": {}}, "'n': gives no bound"),
        ({"n": {"min": None, "nulls": None}}, "'n': gives no bound"),
        ({"N": {"nulls": 0}}, "'N' is not in the files, which have n, dt"),
        ({"hot": {"nulls": 0}}, "'hot' is not in the files"),
        ({"list": {"nulls": 0}}, "'list' has the type list"),
        ({"tiny": {"min": b"a"}}, "'tiny' has the type binary"),
        *(
            (
                {name: {"max": bound}},
                rf"'{name}' has the type {kind}.*: max=.*: give a comparable {wanted}",
            )
            for name, kind, wanted, bounds in (
                ("n", "int64", "int or Decimal", (0.5, "0", True, Decimal("nan"), 10**80)),
                ("dt", "date32", "date", (datetime(2026, 1, 1), "2026-11-20", 1)),
                ("at", "timestamp", "datetime", (date(2026, 1, 1), AWARE[1], 1)),
                ("price", "double", "int or float", (float("nan"), 2**53 + 1, 10**400, "1")),
                ("yes", "bool", "bool", (1, "true")),
                ("name", "string", "str", (b"a", 1)),
            )
            for bound in bounds
        ),
        ({"name": {"min": "x" * 257}}, "0 to 256 characters"),
        ({"name": {"min": "\ud800"}}, "UTF-8"),
        ({"n": {"min": 2, "max": 1}}, "'n': at least 2 and at most 1 can't be"),
        *(({"n": {"nulls": one}}, "nulls must be") for one in (-1, 1.0, True, 2**63)),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_what_can_not_be_checked_is_refused_before_anything(
    lake: Lake, checks: Any, says: str, dry_run: bool
) -> None:
    table = TABLE.append_column("hot", [["x"] * 3])
    with pytest.raises(InvalidInputError, match=says) as caught:
        s3commit.write_table(
            table, f"s3://{lake.bucket}/t/", partition_by="hot", checks=checks, dry_run=dry_run
        )
    assert caught.value.message.endswith("Nothing was written.")
    assert lake.visible() == lake.open_uploads() == []


def test_a_table_is_committed_if_it_meets_its_checks_and_else_leaves_nothing(lake: Lake) -> None:
    how: Any = {"mode": "append", "partition_by": ["dt"], "max_records_per_file": 1}
    uri = f"s3://{lake.bucket}/t/"
    bounds: Any = {
        "n": {"min": 1, "max": 3, "nulls": 1},
        "at": {"max": datetime(1970, 1, 1, 0, 0, 0, 2)},
    }
    first = s3commit.write_table(TABLE, uri, checks=bounds, idempotency_key="day", **how)
    assert first.rows == 3
    # A key that is committed comes before the checks.
    worse: Any = {"checks": {"n": {"nulls": 0}}}
    assert s3commit.write_table(TABLE, uri, idempotency_key="day", **worse, **how).already_committed
    before = lake.visible()
    with pytest.raises(
        JobFailedError, match="column 'n' has 1 null, more than the bound 0"
    ) as error:
        s3commit.write_table(TABLE, uri, **worse, **how)
    assert error.value.code == "CHECK_FAILED"
    assert (lake.visible(), lake.open_uploads()) == (before, [])
    nothing = s3commit.write_table(TABLE.slice(0, 0), f"s3://{lake.bucket}/none/", **worse)
    assert (nothing.rows, nothing.files) == (0, 1)
