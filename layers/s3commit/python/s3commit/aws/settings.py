"""The environment of a function, read once at cold start into a frozen value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from s3commit.aws import env
from s3commit.core.model.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class Settings:
    """What the handlers need to know of the deployment."""

    table: str
    ledger_ttl_days: int

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Settings:
        """Read the variables that the stack sets; names all that are missing in one error."""
        names = (env.TABLE, env.LEDGER_TTL_DAYS)
        missing = [name for name in names if not environ.get(name)]
        if missing:
            raise InvalidInputError(f"environment lacks {', '.join(missing)}", code="BAD_SETTINGS")
        return cls(environ[env.TABLE], int(environ[env.LEDGER_TTL_DAYS]))


def replace_below(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The prefixes below which jobs may replace, a JSON list; only the deciding function reads it.

    Raises `InvalidInputError` where there is none: that must never mean "everywhere".
    """
    try:
        return tuple(str(prefix) for prefix in json.loads(environ[env.REPLACE_BELOW]))
    except (KeyError, ValueError, TypeError):
        raise InvalidInputError(
            f"environment lacks {env.REPLACE_BELOW}, a JSON list of prefixes", code="BAD_SETTINGS"
        ) from None


def data_bucket(environ: Mapping[str, str]) -> str:
    """The bucket whose events are taken. Raises `InvalidInputError` where there is none."""
    try:
        return environ[env.BUCKET]
    except KeyError:
        raise InvalidInputError(f"environment lacks {env.BUCKET}", code="BAD_SETTINGS") from None


def state_machine(environ: Mapping[str, str]) -> str:
    """The ARN of the state machine, which the dispatcher alone is given."""
    try:
        return environ[env.STATE_MACHINE]
    except KeyError:
        raise InvalidInputError(
            f"environment lacks {env.STATE_MACHINE}", code="BAD_SETTINGS"
        ) from None


def region(environ: Mapping[str, str]) -> str | None:
    """The region of AWS_REGION, which boto3 does not read; None: what boto3 finds by itself.

    The other SDKs and the AWS CLI read it: https://docs.aws.amazon.com/sdkref/latest/guide/feature-region.html
    """
    return environ.get("AWS_REGION") or None


def metadata_disabled(environ: Mapping[str, str]) -> bool:
    """Whether botocore is told not to ask a machine's metadata service at all."""
    return environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true"
