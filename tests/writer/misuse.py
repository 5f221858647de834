"""Slips that mypy finds, each in the line with its words behind it; run by nobody."""

from datetime import date

import pandas as pd
from pyspark.sql import DataFrame, SparkSession

import s3commit
from s3commit.spark import batch_writer, read, write


def slips(df: DataFrame, spark: SparkSession, frame: pd.DataFrame, path: str) -> None:
    write(df, path, idempotencyKey="k")  # did you mean "idempotency_key"
    write(df, path, mode="upsert")  # "mode" to "write" has incompatible type
    write(path, df)  # Argument 1 to "write" has incompatible type
    write(df, path, "append")  # Too many positional arguments
    write(df, path, min_rows="1")  # "min_rows" to "write" has incompatible type
    write(df, path, compression="rar")  # "compression" to "write" has incompatible type
    write(df, path, partition_overwrite_mode="both")  # "partition_overwrite_mode" to "write"
    write(df, path, encryption="aws:kms")  # "encryption" to "write" has incompatible type
    write(df, path, boto3_session="work")  # "boto3_session" to "write" has incompatible type
    print(write(df, path).row)  # "CommitResult" has no attribute "row"
    write(df, path, partition_by=df.id)  # "partition_by" to "write" has incompatible type
    write(df, path, idempotency_key=date.today())  # "idempotency_key" to "write"
    write(df, path, uploads={"threads": 8})  # "uploads" to "write" has incompatible type
    df.writeStream.foreachBatch(batch_writer)  # to "foreachBatch" of "DataStreamWriter" has
    batch_writer(path, idempotency_key="k")  # Unexpected keyword argument "idempotency_key"
    read(path, spark)  # Argument 1 to "read" has incompatible type
    read(spark, path, job="1")  # Unexpected keyword argument "job"
    s3commit.opne_job(path)  # Module has no attribute "opne_job"
    s3commit.open_job(path, conflict="replace")  # Unexpected keyword argument "conflict"
    s3commit.open_job(path, store=None)  # Unexpected keyword argument "store"
    s3commit.open_job(path).comit([])  # "Job" has no attribute "comit"
    s3commit.open_job(path).task(0)  # Argument 1 to "task" of "Job" has incompatible type
    s3commit.open_job(path).commit()  # Missing positional argument "attempts"
    s3commit.open_job(path).task("0").open("a.csv").write("a")  # Argument 1 to "write" of
    s3commit.write_table(path, path)  # Argument 1 to "write_table" has incompatible type
    s3commit.write_table(frame, path, dryrun=True)  # did you mean "dry_run"
    try:
        s3commit.undo(path, "1", timeout=9)  # Unexpected keyword argument "timeout"
    except s3commit.TransientErorr:  # Module has no attribute "TransientErorr"
        s3commit.write_table(frame, path, mode="append", partition_by=["dt"], dry_run=True)
