"""The checks in their order, and how each is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from s3commit.cli.doctor.account import (
    clock,
    credentials,
    endpoint,
    functions_at_once,
    region,
    transitions,
    versions,
)
from s3commit.cli.doctor.deployment import (
    bucket_policy,
    encryption,
    lifecycle,
    notifications,
    pipeline,
    queues,
)
from s3commit.cli.doctor.rights import rights
from s3commit.cli.doctor.surroundings import (
    Finding,
    NoBucketError,
    Surroundings,
    Verdict,
    skipped,
    to_do,
)
from s3commit.core.model.errors import AccessError, S3CommitError

Check = Callable[[Surroundings], Finding]

# What needs no AWS, then what everything else needs, then the rest.
HERE: tuple[tuple[str, Check], ...] = (
    ("versions", versions),
    ("region", region),
    ("credentials", credentials),
)
ON_AWS: tuple[tuple[str, Check], ...] = (
    ("clock", clock),
    ("endpoint", endpoint),
    ("functions at once", functions_at_once),
    ("state transitions", transitions),
    ("pipeline", pipeline),
    ("notifications", notifications),
    ("queues", queues),
    ("bucket policy", bucket_policy),
    ("lifecycle", lifecycle),
    ("encryption", encryption),
    ("rights", rights),
)


def examine(around: Surroundings) -> Iterator[tuple[str, Finding]]:
    """The name and the finding of each check; without region or credentials the rest is skipped."""
    blind = False
    for name, check in HERE:
        found = _ask(check, around)
        blind = blind or (found.verdict is Verdict.DO and name != "versions")
        yield name, found
    for name, check in ON_AWS:
        yield name, skipped("not without region and credentials") if blind else _ask(check, around)


def _ask(check: Check, around: Surroundings) -> Finding:
    """A check that may not look is skipped, and says which right it lacks."""
    try:
        return check(around)
    except NoBucketError as error:
        return skipped(error.message)
    except AccessError as error:
        return to_do(error.message) if error.code == "NO_CREDENTIALS" else skipped(error.message)
    except S3CommitError as error:
        return to_do(error.message)
