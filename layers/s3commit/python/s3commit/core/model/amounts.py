"""Counts and sizes as people read them, in whatever part says them."""


def size(count: int | None) -> str:
    """``512 B``, ``1.5 KiB``, ``12.0 GiB``; ``-`` for what is not known."""
    if count is None:
        return "-"
    if count < 1024:
        return f"{count} B"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        value /= 1024
        if value < 1024:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} PiB"


def many(count: int, one: str, several: str | None = None) -> str:
    """``1 file``, ``3 files``."""
    return f"{count} {one if count == 1 else several or one + 's'}"


def amount(files: int, total: int, rows: int | None) -> str:
    """``3 files, 1.5 KiB, 10 rows``; rows that were not counted are left out."""
    counted = "" if rows is None else f", {many(rows, 'row')}"
    return f"{many(files, 'file')}, {size(total)}{counted}"
