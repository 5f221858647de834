"""The checks in their order, and how each is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from s3commit.cli.doctor import account, deployment, rights
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
HERE: dict[str, Check] = {
    "versions": account.versions,
    "region": account.region,
    "credentials": account.credentials,
}
ON_AWS: dict[str, Check] = {
    "clock": account.clock,
    "endpoint": account.endpoint,
    "functions at once": account.functions_at_once,
    "state transitions": account.transitions,
    "pipeline": deployment.pipeline,
    "notifications": deployment.notifications,
    "queues": deployment.queues,
    "bucket policy": deployment.bucket_policy,
    "lifecycle": deployment.lifecycle,
    "encryption": deployment.encryption,
    "rights": rights.rights,
}


def examine(around: Surroundings) -> Iterator[tuple[str, Finding]]:
    """The name and the finding of each check; without region or credentials the rest is skipped."""
    blind = False
    for name, check in HERE.items():
        found = _ask(check, around)
        blind = blind or (found.verdict is Verdict.DO and name != "versions")
        yield name, found
    for name, check in ON_AWS.items():
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
