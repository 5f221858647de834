"""The command, its verbs, and how an error ends it: one line on stderr, and the exit code."""

import io
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from s3commit.cli.render import CommandError, coded, cures
from s3commit.cli.session import CHANGES, Session
from s3commit.core.model.errors import (
    JobFailedError,
    JobRefusedError,
    OutcomeUnknownError,
    PreconditionError,
    S3CommitError,
    TransientError,
    UnchangedError,
)
from s3commit.core.ports.ledger import LostRaceError
from s3commit.version import __version__

FAILED, REFUSED, UNKNOWN = 1, 3, 4  # click's own for usage is 2
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
_NAMES = (
    *("abort", "commit", "doctor", "fsck", "local", "log", "ls", "pause", "redrive", "rescue"),
    *("resume", "show", "status", "sweep", "ui", "undo", "uploads"),
)
_REFUSALS = (JobFailedError, JobRefusedError, PreconditionError, LostRaceError)


class _Verbs(Mapping[str, click.Command]):
    """The module of a verb is imported when it is needed: all take 0.1 s."""

    def __getitem__(self, name: str) -> click.Command:
        if name not in _NAMES:
            raise KeyError(name)
        module = import_module(f"s3commit.cli.{'pause' if name == 'resume' else name}")
        verb: click.Command = getattr(module, name)
        return verb

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


class App(click.Group):
    """The verbs; an error of one is a line that says what is guaranteed and what to do next."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """See click. A name that the terminal's encoding lacks is written in escapes."""
        # For one that is closed click takes the other, or says nothing: output fails, errors go.
        if sys.stdout is None:
            sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
        if sys.stderr is None:
            sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            if not _is_of_output(error):
                raise
            line = f"the output could not be written ({error.strerror}); what was done stays done"
            with suppress(OSError):
                click.echo(f"Error: {line}", err=True)
            sys.stdout = sys.stderr = None  # or else Python writes the rest at its end
            sys.exit(FAILED)

    def invoke(self, ctx: click.Context) -> Any:
        """See click."""
        session = ctx.ensure_object(Session)
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            line = "interrupted; running jobs continue and requests already made still apply"
            raise CommandError(line, INTERRUPTED) from None
        except S3CommitError as error:
            changes, tries = ctx.invoked_subcommand in CHANGES, session.typed.get("dry_run", False)
            line = _line(error, changes=changes, begun=session.begun, tries=tries)
            refused = REFUSED if isinstance(error, _REFUSALS) else FAILED
            code = UNKNOWN if isinstance(error, OutcomeUnknownError) else refused
            raise CommandError(line, code) from error
        except Exception as error:
            if _is_of_output(error):
                raise
            click.echo(traceback.format_exc(), err=True, nl=False)
            line = f"unexpected {type(error).__name__}: {error}; please report the lines above"
            raise CommandError(line, FAILED) from error


def _is_of_output(error: Exception) -> bool:
    """True if the output could not be written, as to a full disk: all of it goes through `echo`."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return isinstance(error, OSError) and frames[-1].f_code is click.echo.__code__


def _line(error: S3CommitError, *, changes: bool, begun: str, tries: bool) -> str:
    said = [coded(error.message, error)]
    if isinstance(error, TransientError):
        doubt = "the change may have been made; it is safe to run the command again"
        said.append(doubt if changes and not tries else "try again")
    elif begun:
        said.append(begun)
    elif changes and isinstance(error, JobRefusedError | UnchangedError):
        said.append("nothing was changed")
    return "; ".join([*said, *cures(error)])


@click.group(cls=App, commands=_Verbs(), context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="s3commit")
def app() -> None:
    """Inspect and manage jobs: all of a job's files appear in S3, or none do.

    Credentials, region and endpoint come from the standard AWS configuration (AWS_PROFILE,
    AWS_REGION, AWS_ENDPOINT_URL and so on); the ledger's table comes from --table, --name,
    S3COMMIT_TABLE, or the stack of the deployment without a name. Most commands work without it on
    an s3:// URI.

    \b
    Exit codes:
      0  done
      1  failed; the line on stderr says what is guaranteed
      2  usage
      3  refused, or a conflict: the job's state does not allow it
      4  the outcome is unknown: it may still be committed

    Data goes to stdout, everything else to stderr. NO_COLOR turns colours off.
    """  # noqa: D301 - click needs the backspace
