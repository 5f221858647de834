"""Logs and metrics: one vocabulary for all functions."""

from typing import Any

from aws_lambda_powertools import Logger, single_metric
from aws_lambda_powertools.metrics import MetricUnit

from s3commit.aws import env
from s3commit.core.formats.layout import MAGIC_PREFIX
from s3commit.core.formats.strict_json import one_line

# Of the prefix that a refused document is below: enough to tell a tenant (`tenants/a/`).
PREFIX_ELEMENTS = 2
PREFIX_CHARACTERS = 64

# Powertools reads the service, the level and the namespace from the environment.
logger = Logger()


def count(metric: str, value: int = 1, *, table: str = "") -> None:
    """Add to a counter, which may be a table's that the deployer listed.

    Ids and other prefixes are fields of the log and never dimensions.
    """
    if value:
        _note(metric, MetricUnit.Count, value, table)


def timed(metric: str, seconds: float) -> None:
    """Note how long something took."""
    _note(metric, MetricUnit.Seconds, seconds)


def _note(metric: str, unit: MetricUnit, value: float, table: str = "") -> None:
    with single_metric(name=metric, unit=unit, value=value) as one:
        one.add_dimension(name="service", value=env.SERVICE)
        if table:
            one.add_dimension(name=env.DIMENSION_TABLE, value=table)


def document_refused(key: str, code: str) -> None:
    """Count a document of the protocol that is not acceptable, and log below which prefix it is.

    Each of ours has a name that starts with ``_`` in a job directory. Any other object is another
    program's, as are the manifests of Hadoop's own committers, one for each task: it is not even
    logged, which would cost more than the call. A job as a whole is named by its directory.
    """
    _, is_inside, name = key.rpartition(MAGIC_PREFIX)
    if not is_inside or name.partition("/")[2][:1] not in {"", "_"}:
        return
    elements = key.partition(MAGIC_PREFIX)[0].split("/")[:-1][:PREFIX_ELEMENTS]
    prefix = one_line("".join(f"{element}/" for element in elements), PREFIX_CHARACTERS)
    fields: dict[str, Any] = {"code": code, "key": one_line(key), env.REFUSED_PREFIX: prefix}
    logger.warning(env.REFUSED_MESSAGE, **fields)
    count(env.DOCUMENTS_REFUSED)
