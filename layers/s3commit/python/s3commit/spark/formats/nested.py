"""Maps as Arrow's functions take them."""

from __future__ import annotations

import pyarrow as pa


def map_lists(maps: pa.MapArray) -> pa.ListArray:
    """Each map as a list of its entries, structs of ``key`` and ``value``; null for null."""
    key, value = pa.field("key", maps.type.key_type), pa.field("value", maps.type.item_type)
    return maps.cast(pa.list_(pa.struct([key, value])))
