"""Rows in Arrow as the parquet files of a job."""
