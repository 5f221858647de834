"""``s3commit ui``."""

# ruff: noqa: PLC0415 - flask is an extra, and takes its time to import
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from importlib.util import find_spec

import click

from s3commit.cli import install
from s3commit.cli.options import table_option, with_session
from s3commit.cli.render import CommandError
from s3commit.cli.session import Session

PORT = 8473  # a link that is handed on leads to the colleague's own page
LONG = 3600.0  # seconds


def check_installed(what: str, modules: Iterable[str], extra: str) -> None:
    """Raise `CommandError` unless the modules that ``what`` needs can be imported."""
    if lacking := [name for name in modules if find_spec(name) is None]:
        raise CommandError(f"{what} needs {', '.join(lacking)}: {install(extra)}", 1)


def page_beside(port: int, session: Session | None = None) -> AbstractContextManager[str]:
    """As `served`; without ``session``, what this process's environment leads to.

    Raises `CommandError` if what it needs is not installed.
    """
    check_installed("the page", ("flask", "waitress"), "ui")
    from s3commit.cli.page.server import served

    return served(session or Session(), port)


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="0 picks a free one.",
)
@table_option
@with_session
def ui(session: Session, *, port: int) -> None:
    """Show jobs and tables in a browser, until interrupted.

    Prints the page's address, which has a token in it: who has that, on this machine, sees what you
    may see. The page changes nothing, and reads with your credentials what status, show, log and
    fsck read.
    """
    with suppress(KeyboardInterrupt), page_beside(port, session) as address:
        session.out.line({"address": address}, address)
        session.out.note("Ctrl-C ends it")
        while True:
            session.environment.sleep(LONG)
