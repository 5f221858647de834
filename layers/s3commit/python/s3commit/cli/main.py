"""Where the command ``s3commit`` starts, perhaps without its extras: imports nothing of one."""

from __future__ import annotations

import sys

from s3commit.version import __version__


def main() -> None:
    """Run the command; exits the process with its code."""
    try:
        from s3commit.cli.app import app  # noqa: PLC0415 - click is an extra: say so if it lacks
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.exit(f"error: the command needs click: {install('cli')}")
    app(prog_name="s3commit")


def install(extra: str) -> str:
    """How to install the package with an extra that is missing; it is on no index."""
    return (
        f"pip install 's3commit-{__version__}-py3-none-any.whl[{extra}]', or pip install"
        f" '.[{extra}]' in a checkout of s3commit"
    )
