"""The parameters of a deployment, read from the CDK context and checked before anything is built.

A parameter is a context key with our prefix, in `cdk.json` or on the command line:
``cdk deploy --all -c s3commit:name=dev``. Strings and JSON values are both accepted, because the
command line knows strings only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import pairwise
from typing import Any, cast

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from s3commit.aws import env
from s3commit.aws.env import DEFAULT, LEAST, LEAST_OF_A_QUEUE, MOST_WORKERS, Shares, shares

PREFIX = "s3commit:"
# Parameters that a deployment changes, or drops as any other, only if the parameter
# ``change`` names it (`stacks.changes`).
GUARDED = ("bucketName", "importBucket", "kmsKeyArn", "alarmEmail", "prefixes")

# CloudWatch Logs knows certain periods only; these are the ones that we offer, in days.
LOG_PERIODS = (1, 7, 14, 30, 90, 180, 365, 731, 3653)
MOST_LISTED_BYTES = 2_000

# Of the 10,240 characters that all policies of a role may have, without white space, those that a
# prefix takes, and what the others leave (`stacks.access`), in a bucket with the longest name:
# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
OF_A_PREFIX = 480  # and six times its own
FOR_PREFIXES = 7_000

_KEY = r"arn:aws[a-z\-]*:kms:[a-z0-9\-]+:\d{12}:key/[A-Za-z0-9\-]+"
# No alias, and no bucket of another kind: `s3commit.core.formats.layout`.
_ALIAS = r"(?!.*(?:-s3alias|\.mrap|--(?:ol|op|x|xa|table)-s3)\Z)"
# The CDK refuses a dot beside a dot or '-', and an IP address, with a stack trace.
_ODD = r"(?!.*(?:\.[.\-]|-\.))(?!(?:\d{1,3}\.){3}\d{1,3}\Z)"
_BUCKET = rf"{_ALIAS}{_ODD}[a-z0-9][a-z0-9.\-]{{1,61}}[a-z0-9]"


class ConfigError(ValueError):
    """A parameter is unknown or has an invalid value; the message says what to do."""


def _parameter(parse: Callable[[Any], Any], default: Any = None) -> Any:
    return field(default=default, metadata={"parse": parse})


def _matches(pattern: str, what: str, value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(pattern, value):
        raise ConfigError(f"must be {what}")
    return value


def _text(pattern: str, what: str) -> Any:
    """A text; without it the parameter is None."""
    return _parameter(partial(_matches, pattern, what))


def _choice(default: Any, *others: Any) -> Any:
    """One of some values, as text or as JSON; the first is the default."""
    known = {json.dumps(each).strip('"'): each for each in (default, *others)}

    def parse(value: Any) -> Any:
        said = str(value).lower() if isinstance(default, bool) else str(value)
        if said not in known:
            raise ConfigError(f"must be one of {', '.join(known)}")
        return known[said]

    return _parameter(parse, default)


def _number(default: int, low: int, high: int) -> Any:
    def parse(value: Any) -> int:
        digits = re.fullmatch(r"\d{1,9}", str(value))
        if isinstance(value, bool) or digits is None or not low <= int(value) <= high:
            raise ConfigError(f"must be a whole number from {low} to {high}")
        return int(value)

    return _parameter(parse, default)


def _listed(
    pattern: str, what: str, default: tuple[str, ...] = (), *, may_be_empty: bool = True
) -> Any:
    """A JSON list, or text with commas; nothing between them is the empty list.

    Of an object each member is an item, with ``=`` before its value.
    """

    def parse(value: Any) -> tuple[str, ...]:
        if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
            with suppress(ValueError):
                value = json.loads(value)
        items = value if isinstance(value, list) else None
        if isinstance(value, dict):
            items = [f"{name}={each}" for name, each in value.items()]
        if isinstance(value, str):
            items = [item.strip() for item in value.split(",")] if value.strip() else []
        if items is None or not (items or may_be_empty):
            raise ConfigError(f"must be {what}, with commas")
        # A function's environment has 4 KB in all:
        # https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
        if len(json.dumps(items)) > MOST_LISTED_BYTES:
            raise ConfigError(f"must be {what}, at most {MOST_LISTED_BYTES:,} bytes")
        return tuple(_matches(pattern, f"{what}, with commas", item) for item in items)

    return _parameter(parse, default)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployConfig:
    """One deployment; `docs/deploy.md` says what each parameter means."""

    name: str | None = _text(r"[a-z][a-z0-9\-]{0,19}", "1 to 20 lower-case letters, digits or '-'")
    bucket_name: str | None = _text(_BUCKET, "a general purpose bucket's name")
    import_bucket: str | None = _text(_BUCKET, "a general purpose bucket's name")
    events: str = _choice("notifications", "eventbridge")
    kms_key_arn: str | None = _text(_KEY, "a KMS key's ARN")
    encryption: str = _choice("bucket", "AES256", "aws:kms")
    job_key_arns: tuple[str, ...] = _listed(_KEY, "ARNs of KMS keys")
    access_logs_bucket: str | None = _text(_BUCKET, "a general purpose bucket's name")
    versioned: bool = _choice(False, True)
    noncurrent_days: int = _number(30, 1, 3650)
    abort_incomplete_days: int = _number(7, 2, 365)
    ledger_ttl_days: int = _number(90, 1, 3650)
    log_key_arn: str | None = _text(_KEY, "a KMS key's ARN")
    subnets: tuple[str, ...] = _listed(r"subnet-[0-9a-f]{8,17}", "ids of subnets")
    security_groups: tuple[str, ...] = _listed(r"sg-[0-9a-f]{8,17}", "ids of security groups")
    log_retention_days: int = _choice(30, *LOG_PERIODS)
    retain_logs: bool = _choice(False, True)
    execution_logs: str = _choice("errors", "events", "data")
    architecture: str = _choice("arm64", "x86_64")
    max_concurrency: int = _number(MOST_WORKERS, 1, MOST_WORKERS)
    lambda_concurrency: int = _number(DEFAULT, LEAST, 100_000)
    reserve_workers: bool = _choice(False, True)
    sweep_minutes: int = _number(60, 5, 720)
    stuck_minutes: int = _number(env.SWEEP_LIMITS["stuckMinutes"], 5, 1440)
    abandoned_hours: int = _number(env.SWEEP_LIMITS["abandonedHours"], 1, 8760)
    # An empty ledger learns from decision records which overwrites are done: `FORGOTTEN_DAYS`.
    retention_days: int = _number(env.SWEEP_LIMITS["retentionDays"], 8, 3650)
    prefixes: tuple[str, ...] = _listed(
        # IAM would take *, ? and $ for other keys too, and policies have no character from U+0100
        # on: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
        r"(?:(?!\.{1,2}/)[!-#%-)+-.0->@-~]+/)+",
        "ASCII prefixes that end with '/', without *, ? and $",
        ("",),
        may_be_empty=False,  # it would be nowhere, or everywhere
    )
    replace_prefixes: tuple[str, ...] = _listed(
        r"(?:(?!\.{1,2}/)[^/\x00-\x1f\x7f]+/)+", "prefixes of keys that end with '/'", ("",)
    )
    protect_names: str = _choice("none", "documents", "all")
    operators: tuple[str, ...] = _listed(
        r"arn:aws[a-z\-]*:iam::\d{12}:(?:role|user)/[\w+=.@/*\-]+", "ARNs of roles or users"
    )
    fresh_tables: tuple[str, ...] = _listed(
        # CloudWatch looks back a week at most (`stacks.observability`), and a dimension's value
        # is ASCII: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_Dimension.html
        # An alarm's name, which has the prefix, has 255 characters at most.
        r"(?=.{1,200}\Z)(?:(?!\.{1,2}/)[!-.0-~]+/)+=(?:[1-9]\d?|1[0-5]\d|16[0-8])",
        "short ASCII prefixes that end with '/', each with '=' and 1 to 168 hours",
    )
    catalogs: tuple[str, ...] = _listed(
        # IAM would take *, ? and $ in a policy for other names too; Glue has names in lower case.
        r"(?:(?!\.{1,2}/)[^/*?$\x00-\x1f\x7f]+/)+=[a-z0-9_\-]+\.[a-z0-9_\-]+(?: dropEmpty)?",
        'tables by prefix, {"sales/": "analytics.sales"} or "analytics.sales dropEmpty"',
    )
    alarms: bool = _choice(True, False)
    alarm_email: str | None = _text(r"[^@\s]+@[^@\s]+", "an e-mail address")
    alarm_topic_arn: str | None = _text(
        r"arn:aws[a-z\-]*:sns:[a-z0-9\-]+:\d{12}:[\w\-]{1,256}", "the ARN of an SNS topic"
    )
    dashboard: bool = _choice(True, False)
    change: tuple[str, ...] = _listed("[a-z][A-Za-z]+", "names of parameters")

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
        """We don't configure what we don't create: an imported bucket keeps its own settings."""
        if self.retention_days + 2 > self.ledger_ttl_days:
            raise ConfigError(
                f"{PREFIX}retentionDays must be at least 2 less than {PREFIX}ledgerTtlDays: the"
                " sweep finds by the ledger where documents are due"
            )
        if bool(self.subnets) != bool(self.security_groups):
            raise ConfigError(f"{PREFIX}subnets and {PREFIX}securityGroups go together")
        if self.encryption == "aws:kms" and self.kms_key_arn is None:
            raise ConfigError(f"{PREFIX}encryption=aws:kms needs the key {PREFIX}kmsKeyArn")
        if self.alarm_email and self.alarm_topic_arn:
            raise ConfigError(f"{PREFIX}alarmTopicArn has its own subscriptions: no alarmEmail")
        if not self.alarms and (self.alarm_email or self.alarm_topic_arn or self.fresh_tables):
            raise ConfigError(
                f"{PREFIX}alarms=false makes none: no alarmEmail, alarmTopicArn, freshTables"
            )
        if self.operators and self.protect_names == "none":
            raise ConfigError(f"{PREFIX}operators is for {PREFIX}protectNames, which is none")
        prefixes = sorted(one.prefix for one in self.told)
        if any(inner.startswith(outer) for outer, inner in pairwise(prefixes)):
            raise ConfigError(f"{PREFIX}catalogs has a prefix in another one's")
        if self.told and self.lambda_concurrency < LEAST + LEAST_OF_A_QUEUE:
            raise ConfigError(
                f"{PREFIX}lambdaConcurrency must be at least {LEAST + LEAST_OF_A_QUEUE} with"
                f" {PREFIX}catalogs, whose function runs too"
            )
        watched = [*self.fresh, *prefixes]
        if outside := [one for one in watched if not one.startswith(self.served)]:
            raise ConfigError(
                f"{PREFIX}prefixes has none for {outside[0]}, which {PREFIX}freshTables or"
                f" {PREFIX}catalogs names"
            )
        takes = sum(OF_A_PREFIX + 6 * len(one) for one in self.served)
        if takes + len(json.dumps(self.job_key_arns)) > FOR_PREFIXES:
            raise ConfigError(
                f"{PREFIX}prefixes has {len(self.served)}, too many for the 10,240 characters that"
                " IAM gives the policies of a role: name one above several, or none"
            )
        if unknown := set(self.change) - {parameter_name(each.name) for each in fields(self)}:
            raise ConfigError(f"{PREFIX}change names no parameter: {', '.join(sorted(unknown))}")
        created_only = {
            *("bucket_name", "versioned", "noncurrent_days", "abort_incomplete_days"),
            *("access_logs_bucket", "protect_names", "operators"),
        }
        clash = sorted(parameter_name(name) for name in created_only & given)
        if clash and self.import_bucket:
            raise ConfigError(
                f"{PREFIX}importBucket does not configure the bucket: leave out {', '.join(clash)}"
                " and set that on the bucket"
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
    def served(self) -> tuple[str, ...]:
        """The prefixes that the functions have rights to, without those inside another one."""
        given = sorted(set(self.prefixes))
        return tuple(
            one for one in given if not any(one != up and one.startswith(up) for up in given)
        )

    @property
    def fresh(self) -> dict[str, int]:
        """How many hours a table may go without a commit, by its prefix. Raises `ConfigError`."""
        split = [one.rpartition("=") for one in self.fresh_tables]
        named = {prefix.replace("/", "--") for prefix, *_ in split}  # as the CDK names the alarms
        if len(named) < len(split):
            raise ConfigError(f"{PREFIX}freshTables has a prefix twice, where '/' is as '--'")
        return {prefix: int(hours) for prefix, _, hours in split}

    @property
    def told(self) -> list[env.Catalog]:
        """The tables of the Glue Data Catalog that are notified of commits."""
        return list(map(env.Catalog.of, self.catalogs))

    def log_group(
        self, scope: Construct, name: str, *, prefix: str = "", construct_id: str = "Logs"
    ) -> logs.LogGroup:
        """A group of logs that end when they are as old as the deployer says.

        Its name is fixed, so that it is known before there is a deployment, and after it. One that
        an update replaces stays: that with a name by chance, which earlier revisions gave it.
        """
        arn, stack = self.log_key_arn, cdk.Stack.of(scope).stack_name
        policies = cdk.RemovalPolicy
        kept = policies.RETAIN_ON_UPDATE_OR_DELETE if self.retain_logs else policies.DESTROY
        group = logs.LogGroup(
            scope,
            construct_id,
            log_group_name=f"{prefix}{stack}-{name}",
            encryption_key=kms.Key.from_key_arn(scope, f"{construct_id}Key", arn) if arn else None,
            removal_policy=kept,
        )
        # The CDK has a name for each number, CloudFormation takes the number.
        resource = cast("logs.CfnLogGroup", group.node.default_child)
        resource.retention_in_days = self.log_retention_days
        resource.cfn_options.update_replace_policy = cdk.CfnDeletionPolicy.RETAIN
        return group

    @property
    def shares(self) -> Shares:
        """How many functions run concurrently, of each kind."""
        return shares(self.lambda_concurrency - (LEAST_OF_A_QUEUE if self.catalogs else 0))

    @property
    def namespace(self) -> str:
        """The namespace of the deployment's metrics: another one's fire no alarm of it."""
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
