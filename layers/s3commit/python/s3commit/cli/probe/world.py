"""What the probes work on: clients with the product's settings, and prefixes of their own."""

# ruff: noqa: PLC0415 - boto3 takes 300 ms: `--help` and a usage error do not pay for it
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from s3commit.aws.s3_client import make_client
from s3commit.cli.probe.model import Probe, Seen
from s3commit.cli.probe.place import Place
from s3commit.core.model.job import Destination
from s3commit.writer.environment import Environment

if TYPE_CHECKING:
    from botocore.session import Session
    from mypy_boto3_s3 import S3Client

T = TypeVar("T")

PARTS, ROUNDS, PART_BYTES = 40, 6, 5 * 2**20  # of a completion that an abort races
NAME = "s3commit-probe"


@dataclass(frozen=True, slots=True)
class Given:
    """What the person gave to probe with; see the command's options."""

    destination: Destination
    versioned_bucket: str | None = None
    table: str | None = None
    key_role: str | None = None
    key: str | None = None
    machine_role: str | None = None
    alarm: str | None = None


@dataclass
class World:
    """One run. Whatever it makes has ``name`` in its name, and goes at the end.

    ``parts`` and ``rounds`` bound the races; ``undo`` takes what has to be undone besides objects.
    """

    given: Given
    environment: Environment
    parts: int = PARTS
    rounds: int = ROUNDS
    undo: ExitStack = field(default_factory=ExitStack)
    requests: int = 0  # to S3, by these clients
    kept: str = ""  # below the run's prefix: what must not be deleted

    @cached_property
    def name(self) -> str:
        """Of this run alone."""
        return f"{NAME}-{self.environment.new_id()}"

    @cached_property
    def s3(self) -> S3Client:
        """S3 as the product's writers and functions ask it."""
        return self._counted(make_client())

    @cached_property
    def place(self) -> Place:
        """The run's prefix at the destination."""
        destination = self.given.destination
        return Place(self.s3, destination.bucket, f"{destination.prefix}{self.name}/")

    @cached_property
    def versioned(self) -> Place:
        """The run's prefix in the bucket with versions."""
        bucket = self.given.versioned_bucket or ""
        return Place(self.s3, bucket, f"{self.given.destination.prefix}{self.name}/")

    @property
    def places(self) -> list[Place]:
        """All that the run writes to."""
        return [self.place, self.versioned] if self.given.versioned_bucket else [self.place]

    def client(self, service: str) -> Any:
        """A client of another service, in the region of S3's."""
        connect: Any = self._session.create_client
        return connect(service)

    @cached_property
    def _session(self) -> Session:
        from s3commit.aws.session import make_session

        return make_session(self.s3.meta.region_name)

    def s3_as(self, role: str) -> S3Client:
        """S3 with the rights of another role, and the product's settings."""
        import boto3.session

        assumed = self.client("sts").assume_role(RoleArn=role, RoleSessionName=NAME)
        keys = assumed["Credentials"]
        session = boto3.session.Session(
            aws_access_key_id=keys["AccessKeyId"],
            aws_secret_access_key=keys["SecretAccessKey"],
            aws_session_token=keys["SessionToken"],
            region_name=self.s3.meta.region_name,
        )
        return self._counted(session.client("s3", config=self.s3.meta.config))

    def clean(self) -> list[str]:
        """Undo and delete all that the run made; what is left, one line each."""
        left = []
        try:
            self.undo.close()
        except Exception as error:
            left.append(f"{error}")
        for place in self.places:
            with suppress(Exception):  # what is left then is listed, or said not to be known
                place.empty(keep=self.kept)
            try:
                left += place.left()
            except Exception as error:
                left.append(f"not known for s3://{place.bucket}/{place.prefix}: {error}")
        return left

    def wait(self, until: Callable[[], T | None], seconds: float, pause: float) -> T | None:
        """Ask every ``pause`` seconds; None if nothing came in time."""
        deadline = self.environment.monotonic() + seconds
        while True:
            found = until()
            if found is not None or self.environment.monotonic() > deadline:
                return found
            self.environment.sleep(pause)

    def _counted(self, client: S3Client) -> S3Client:
        def count(**_request: Any) -> None:
            self.requests += 1

        client.meta.events.register("before-send.s3", count)
        return client


def option(name: str) -> Callable[[World], str]:
    """What a world lacks that was not given ``--name``."""

    def lacks(world: World) -> str:
        given = getattr(world.given, name.replace("-", "_"))
        return "" if given else f"give --{name}"

    return lacks


def options(*names: str) -> Callable[[World], str]:
    """As `option`, for several."""
    all_of = [option(name) for name in names]

    def lacks(world: World) -> str:
        missing = [found.removeprefix("give ") for one in all_of if (found := one(world))]
        return f"give {' and '.join(missing)}" if missing else ""

    return lacks


def with_versions(
    probe: Probe[World], run: Callable[[Place], Iterator[Seen]]
) -> tuple[Probe[World], Probe[World]]:
    """The probe, and the same in the bucket with versions."""
    versioned = replace(
        probe,
        name=f"{probe.name}-versioned",
        what=f"{probe.what}, with versions",
        run=lambda world: run(world.versioned),
        lacks=option("versioned-bucket"),
    )
    return probe, versioned


def at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Make the calls on a thread each; what each returned, in their order."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [started.result() for started in [pool.submit(call) for call in calls]]


def distinct(answers: Sequence[str]) -> tuple[str, ...]:
    """Each answer once, in order."""
    return tuple(sorted(set(answers)))


def count_of(done: int, all_of: int) -> str:
    """``always``, or how many times of how many."""
    return "always" if done == all_of else f"{done} of {all_of} times"
