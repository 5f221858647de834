"""What a function reads in its environment, once at cold start."""

from __future__ import annotations

import json
import os

from s3commit.aws import env
from s3commit.aws.env import Catalog
from s3commit.core.model.errors import S3CommitError
from s3commit.core.ports.bundle import Workers


class SettingsError(S3CommitError):
    """The function's environment is not that of its code, as in the middle of an upgrade."""

    code = "BAD_SETTINGS"


def ledger() -> tuple[str, int]:
    """The ledger's table, and how many days it keeps a job. Raises as `data_bucket`."""
    return _value(env.TABLE), int(_value(env.LEDGER_TTL_DAYS))


def replace_below() -> tuple[str, ...]:
    """The prefixes below which jobs may replace, a JSON list; only the deciding function reads it.

    Raises `SettingsError` where there is none: that must never mean "everywhere".
    """
    try:
        return tuple(str(prefix) for prefix in json.loads(os.environ[env.REPLACE_BELOW]))
    except (KeyError, ValueError, TypeError):
        raise SettingsError(
            f"environment lacks {env.REPLACE_BELOW}, a JSON list of prefixes"
        ) from None


def fresh_tables() -> tuple[str, ...]:
    """The prefixes whose commits have a metric of their own, a JSON list; perhaps none."""
    return tuple(json.loads(os.environ.get(env.FRESH_TABLES, "[]")))


def catalogs() -> tuple[Catalog, ...]:
    """The tables of the Glue Data Catalog that are told of commits. Raises as `data_bucket`."""
    return tuple(map(Catalog.of, json.loads(_value(env.CATALOGS))))


def workers() -> Workers:
    """How many workers jobs may have: two numbers, of all jobs and of one. Raises as `ledger`."""
    return Workers(*json.loads(_value(env.WORKERS)))


def own_encryption() -> tuple[str, str | None] | None:
    """Algorithm and key of the header of the pipeline's own puts; None: they have none.

    A policy that demands the header is judged before the bucket's default encryption applies.
    """
    algorithm = os.environ.get(env.ENCRYPTION)
    return (algorithm, os.environ.get(env.ENCRYPTION_KEY)) if algorithm else None


def data_bucket() -> str:
    """The bucket whose events are taken.

    Raises `SettingsError` (``BAD_SETTINGS``) that names what the environment lacks.
    """
    return _value(env.BUCKET)


def state_machine() -> str:
    """The ARN of the state machine, for dispatcher and sweep. Raises as `data_bucket`."""
    return _value(env.STATE_MACHINE)


def region() -> str | None:
    """The region of AWS_REGION, which boto3 does not read; None: what boto3 finds by itself.

    The other SDKs and the AWS CLI read it: https://docs.aws.amazon.com/sdkref/latest/guide/feature-region.html
    """
    return os.environ.get("AWS_REGION") or None


def metadata_disabled() -> bool:
    """Whether the user has forbidden to ask a machine's metadata service for credentials."""
    return os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true"


def _value(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise SettingsError(f"environment lacks {name}")
    return value
