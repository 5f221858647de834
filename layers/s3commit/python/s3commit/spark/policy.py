"""One policy out of Spark's mode, the options, the configuration and the session.

The program's word goes first: the mode always, then its options; then the configuration of the
destination; then, for the scope alone, the session's ``spark.sql.sources.partitionOverwriteMode``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Conflict, Scope
from s3commit.spark.options import Options
from s3commit.writer.options import parse_scope

SESSION_SCOPE: Final = "spark.sql.sources.partitionOverwriteMode"


@dataclass(frozen=True, slots=True)
class Policy:
    """What the job does about files that are there, and in which directories."""

    conflict: Conflict
    scope: Scope


def policy_of(options: Options, *, overwrite: bool, session_scope: str | None = None) -> Policy:
    """What the write does about files that are there; ``session_scope`` is the session's setting.

    Raises `InvalidInputError` (``BAD_OPTIONS``) for options that contradict each other or the
    mode, in one line that names the way out.
    """
    for line, wrong in _contradictions(options, overwrite).items():
        if wrong:
            raise InvalidInputError(f"{line}. Nothing was written.", code="BAD_OPTIONS")
    conflict = Conflict.REPLACE if overwrite else Conflict.APPEND
    if (options.conflict or options.usual_conflict) is Conflict.FAIL and not overwrite:
        conflict = Conflict.FAIL
    if not options.partition_by or conflict is Conflict.APPEND:
        return Policy(conflict, Scope.DIRECTORY)
    scope = options.scope or options.usual_scope
    if scope is None:  # Spark's own default is static
        scope = parse_scope(SESSION_SCOPE, session_scope) if session_scope else Scope.DIRECTORY
    return Policy(conflict, scope)


def _contradictions(options: Options, overwrite: bool) -> dict[str, bool]:
    said = options.conflict
    return {
        f"option conflict={said!s} contradicts mode 'overwrite', which replaces: leave the option"
        " out, or use mode 'append'": overwrite and said in {Conflict.APPEND, Conflict.FAIL},
        "option conflict=replace contradicts mode 'append': use mode='overwrite'": (
            not overwrite and said is Conflict.REPLACE
        ),
        "option partitionOverwriteMode=dynamic needs the partitions' columns: give partition_by,"
        " such as partition_by='dt'": (
            options.scope is Scope.PARTITION and not options.partition_by
        ),
    }
