"""The options and arguments that several verbs have."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from s3commit.aws import env
from s3commit.aws.executions import check_machine
from s3commit.cli.session import Session
from s3commit.core.formats.layout import (
    JOB_ID,
    MAGIC_PREFIX,
    JobDirectory,
    check_job_id,
    parse_destination,
)
from s3commit.core.model.errors import InvalidInputError

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

NamedJob = JobDirectory | str  # as a person types it: by its directory, or its id's first digits

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_FIRST_DIGITS = re.compile(r"[0-9a-fA-F]{8}[0-9a-fA-F-]{0,27}")
_AGE = re.compile(r"(\d{1,6})([smhdw])", re.ASCII)


class Parsed(click.ParamType[T]):
    """A parameter as ``parse`` reads its text; what that refuses is a usage error."""

    def __init__(self, name: str, parse: Callable[[str], T]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """See click, which also hands over what is converted already."""
        try:
            return self._parse(value) if isinstance(value, str) else value
        except (InvalidInputError, ValueError) as error:
            self.fail(str(error), param, ctx)


def parse_job(text: str) -> NamedJob:
    """A job id, or the directory of which the s3:// URI, or that of anything in it, is given.

    Of an id the first digits will do. Raises `InvalidInputError`.
    """
    if "://" not in text:
        if _FIRST_DIGITS.fullmatch(text) or JOB_ID.fullmatch(text):
            return text
        raise InvalidInputError(
            f"{text[:80]!r} names no job: give its id, or its first 8 digits in `s3commit log`,"
            " or the s3:// URI of its directory",
            code="BAD_ID",
        )
    place, magic, below = text.partition(f"/{MAGIC_PREFIX}")
    if not magic:
        raise InvalidInputError(
            f"{text!r} is not a job directory: it has no {MAGIC_PREFIX}<job id>/. To name a job by"
            " its table, use: JOB_ID --destination s3://bucket/prefix/",
            code="BAD_PATH",
        )
    return JobDirectory(parse_destination(place), check_job_id(below.partition("/")[0]))


def _parse_label(text: str) -> str:
    if "=" not in text:
        raise ValueError(f"{text!r} is not NAME=VALUE")
    return text


def label_option(about: str) -> Callable[[F], F]:
    """``--label NAME=VALUE``, which may be repeated."""
    kind = Parsed("label", _parse_label)
    return click.option(
        "--label", "labels", multiple=True, metavar="NAME=VALUE", type=kind, help=about
    )


def parse_age(text: str) -> int:
    """``90s``, ``15m``, ``12h``, ``2d`` or ``1w`` in seconds. Raises `ValueError`."""
    found = _AGE.fullmatch(text)
    if not found:
        raise ValueError(f"invalid duration {text!r}: use a number and s, m, h, d or w, such as 2d")
    return int(found[1]) * _SECONDS[found[2]]


JOB: Parsed[NamedJob] = Parsed("job", parse_job)
DESTINATION = Parsed("destination", parse_destination)


def age_option(*names: str, default: str | None = None, about: str) -> Callable[[F], F]:
    """An option that takes an age."""
    age = Parsed("age", parse_age)
    return click.option(*names, type=age, default=default, show_default=True, help=about)


def _keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    ctx.ensure_object(Session).typed[str(parameter.name)] = value
    return value


def _kept_option(name: str, about: str, **how: Any) -> Callable[[F], F]:
    """An option that no verb gets: the session has it in ``typed``."""
    return click.option(name, expose_value=False, callback=_keep, help=about, **how)


name_option = _kept_option(
    "--name", "The deployment's name (its parameter `name`), if it has one.", metavar="NAME"
)
_table_option = _kept_option(
    "--table",
    f"Ledger table (stack output TableName) [env: {env.TABLE}]; '' for none.",
    metavar="NAME",
)
_destination_option = _kept_option(
    "--destination",
    "The job's destination, if JOB is an id and no table is known.",
    type=DESTINATION,
    metavar="URI",
)


def table_option(function: F) -> F:
    """The options for the ledger's table, for `Session.table`: its name, or the deployment's."""
    return name_option(_table_option(function))


state_machine_option = click.option(
    "--state-machine",
    "machine",
    type=Parsed("machine", check_machine),
    metavar="ARN",
    help=(
        f"State machine (stack output StateMachineArn) [env: {env.STATE_MACHINE}], if no stack has"
        " it."
    ),
)
dry_run_option = click.option(
    "--dry-run",
    is_flag=True,
    callback=_keep,
    help="Check everything, print what would be done, and stop.",
)


def job_options(function: F) -> F:
    """JOB as ``job``, and the options by which `locate` finds it: its table, or its destination."""
    return click.argument("job", type=JOB)(table_option(_destination_option(function)))


def with_session(function: Callable[..., None]) -> Callable[..., None]:
    """Shared by all verbs: the `Session` as first argument, ``--output`` and ``--json``."""

    def choose(ctx: click.Context, _parameter: click.Parameter, chosen: str | None) -> None:
        if chosen:  # both options set one parameter, and each is asked
            ctx.ensure_object(Session).out.json = chosen == "json"

    output = click.option(
        "--output",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        expose_value=False,
        callback=choose,
        help="Text for people, or JSON for programs.",
    )
    short = click.option(
        "--json",
        "output",
        flag_value="json",
        expose_value=False,
        callback=choose,
        help="The same as --output json.",
    )
    return output(short(click.make_pass_decorator(Session, ensure=True)(function)))
