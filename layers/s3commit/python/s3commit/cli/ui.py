"""``s3commit ui``."""

# ruff: noqa: PLC0415 - flask is an extra, and takes its time to import
from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from s3commit.cli import install
from s3commit.cli.options import table_option, with_session
from s3commit.cli.render import CommandError
from s3commit.cli.session import Session

if TYPE_CHECKING:
    from s3commit.cli.page.server import Page

PORT = 8473  # a link that is handed on leads to the colleague's own page
LONG = 3600.0  # seconds


def open_page(session: Session, port: int) -> Page:
    """Serve the page. Raises `CommandError` if what it needs is not installed, or as `Page`."""
    if find_spec("flask") is None:
        raise CommandError(f"the page needs flask: {install('ui')}", 1)
    from s3commit.cli.page.server import Page

    return Page(session, port)


@contextmanager
def page_beside(port: int) -> Iterator[str]:
    """The page, for the length of the block, of what this process's environment leads to."""
    with closing(open_page(Session(), port)) as page:
        yield page.address


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
    """Show jobs, their state machine and tables in a browser, until interrupted.

    Prints the page's address, which has a token in it: who has that, on this machine, sees what you
    may see. The page changes nothing, and reads with your credentials what status, show, log and
    fsck read.
    """
    page = open_page(session, port)
    session.out.line({"address": page.address}, page.address)
    session.out.note("Ctrl-C ends it")
    with suppress(KeyboardInterrupt), closing(page):
        while True:
            session.environment.sleep(LONG)
