"""The ports together: those of S3, which a client has too, and all that the steps work on."""

from collections.abc import Callable
from dataclasses import dataclass, field

from s3commit.core.ports.clock import Clock
from s3commit.core.ports.ledger import Ledger
from s3commit.core.ports.objects import ObjectStore
from s3commit.core.ports.parallel import ParallelMap


@dataclass(frozen=True, slots=True)
class Workers:
    """Concurrent calls that complete units: ``of_all`` jobs together, and ``of_one``, at most."""

    of_all: int = 1
    of_one: int = 1


@dataclass(frozen=True, slots=True)
class S3Ports:
    """The half that a client has too. ``parallel`` is sequential unless an adapter says else.

    ``prefixes`` are those below which the deployment has rights, and jobs: the empty one is the
    whole bucket.
    """

    store: ObjectStore
    parallel: ParallelMap = field(default=map, kw_only=True)
    prefixes: tuple[str, ...] = field(default=("",), kw_only=True)

    def serves(self, prefix: str) -> bool:
        """True if the deployment has rights to all that is below this prefix."""
        return prefix.startswith(self.prefixes)


@dataclass(frozen=True, slots=True)
class Ports(S3Ports):
    """All ports of the pipeline.

    ``runs`` says of an execution, by its ARN or its name, whether it is at work.
    ``replace_below`` are the prefixes below which jobs may replace what is there, each with its
    ``/`` at the end; the empty one allows it everywhere, none at all nowhere. ``workers`` are the
    deployment's. ``check_deletes`` raises `JobRefusedError` for a bucket whose store ignores etags,
    ``check_owner`` `NeedsOperatorError` for one that is another deployment's.
    """

    ledger: Ledger
    clock: Clock
    runs: Callable[[str], bool] = field(default=lambda _execution: False)
    replace_below: tuple[str, ...] = ("",)
    check_deletes: Callable[[str], None] = field(default=lambda _bucket: None)
    check_owner: Callable[[str], None] = field(default=lambda _bucket: None)
    workers: Workers = Workers()
