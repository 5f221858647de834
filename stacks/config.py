"""The parameters of a deployment, read from the CDK context and checked before anything is built.

A parameter is a context key with our prefix, in `cdk.json` or on the command line:
``cdk deploy --all -c s3commit:name=dev``. Strings and JSON values are both taken, because the
command line knows strings only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from aws_cdk import aws_kms as kms
from aws_cdk.aws_logs import RetentionDays
from constructs import Construct

from s3commit.aws import env
from s3commit.aws.env import DEFAULT, LEAST, MOST_WORKERS, Shares, shares

PREFIX = "s3commit:"

# CloudWatch Logs knows certain periods only; these are the ones that we offer, in days.
LOG_PERIODS: dict[int, RetentionDays] = {
    1: RetentionDays.ONE_DAY,
    7: RetentionDays.ONE_WEEK,
    14: RetentionDays.TWO_WEEKS,
    30: RetentionDays.ONE_MONTH,
    90: RetentionDays.THREE_MONTHS,
    180: RetentionDays.SIX_MONTHS,
    365: RetentionDays.ONE_YEAR,
    731: RetentionDays.TWO_YEARS,
    3653: RetentionDays.TEN_YEARS,
}


MOST_LISTED_BYTES = 2_000


class ConfigError(ValueError):
    """A parameter is unknown or has a value that can not be; the message says what to do."""


def _matching(pattern: str, what: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ConfigError(f"must be {what}")
        return value

    return parse


def _number(low: int, high: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        text = str(value)
        if isinstance(value, bool) or not re.fullmatch(r"\d{1,9}", text):
            raise ConfigError(f"must be a whole number from {low} to {high}")
        if not low <= int(text) <= high:
            raise ConfigError(f"must be from {low} to {high}")
        return int(text)

    return parse


def _listed(pattern: str, what: str) -> Callable[[Any], tuple[str, ...]]:
    """A JSON list, or text with commas; nothing between them is the empty list."""

    def parse(value: Any) -> tuple[str, ...]:
        items = value if isinstance(value, list) else None
        if isinstance(value, str):
            items = [item.strip() for item in value.split(",")] if value.strip() else []
        matches = _matching(pattern, what)
        if items is None:
            raise ConfigError(f"must be {what}")
        # A function's environment has 4 KB in all:
        # https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
        if len(json.dumps(items)) > MOST_LISTED_BYTES:
            raise ConfigError(f"must be {what}, at most {MOST_LISTED_BYTES:,} bytes")
        return tuple(map(matches, items))

    return parse


def _flag(value: Any) -> bool:
    if str(value).lower() not in {"true", "false"}:
        raise ConfigError("must be true or false")
    return str(value).lower() == "true"


def _log_period(value: Any) -> int:
    if str(value) not in {str(days) for days in LOG_PERIODS}:
        raise ConfigError("must be one of " + ", ".join(map(str, LOG_PERIODS)))
    return int(value)


_PREFIXES = _listed(
    r"(?:(?!\.{1,2}/)[^/\x00-\x1f\x7f]+/)+", "prefixes of keys that end with '/', with commas"
)
_ROLES = _listed(
    r"arn:aws[a-z\-]*:iam::\d{12}:(?:role|user)/[\w+=.@/*\-]+",
    "ARNs of roles or users, with commas",
)
_KEY = r"arn:aws[a-z\-]*:kms:[a-z0-9\-]+:\d{12}:key/[A-Za-z0-9\-]+"
_BUCKET = _matching(r"[a-z0-9][a-z0-9.\-]{1,61}[a-z0-9]", "a bucket's name")


def _parameter(parse: Callable[[Any], Any], default: Any = None) -> Any:
    return field(default=default, metadata={"parse": parse})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployConfig:
    """One deployment; `docs/deploy.md` says what each parameter means."""

    name: str | None = _parameter(
        _matching(r"[a-z][a-z0-9\-]{0,19}", "1 to 20 lower-case letters, digits or '-'")
    )
    bucket_name: str | None = _parameter(_BUCKET)
    import_bucket: str | None = _parameter(_BUCKET)
    events: str = _parameter(
        _matching("notifications|eventbridge", "notifications or eventbridge"),
        default="notifications",
    )
    kms_key_arn: str | None = _parameter(_matching(_KEY, "a KMS key's ARN"))
    encryption: str = _parameter(
        _matching("bucket|AES256|aws:kms", "bucket, AES256 or aws:kms"), default="bucket"
    )
    job_key_arns: tuple[str, ...] = _parameter(
        _listed(_KEY, "ARNs of KMS keys, with commas"), default=()
    )
    access_logs_bucket: str | None = _parameter(_BUCKET)
    versioned: bool = _parameter(_flag, default=False)
    noncurrent_days: int = _parameter(_number(1, 3650), default=30)
    abort_incomplete_days: int = _parameter(_number(2, 365), default=7)
    ledger_ttl_days: int = _parameter(_number(1, 3650), default=90)
    log_key_arn: str | None = _parameter(_matching(_KEY, "a KMS key's ARN"))
    subnets: tuple[str, ...] = _parameter(
        _listed(r"subnet-[0-9a-f]{8,17}", "ids of subnets, with commas"), default=()
    )
    security_groups: tuple[str, ...] = _parameter(
        _listed(r"sg-[0-9a-f]{8,17}", "ids of security groups, with commas"), default=()
    )
    log_retention_days: int = _parameter(_log_period, default=30)
    execution_logs: str = _parameter(
        _matching("errors|events|data", "errors, events or data"), default="errors"
    )
    architecture: str = _parameter(_matching("arm64|x86_64", "arm64 or x86_64"), default="arm64")
    max_concurrency: int = _parameter(_number(1, MOST_WORKERS), default=MOST_WORKERS)
    lambda_concurrency: int = _parameter(_number(LEAST, 100_000), default=DEFAULT)
    reserve_workers: bool = _parameter(_flag, default=False)
    sweep_minutes: int = _parameter(_number(5, 720), default=60)
    stuck_minutes: int = _parameter(_number(5, 1440), default=15)
    abandoned_hours: int = _parameter(_number(1, 8760), default=24)
    retention_days: int = _parameter(_number(1, 3650), default=30)
    replace_prefixes: tuple[str, ...] = _parameter(_PREFIXES, default=("",))
    protect_names: str = _parameter(
        _matching("none|documents|all", "none, documents or all"), default="none"
    )
    operators: tuple[str, ...] = _parameter(_ROLES, default=())
    fresh_tables: tuple[str, ...] = _parameter(
        _listed(
            # CloudWatch looks back a week at most (`stacks.observability`), and a dimension's value
            # is ASCII: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_Dimension.html
            r"(?:(?!\.{1,2}/)[!-.0-~]+/)+=(?:[1-9]\d?|1[0-5]\d|16[0-8])",
            "ASCII prefixes that end with '/', each with '=' and 1 to 168 hours, with commas",
        ),
        default=(),
    )
    alarm_email: str | None = _parameter(_matching(r"[^@\s]+@[^@\s]+", "an e-mail address"))
    spark_jars: bool = _parameter(_flag, default=False)
    change: tuple[str, ...] = _parameter(
        _listed(
            "name|bucketName|importBucket|kmsKeyArn|alarmEmail",
            "names of parameters that stop a deployment, with commas",
        ),
        default=(),
    )

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> DeployConfig:
        """Read every key that starts with ``s3commit:``. Raises `ConfigError`."""
        known = {parameter_name(each.name): each for each in fields(cls)}
        values: dict[str, Any] = {}
        for key, value in context.items():
            if not key.startswith(PREFIX):
                continue
            name = key.removeprefix(PREFIX)
            if name not in known:
                raise ConfigError(f"unknown parameter {key}; known are {', '.join(sorted(known))}")
            try:
                values[known[name].name] = known[name].metadata["parse"](value)
            except ConfigError as error:
                raise ConfigError(f"parameter {key}={value!r} {error}") from None
        config = cls(**values)
        config._check_together(set(values))
        return config

    def _check_together(self, given: set[str]) -> None:
        """What we don't create we don't configure: an imported bucket keeps its own settings."""
        if self.retention_days + 2 > self.ledger_ttl_days:
            raise ConfigError(
                f"{PREFIX}retentionDays must be at least 2 less than {PREFIX}ledgerTtlDays: the"
                " sweep finds by the ledger where documents are due"
            )
        if bool(self.subnets) != bool(self.security_groups):
            raise ConfigError(f"{PREFIX}subnets and {PREFIX}securityGroups go together")
        if self.encryption == "aws:kms" and self.kms_key_arn is None:
            raise ConfigError(f"{PREFIX}encryption=aws:kms is with the key {PREFIX}kmsKeyArn")
        if self.operators and self.protect_names == "none":
            raise ConfigError(f"{PREFIX}operators says who is exempt from {PREFIX}protectNames")
        if self.import_bucket is None:
            return
        created_only = {
            "bucket_name",
            "versioned",
            "noncurrent_days",
            "abort_incomplete_days",
            "access_logs_bucket",
            "protect_names",
            "operators",
        }
        clash = sorted(parameter_name(name) for name in created_only & given)
        if clash:
            raise ConfigError(
                f"{PREFIX}importBucket takes a bucket as it is: leave out {', '.join(clash)} "
                "and set that on the bucket"
            )

    @property
    def given(self) -> dict[str, Any]:
        """The parameters whose value is not the default, by their own names, without ``change``."""
        return {
            parameter_name(each.name): getattr(self, each.name)
            for each in fields(self)
            if each.name != "change" and getattr(self, each.name) != each.default
        }

    @property
    def fresh(self) -> dict[str, int]:
        """How many hours a table may go without a commit, by its prefix."""
        split = [one.rpartition("=") for one in self.fresh_tables]
        return {prefix: int(hours) for prefix, _, hours in split}

    @property
    def log_retention(self) -> RetentionDays:
        """How long the logs of functions and executions are kept."""
        return LOG_PERIODS[self.log_retention_days]

    def log_key(self, scope: Construct) -> kms.IKey | None:
        """The key of the log groups of a stack."""
        return kms.Key.from_key_arn(scope, "LogKey", self.log_key_arn) if self.log_key_arn else None

    @property
    def shares(self) -> Shares:
        """How many functions run at once, of each kind."""
        return shares(self.lambda_concurrency)

    @property
    def namespace(self) -> str:
        """The namespace of the deployment's metrics: another one's ring no alarm of it."""
        return f"{env.METRICS_NAMESPACE}/{self.name}" if self.name else env.METRICS_NAMESPACE

    @property
    def role_path(self) -> str:
        """The path of the deployment's roles, by which a bucket's policy knows them all.

        Their names are CloudFormation's, and their stack needs the bucket first.
        """
        return f"/{self.stack_name(env.PIPELINE_STACK)}/"

    def stack_name(self, stack: str) -> str:
        """The name of a stack, so that several deployments fit into one account and region."""
        return f"{stack}-{self.name}" if self.name else stack


def parameter_name(field_name: str) -> str:
    """``alarm_email`` → ``alarmEmail``."""
    head, *rest = field_name.split("_")
    return head + "".join(word.capitalize() for word in rest)
