"""A function's settings, read from its environment, once at cold start."""

import json
import os

from s3commit.aws import env
from s3commit.aws.clients import Encryption
from s3commit.aws.env import Catalog
from s3commit.core.model.errors import S3CommitError
from s3commit.core.ports.bundle import Workers


class SettingsError(S3CommitError):
    """The function's environment is not that of its code, as in the middle of an upgrade."""

    code = "BAD_SETTINGS"


def value(name: str) -> str:
    """One that has to be there; else raises `SettingsError` (``BAD_SETTINGS``), which names it."""
    found = os.environ.get(name)
    if not found:
        raise SettingsError(f"environment lacks {name}")
    return found


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


def prefixes() -> tuple[str, ...]:
    """The prefixes that the functions have rights to, a JSON list; without one the whole bucket."""
    return tuple(json.loads(os.environ.get(env.PREFIXES, '[""]')))


def fresh_tables() -> tuple[str, ...]:
    """The prefixes whose commits have a metric of their own, a JSON list; perhaps none."""
    return tuple(json.loads(os.environ.get(env.FRESH_TABLES, "[]")))


def catalogs() -> tuple[Catalog, ...]:
    """The tables of the Glue Data Catalog that are notified of commits. Raises as `value`."""
    return tuple(map(Catalog.of, json.loads(value(env.CATALOGS))))


def workers() -> Workers:
    """How many workers jobs may have: two numbers, of all jobs and of one. Raises as `value`."""
    return Workers(*json.loads(value(env.WORKERS)))


def own_encryption() -> Encryption | None:
    """That of the puts of the pipeline and of the command; None: they have no such header.

    A policy that demands the header is judged before the bucket's default encryption applies.
    """
    algorithm = os.environ.get(env.ENCRYPTION)
    return Encryption(algorithm, os.environ.get(env.ENCRYPTION_KEY)) if algorithm else None
