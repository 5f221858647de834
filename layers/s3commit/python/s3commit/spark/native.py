"""Spark's own file writers, committed by s3commit: `configure` a session for it.

Each write of files to ``s3a://`` in such a session is a job: by a DataFrame, SQL or
``saveAsTable``. The work is done by a jar (jvm/), which `make jar` builds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from s3commit.core.model.errors import InvalidInputError, S3CommitError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JARS: Final = Path(__file__).parent / "jars"
PROTOCOL: Final = "io.s3commit.spark.S3CommitProtocol"
_CLASS: Final = "spark.sql.sources.commitProtocolClass"
_PREFIXES: Final = "spark.s3commit.prefixes"
_OTHERWISE: Final = "spark.s3commit.otherwise"
# As the jar checks it again (Setting.java).
_FORM: Final = re.compile(r"s3a?://(?:[a-z0-9][a-z0-9.\-]{1,61}[a-z0-9](?:/[^,]*)?)?")
_JARS: Final = "spark.jars"


class NoJarError(S3CommitError):
    """There is no jar for the running Spark. Nothing was configured."""

    code = "NO_JAR"


def configure(
    builder: SparkSession.Builder,
    *,
    prefixes: str | Iterable[str] = (),
    jar: str | os.PathLike[str] | None = None,
) -> SparkSession.Builder:
    """Have the session that ``builder`` makes commit its files by s3commit; returns ``builder``.

    ``prefixes`` are the destinations that it is for, ``s3a://bucket/prefix/``; all of S3 if none is
    given. ``s3://`` means the same. Files for other destinations are committed by the class that
    ``builder`` named before, else by the one that the session would have without us. ``jar`` is the
    jar, if it is not the one that this package has for the running Spark.

    For a program that starts Spark itself. Under ``spark-submit`` Spark runs already, and takes
    the jar from ``--jars``: `find_jar` says where it is.

    Raises `NoJarError`; `InvalidInputError` (``BAD_PATH``) for a prefix of another form.
    """
    chosen = (prefixes,) if isinstance(prefixes, str) else tuple(prefixes)
    for prefix in chosen:
        if not _FORM.fullmatch(prefix):
            raise InvalidInputError(
                f"prefix {prefix!r} is invalid: give s3a://bucket/prefix/. Nothing was configured.",
                code="BAD_PATH",
            )
    path = find_jar() if jar is None else os.fspath(jar)
    before = getattr(builder, "_options", {})
    builder.config(_JARS, f"{before[_JARS]},{path}" if before.get(_JARS) else path)
    if before.get(_CLASS, PROTOCOL) != PROTOCOL:
        builder.config(_OTHERWISE, before[_CLASS])
    builder.config(_CLASS, PROTOCOL)
    if chosen:
        builder.config(_PREFIXES, ",".join(chosen))
    return builder


def find_jar() -> str:
    """The path of the jar for the Spark that this Python would run. Raises `NoJarError`."""
    scala = _scala()
    found = sorted(JARS.glob(f"s3commit-spark_{scala}-*.jar"))
    if not found:
        raise NoJarError(
            f"no jar of s3commit for Scala {scala} is installed: run `make jar` in a checkout of"
            " s3commit, or give its path, configure(builder, jar='...')"
        )
    return str(found[-1])


def _scala() -> str:
    """``2.12`` or ``2.13``: what the running Spark is built with."""
    import pyspark  # noqa: PLC0415

    home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    names = (path.name for path in Path(home, "jars").glob("scala-library-2.*.jar"))
    version = next((name.removeprefix("scala-library-") for name in names), None)
    if version:
        return ".".join(version.split(".")[:2])
    return "2.12" if pyspark.__version__.startswith("3.") else "2.13"
