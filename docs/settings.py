"""Prints the table of Parquet's settings in docs/spark.md, from the table in the code."""

from __future__ import annotations

import sys

from s3commit.spark.parquet_settings import RULES


def rows() -> str:
    """One row for each rule, in their order."""
    return "".join(
        f"| {', '.join(f'`{name}`' for name in rule.names)} | {rule.words} |\n" for rule in RULES
    )


if __name__ == "__main__":
    sys.stdout.write(rows())
