"""Where the command ``s3commit`` starts, which is ``python -m s3commit`` as well."""

import sys

from s3commit.cli import install


def main() -> None:
    """Run the command; exits the process with its code."""
    try:
        from s3commit.cli.app import app  # noqa: PLC0415 - click is an extra: say so if it lacks
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.exit(f"error: the command needs click: {install('cli')}")
    app(prog_name="s3commit")


if __name__ == "__main__":
    main()
