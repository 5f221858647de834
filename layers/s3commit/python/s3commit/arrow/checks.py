"""Checks of columns: bounds as documents have them, and the figures of Parquet footers."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from functools import partial
from struct import pack, unpack
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyarrow import parquet, types

from s3commit.arrow.parquet import FLOATS
from s3commit.core.documents.job_json import decode_conditions, encode_conditions
from s3commit.core.model.checks import MAX_FIGURE, Check, CheckedColumn, Figures, Kind
from s3commit.core.model.errors import InvalidInputError
from s3commit.writer.options import Options


class _Sort(NamedTuple):
    """Columns whose values compare, with bounds of these types; ``text`` raises for others."""

    is_of: Callable[[pa.DataType], bool]
    kind: Kind
    bounds: tuple[type, ...]
    text: Callable[[Any], str]


def _number(value: int | Decimal) -> str:
    return str(value).lower()


def _float(value: float) -> str:
    if value != float(value):
        raise ValueError("NaN, or a whole number that is too long")
    return repr(float(value))


def _single(value: float) -> str:
    """As a column of such floats has the value: the 0.1 of a bound is the 0.1 there."""
    return _float(unpack("f", pack("f", value))[0])


def _is_local(kind: pa.DataType) -> bool:
    return types.is_timestamp(kind) and kind.tz is None


def _moment(value: datetime, zone: tzinfo | None) -> str:
    if (value.utcoffset() is None) is not (zone is None):
        raise ValueError("one of two has a time zone")
    return (value.astimezone(zone) if zone else value).isoformat(timespec="microseconds")


_SORTS: Final = (
    _Sort(types.is_boolean, Kind.NUMBER, (bool,), lambda one: str(int(one))),
    _Sort(types.is_integer, Kind.NUMBER, (int, Decimal), _number),
    _Sort(types.is_decimal, Kind.NUMBER, (int, Decimal), _number),
    _Sort(types.is_float32, Kind.NUMBER, (int, float), _single),
    _Sort(types.is_float64, Kind.NUMBER, (int, float), _float),
    _Sort(types.is_string, Kind.TEXT, (str,), str),
    _Sort(types.is_large_string, Kind.TEXT, (str,), str),
    _Sort(types.is_date, Kind.TEXT, (date,), date.isoformat),
    _Sort(_is_local, Kind.TEXT, (datetime,), partial(_moment, zone=None)),
    _Sort(types.is_timestamp, Kind.TEXT, (datetime,), partial(_moment, zone=UTC)),
)


def with_checks(options: Options, schema: pa.Schema) -> Options:
    """The same, with the checks as ``_job.json`` has them; ``schema`` is that of the files.

    Raises `InvalidInputError`: ``BAD_SCHEMA`` for a column that can't be checked, ``BAD_OPTION``
    for a bound that does not compare with it, ``BAD_CONDITION`` for bounds that nothing can meet.
    """
    checks = tuple(_check(*named, schema) for named in (options.checks or {}).items())
    conditions = replace(options.conditions, checks=checks)
    return replace(options, conditions=decode_conditions(encode_conditions(conditions)))


def _check(name: str, given: Mapping[str, Any], schema: pa.Schema) -> Check:
    if name not in schema.names:
        raise _refusal(name, f"is not in the files, which have {', '.join(schema.names)[:400]}")
    kind = schema.field(name).type
    sort = _sort_of(kind)
    ends = {end: _plain(given[end]) for end in ("min", "max") if given.get(end) is not None}
    if kind.num_fields or types.is_null(kind) or (ends and not sort):
        raise _refusal(name, f"has the type {kind}, whose values Parquet's footers do not compare")
    texts = {end: _written(sort, value) for end, value in ends.items()}
    for end in (end for end, text in texts.items() if text is None):
        wanted = " or ".join(one.__name__ for one in sort.bounds) if sort else ""
        why = f"has the type {kind}: {end}={repr(ends[end])[:80]}: give a comparable {wanted}"
        raise _refusal(name, why, "BAD_OPTION")
    return Check(name, sort.kind if sort and ends else None, **texts, nulls=given.get("nulls"))


def _refusal(name: str, why: str, code: str = "BAD_SCHEMA") -> InvalidInputError:
    return InvalidInputError(f"checks: column {name[:80]!r} {why}", code=code)


def _sort_of(kind: pa.DataType) -> _Sort | None:
    return next((sort for sort in _SORTS if sort.is_of(kind)), None)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "dtype") else value  # numpy's


def _written(sort: _Sort | None, value: Any) -> str | None:
    """The text of a value, or of a bound; None if it does not compare with such a column."""
    # A bool is an int to Python, and a datetime a date.
    kinds = sort.bounds if sort else ()
    alike = all(isinstance(value, one) is (one in kinds) for one in (bool, datetime))
    if not (sort and alike and isinstance(value, kinds)):
        return None
    try:
        sort.kind.read(text := sort.text(value))
    except (ArithmeticError, ValueError):
        return None
    return text


class Footers:
    """The facts in the footers of a task's files about checked columns; one thread adds them."""

    def __init__(self, checks: Sequence[Check], schema: pa.Schema) -> None:
        self._columns = [(schema.field(one.column).type, CheckedColumn(one)) for one in checks]

    def add_floats(self, rows: pa.RecordBatch) -> None:
        """Count in the floats of rows: a footer does not state those of a column with NaN."""
        for kind, found in self._columns:
            if kind in FLOATS:
                from pyarrow import compute  # noqa: PLC0415

                name, sort = found.check.column, _sort_of(kind)
                ends = compute.min_max(rows[name].cast(kind, safe=False)).as_py()
                # All may be NaN or null: as if there were no rows.
                least, greatest = (_written(sort, ends[end]) for end in ("min", "max"))
                figures = Figures(name, least or "inf", greatest or "-inf", rows[name].null_count)
                found.add(figures, rows.num_rows)

    def add(self, footer: parquet.FileMetaData) -> None:
        """Count in the rest of a file."""
        leaves = map(footer.schema.column, range(footer.num_columns if self._columns else 0))
        # The path "a.b" may be that of a column, and that of a struct's field, whose name is "b".
        columns = [leaf.name if leaf.name == leaf.path else None for leaf in leaves]
        for kind, found in self._columns:
            if kind in FLOATS:
                continue
            name = found.check.column
            for group in map(footer.row_group, range(footer.num_row_groups)):
                statistics = group.column(columns.index(name)).statistics
                found.add(_figures(name, kind, statistics), group.num_rows)

    @property
    def figures(self) -> tuple[Figures, ...]:
        """For the manifest."""
        return tuple(found.figures for _, found in self._columns)


def _figures(column: str, kind: pa.DataType, found: parquet.Statistics | None) -> Figures:
    """Of a row group. Arrow states neither end if one has over 4,096 bytes."""
    if found is None:
        return Figures(column)
    sort, ends = _sort_of(kind), list[Any]([None, None])
    # Python lacks some years, and a text need not be UTF-8.
    with suppress(ArithmeticError, ValueError):
        if found.has_min_max and types.is_decimal(kind) and isinstance(found.min_raw, int):
            # pyarrow 18 does not give decimals that are stored so, which have 18 digits at most.
            ends = [Decimal(f"{end}e{-kind.scale}") for end in (found.min_raw, found.max_raw)]
        elif found.has_min_max:
            ends = [found.min, found.max]
    texts = (_written(sort, end) for end in ends)
    least, greatest = (None if text is None else text[:MAX_FIGURE] for text in texts)
    return Figures(column, least, greatest, found.null_count if found.has_null_count else None)
