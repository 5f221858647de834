"""Names in a table behind which some of its readers miss rows (docs/guide/refused_writes.md)."""


def is_skipped(relative_path: str) -> bool:
    """True if some readers find no row of a file that `is_hidden` does not hide.

    pyarrow, and pandas by it, skip partitions such as ``_day=1`` too (``ignore_prefixes`` of
    `pyarrow.dataset.dataset`), and Spark what Hadoop's copies are named until they are whole
    (``HadoopFSUtils``).
    """
    names = relative_path.split("/")
    return any(name.startswith("_") or name.endswith("._COPYING_") for name in names)


def is_pattern(path: str) -> bool:
    """True if readers take the path of a table for another's, or for a pattern.

    Spark, polars and DuckDB expand patterns, and pyarrow reads the path as part of a URI. In a
    partition's name, as in ``name=50%25/``, a ``%`` is Spark's own.
    """
    return any(
        character in name and not (character == "%" and "=" in name)
        for name in path.split("/")
        for character in "*?[{\\#%"
    )
