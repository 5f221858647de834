"""Reads a table with Spark through S3A and prints what is in it: run by end_to_end.py."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.golden.s3a.driver import session


def main() -> None:
    """Arguments: endpoint, jars, table. Prints one JSON line."""
    endpoint, jars, table = sys.argv[1:]
    spark = session(endpoint, Path(jars), [])
    frame = spark.read.parquet(table)
    row = frame.selectExpr(
        "count(*) AS rows", "count(DISTINCT id) AS ids", "sum(id) AS sum"
    ).first()
    assert row is not None
    print(json.dumps(row.asDict()))
    spark.stop()


if __name__ == "__main__":
    main()
