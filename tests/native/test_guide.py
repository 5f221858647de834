"""The guide's page on Spark's own writers does what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.native.conftest import uri
from tests.readers import TABLES, fill
from tests.spark.test_spark_guide import run_page
from tests.spark.tiny import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["run_page"]


@pytest.mark.usefixtures("spark")
def test_the_page_does_what_it_says(run_page: Callable[[str], None]) -> None:
    run_page("native.md")


def test_spark_reads_past_the_documents_of_jobs(spark: SparkSession, place: Place) -> None:
    """As the page on readers says."""
    with fill(f"{place.uri}/"):
        for table, rows in TABLES.items():
            reader = spark.read.format("json" if table == "events" else "parquet")
            found = reader.load(f"{uri(place)}/{table}")
            assert found.count() == rows
            assert found.columns == (["id", "dt"] if table == "sales" else ["id"])
