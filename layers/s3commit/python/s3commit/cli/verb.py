"""What all verbs share: the options of every one, and how an error ends the command.

An error is one line on stderr that says what is guaranteed and what to do next, and an exit code.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from s3commit.aws import env
from s3commit.cli.printer import Printer
from s3commit.cli.session import Session
from s3commit.cli.text import one_line
from s3commit.core.model.errors import (
    AccessError,
    JobFailedError,
    JobRefusedError,
    OutcomeUnknownError,
    PreconditionError,
    S3CommitError,
    TransientError,
    UnchangedError,
)
from s3commit.core.ports.ledger import LostRaceError

FAILED, USAGE, REFUSED, UNKNOWN = 1, 2, 3, 4
_NO_TABLE = "NO_TABLE"  # of aws.failures, which would import botocore
INTERRUPTED = 130  # 128 + SIGINT, as shells have it

_EXITS: tuple[tuple[type[S3CommitError], int], ...] = (
    (OutcomeUnknownError, UNKNOWN),
    (JobFailedError, REFUSED),
    (JobRefusedError, REFUSED),
    (PreconditionError, REFUSED),
    (LostRaceError, REFUSED),
    (S3CommitError, FAILED),
)


class Problem(click.ClickException):
    """The end of a command: one line on stderr, and the exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        # click declares it for the class and reads it from the instance
        self.exit_code = exit_code  # type: ignore[misc]

    def show(self, file: Any = None) -> None:
        """Print the line."""
        click.echo(f"error: {one_line(self.message)}", file=file, err=file is None)


class Verb(click.Command):
    """A command whose usage errors are one line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click."""
        with _usage_in_one_line(ctx):
            return super().parse_args(ctx, args)


class Verbs(Verb, click.Group):
    """A group whose usage errors are one line; lists its verbs in the order given."""

    command_class = Verb

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See click."""
        with _usage_in_one_line(ctx):
            return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See click."""
        return list(self.commands)


@contextmanager
def _usage_in_one_line(ctx: click.Context) -> Iterator[None]:
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        hint = f"see: {ctx.command_path} --help"
        raise Problem(f"{error.format_message().rstrip('.')}; {hint}", USAGE) from error


def _common_options() -> list[click.Parameter]:
    return [
        click.Option(
            ["--output"],
            type=click.Choice(["text", "json"]),
            default="text",
            show_default=True,
            help="Text for people, JSON for programs.",
        ),
        click.Option(["--verbose"], is_flag=True, help="Show the traceback of an error."),
    ]


def verb(*, changes: bool = False) -> Callable[[Callable[..., None]], click.Command]:
    """Make a verb of a function that takes a `Session`, a `Printer`, and its own parameters.

    ``changes`` says that it may change something, and lets errors say that it did not.
    """

    def decorate(function: Callable[..., None]) -> click.Command:
        @click.pass_context
        def run(ctx: click.Context, /, *, output: str, verbose: bool, **parameters: Any) -> None:
            with reported(changes=changes, verbose=verbose):
                function(ctx.ensure_object(Session), Printer(json=output == "json"), **parameters)

        # The name, the help and the options put on it by now are the function's.
        command = click.command(cls=Verb)(functools.update_wrapper(run, function))
        command.params += _common_options()
        return command

    return decorate


@contextmanager
def reported(*, changes: bool, verbose: bool) -> Iterator[None]:
    """Turn what goes wrong inside into a `Problem`."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, BrokenPipeError):
        raise
    except KeyboardInterrupt:
        line = "interrupted; the jobs continue, and what was requested stands"
        raise Problem(line, INTERRUPTED) from None
    except S3CommitError as error:
        _show_traceback(verbose)
        exit_code = next(code for kind, code in _EXITS if isinstance(error, kind))
        raise Problem(_line(error, changes), exit_code) from error
    except Exception as error:
        _show_traceback(verbose)
        kind = type(error).__name__
        hint = "" if verbose else "; --verbose shows where"
        raise Problem(f"unexpected {kind}: {error}{hint}", FAILED) from error


def _show_traceback(verbose: bool) -> None:
    if verbose:
        click.echo(traceback.format_exc(), err=True, nl=False)


def _line(error: S3CommitError, changes: bool) -> str:
    bare = error.code == S3CommitError.code or error.code in error.message
    text = error.message if bare else f"{error.message} [{error.code}]"
    advice = _advice(error, changes)
    return f"{text}; {advice}" if advice else text


def _advice(error: S3CommitError, changes: bool) -> str:
    if isinstance(error, OutcomeUnknownError | JobFailedError):
        return ""  # their messages say it
    if isinstance(error, TransientError):
        return (
            "it may or may not have happened, repeating the command is harmless"
            if changes
            else "try again"
        )
    unchanged = changes and isinstance(error, JobRefusedError | UnchangedError)
    nothing = "nothing was changed" if unchanged else ""
    if error.code == _NO_TABLE:
        return f"is the table's name right (--table, {env.TABLE}), and the region?"
    if isinstance(error, AccessError):
        who = "see who you are with: aws sts get-caller-identity"
        return f"{nothing}; {who}" if nothing else who
    return nothing


table_option = click.option(
    "--table",
    envvar=env.TABLE,
    show_envvar=True,
    metavar="NAME",
    help="The ledger's table, the stack's output TableName; '' for none.",
)
state_machine_option = click.option(
    "--state-machine",
    "machine",
    envvar=env.STATE_MACHINE,
    show_envvar=True,
    metavar="ARN",
    help="The stack's output StateMachineArn, if the ledger names no execution of the job.",
)
dry_run_option = click.option(
    "--dry-run",
    is_flag=True,
    help="Check everything, print what would be done, and stop.",
)
