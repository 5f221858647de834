"""The driver that the demo kills: a PySpark program as anyone would write it.

Run as ``python -m s3commit.cli.demo.driver DESTINATION``.
"""

from __future__ import annotations

import sys

from s3commit.cli.demo.data import PARTITION_BY, flights, make_session
from s3commit.spark import register


def main(destination: str) -> None:
    """Append the flights to the destination."""
    spark = make_session("s3commit demo: a driver that will be killed")
    register(spark)
    (
        flights(spark)
        .write.format("s3commit")
        .option("partitionBy", ",".join(PARTITION_BY))
        .mode("append")
        .save(destination)
    )


if __name__ == "__main__":
    main(sys.argv[1])
