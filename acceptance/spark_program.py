"""A Spark driver of its own: ``write | jar``, a destination, and how many rows."""

import os
import sys
from typing import Any
from urllib.parse import urlsplit

import boto3
from pyspark.sql import SparkSession

from s3commit.spark import write
from s3commit.spark.native import configure
from tests.native import s3a


def main() -> None:
    """Write the rows by two tasks, and read them again by S3A."""
    client, uri, rows = sys.argv[1:]
    session = boto3.session.Session()
    credentials = session.get_credentials()
    assert credentials is not None
    frozen = credentials.get_frozen_credentials()
    # S3A's own chain of providers, and Python's workers, look into the environment.
    os.environ["AWS_ACCESS_KEY_ID"] = str(frozen.access_key)
    os.environ["AWS_SECRET_ACCESS_KEY"] = str(frozen.secret_key)
    if frozen.token:
        os.environ["AWS_SESSION_TOKEN"] = str(frozen.token)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    fs = "spark.hadoop.fs.s3a."
    settings: dict[str, Any] = {
        "spark.jars": ",".join(map(str, s3a.jars())),
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
        fs + "endpoint.region": str(session.region_name),
    }
    if endpoint := os.environ.get("AWS_ENDPOINT_URL"):
        is_tls = str(urlsplit(endpoint).scheme == "https").lower()
        settings |= {fs + "endpoint": endpoint, fs + "path.style.access": "true"}
        settings |= {fs + "connection.ssl.enabled": is_tls}
    builder = SparkSession.builder.master("local[2]").config(map=settings)
    spark = (configure(builder) if client == "jar" else builder).getOrCreate()
    frame = spark.range(0, int(rows), 1, 2)
    path = uri.replace("s3://", "s3a://")
    if client == "jar":
        frame.write.parquet(path)
    else:
        write(frame, uri, mode="append")
    found = spark.read.parquet(path).count()
    spark.stop()
    sys.exit(0 if found == int(rows) else f"{found} rows are visible, not {rows}")


if __name__ == "__main__":
    main()
