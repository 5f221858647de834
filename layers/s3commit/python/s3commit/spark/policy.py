"""One policy out of Spark's mode, the options, the configuration and the session.

The program's word goes first: the mode always, then its options; then the configuration of the
destination; then, for the scope alone, the session's ``spark.sql.sources.partitionOverwriteMode``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark import TaskContext

from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Conflict, Scope
from s3commit.spark.options import Options
from s3commit.spark.partitions import escape
from s3commit.writer.options import parse_scope

SESSION_SCOPE: Final = "spark.sql.sources.partitionOverwriteMode"


@dataclass(frozen=True, slots=True)
class Policy:
    """``scope`` None: the session says, which only the tasks can hear (`task_scope`)."""

    conflict: Conflict
    scope: Scope | None


def policy_of(options: Options, *, overwrite: bool, stream: bool = False) -> Policy:
    """What the write does about files that are there.

    Raises `InvalidInputError` (``BAD_OPTIONS``) for options that contradict each other or the
    mode, in one line that names the way out.
    """
    for line, wrong in _contradictions(options, overwrite, stream).items():
        if wrong:
            raise InvalidInputError(f"{line}. Nothing was written.", code="BAD_OPTIONS")
    conflict = Conflict.REPLACE if overwrite else Conflict.APPEND
    if (options.conflict or options.usual_conflict) is Conflict.FAIL and not (overwrite or stream):
        conflict = Conflict.FAIL
    if not options.partition_by or conflict is Conflict.APPEND:
        return Policy(conflict, Scope.DIRECTORY)
    return Policy(conflict, options.scope or options.usual_scope)


def _contradictions(options: Options, overwrite: bool, stream: bool) -> dict[str, bool]:
    said = options.conflict
    mode = "complete output" if stream else "mode 'overwrite'"
    stray = _stray(options)
    return {
        f"option conflict={said!s} contradicts {mode}, which replaces: leave the option out,"
        " or use mode 'append'": overwrite and said in {Conflict.APPEND, Conflict.FAIL},
        "option conflict=replace contradicts mode 'append': use .mode('overwrite'), or"
        " .outputMode('complete') for a stream": not overwrite and said is Conflict.REPLACE,
        "option conflict=fail would end a stream at its second batch: leave it out": (
            stream and said is Conflict.FAIL
        ),
        "option partitionOverwriteMode=dynamic needs the partitions' columns: add option"
        " partitionBy, such as .option('partitionBy', 'dt')": (
            options.scope is Scope.PARTITION and not options.partition_by
        ),
        f"option partitionLocations names {stray!r}, which is no directory that partitionBy"
        f" {','.join(options.partition_by)!r} makes: name each as dt=2026-11-21": bool(stray),
        "option idempotencyKey is not for streams: each micro-batch has its own, of query and"
        " batch": stream and options.idempotency_key is not None,
        "option jobId chooses what to read: a write makes its own id": options.job_id is not None,
    }


def _stray(options: Options) -> str:
    """A partition with a location that no row of the write could ever go to, or empty."""
    wanted = [escape(name) for name in options.partition_by]
    for directory in options.locations:
        names = [element.partition("=")[0] for element in directory.split("/")[:-1]]
        if names != wanted:
            return directory
    return ""


def task_scope(context: TaskContext) -> Scope:
    """What the session that runs the task says of replaced partitions.

    Spark propagates a session's settings to its tasks, and to no other Python process.
    """
    return scope_said(context.getLocalProperty(SESSION_SCOPE))


def scope_said(text: str | None) -> Scope:
    """What a session's setting means; Spark's default is static. Raises `InvalidInputError`."""
    return Scope.DIRECTORY if text is None else parse_scope(SESSION_SCOPE, text)
