"""The command, and the advice where an extra of the package is missing."""

from s3commit.version import __version__


def install(extra: str) -> str:
    """How to install the package with an extra that is missing; it is on no index."""
    return (
        f"pip install 's3commit-{__version__}-py3-none-any.whl[{extra}]', or pip install"
        f" '.[{extra}]' in a checkout of s3commit"
    )
