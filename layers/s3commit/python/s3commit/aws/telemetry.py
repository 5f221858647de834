"""Logs and metrics: one vocabulary for all functions."""

from __future__ import annotations

from aws_lambda_powertools import Logger, single_metric
from aws_lambda_powertools.metrics import MetricUnit

from s3commit.aws import env

# Powertools reads the service, the level and the namespace from the environment.
logger = Logger()


def count(metric: str, value: int = 1) -> None:
    """Add to a counter; ids never become dimensions, they are fields of the log."""
    if value:
        with single_metric(
            name=metric, unit=MetricUnit.Count, value=value, namespace=env.METRICS_NAMESPACE
        ) as one:
            one.add_dimension(name="service", value=env.SERVICE)
