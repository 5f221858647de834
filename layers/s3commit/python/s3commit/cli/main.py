"""Where the command ``s3commit`` starts."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; exits the process with its code."""
    try:
        from s3commit.cli.app import app  # noqa: PLC0415 - click is an extra: say so if it lacks
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.exit(
            "error: the command needs click: pip install 'WHEEL[cli]', or '.[cli]' in a checkout"
            " of s3commit"
        )
    app(prog_name="s3commit")
