"""Every type of Arrow with a value or none, alone and inside every type that holds others."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

_WHOLE = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_UNITS = ("s", "ms", "us", "ns")
PLAIN: list[Any] = [
    *map(pa.type_for_alias, ["bool", "float16", "float32", "float64", "null", *_WHOLE]),
    *(pa.timestamp(unit, zone) for unit in _UNITS for zone in (None, "UTC")),
    *map(pa.duration, _UNITS),
    *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.date32(), pa.date64(), pa.month_day_nano_interval()),
    *(pa.string(), pa.large_string(), pa.string_view()),
    *(pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(4)),
    *(pa.decimal32(5, 1), pa.decimal64(15, 1), pa.decimal128(38, 2), pa.decimal256(38, 2)),
    *(pa.decimal256(39, 2), pa.decimal128(9, -2)),
    *(pa.uuid(), pa.json_(), pa.bool8(), pa.fixed_shape_tensor(pa.int32(), [2])),
    *(pa.opaque(pa.int64(), "x", "y"), pa.opaque(pa.timestamp("ns"), "x", "y")),
    pa.struct([]),
]


def nested(kind: Any) -> Iterator[Any]:
    """The type, and the types that hold it."""
    yield kind
    yield from (pa.list_(kind), pa.large_list(kind), pa.list_(kind, 1))
    yield from (pa.list_view(kind), pa.large_list_view(kind))
    yield from (pa.map_(pa.string(), kind), pa.struct([("a", kind)]))
    if kind != pa.null():  # Arrow has no such keys
        yield from (pa.map_(kind, pa.string()), pa.list_(pa.struct([("a", pa.map_(kind, kind))])))
    yield from (pa.dictionary(pa.int32(), kind), pa.run_end_encoded(pa.int32(), kind))
