"""The command and its verbs."""

from __future__ import annotations

import click

from s3commit.cli.verb import Verbs
from s3commit.cli.verbs.abort import abort
from s3commit.cli.verbs.commit import commit
from s3commit.cli.verbs.doctor import doctor
from s3commit.cli.verbs.fsck import fsck
from s3commit.cli.verbs.local import local
from s3commit.cli.verbs.ls import ls
from s3commit.cli.verbs.rescue import rescue
from s3commit.cli.verbs.show import show
from s3commit.cli.verbs.status import status
from s3commit.cli.verbs.sweep import sweep
from s3commit.version import __version__


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="s3commit")
def app() -> None:
    """Inspect and manage jobs: all of a job's files appear in S3, or none do.

    Credentials, region and endpoint come from the standard AWS configuration (AWS_PROFILE,
    AWS_REGION, AWS_ENDPOINT_URL and so on); the ledger's table comes from --table or
    S3COMMIT_TABLE. Most commands work without it on an s3:// URI.

    \b
    Exit codes:
      0  done
      1  failed; the line on stderr says what is guaranteed
      2  usage
      3  refused, or a conflict: the job's state does not allow it
      4  the outcome is unknown: it may still be committed

    Data goes to stdout, everything else to stderr. NO_COLOR turns colours off.
    """  # noqa: D301 - click wants the backspace


for _verb in (status, show, ls, abort, commit, rescue, sweep, fsck, doctor):
    app.add_command(_verb)
app.add_command(local)
