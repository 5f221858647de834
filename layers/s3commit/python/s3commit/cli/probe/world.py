"""What the probes work on: clients with the product's settings, and prefixes of their own."""

# ruff: noqa: PLC0415 - boto3 takes 300 ms: `--help` and a usage error do not pay for it
from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from s3commit.aws.s3_client import make_client
from s3commit.cli.probe.items import DAY, Items, delete_items
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
        return self._place(self.given.destination.bucket)

    @cached_property
    def versioned(self) -> Place:
        """The run's prefix in the bucket with versions."""
        return self._place(self.given.versioned_bucket or "")

    def _place(self, bucket: str) -> Place:
        return Place(self.s3, bucket, f"{self.given.destination.prefix}{self.name}/")

    @property
    def places(self) -> list[Place]:
        """All that the run writes to."""
        return [self.place, self.versioned] if self.given.versioned_bucket else [self.place]

    @cached_property
    def items(self) -> Items:
        """The run's items in the table."""
        expires = int(self.environment.epoch()) + DAY
        items = Items(self.client("dynamodb"), self.given.table, f"PROBE#{self.name}", expires)
        self.undo.callback(delete_items, items.client, items.table, items.partition)
        return items

    def client(self, service: str, **more: Any) -> Any:
        """A client of another service, in the region of S3's."""
        connect: Any = self._session.create_client
        return connect(service, **more)

    @cached_property
    def _session(self) -> Session:
        from s3commit.aws.session import make_session

        return make_session(self.s3.meta.region_name)

    def s3_as(self, role: str) -> S3Client:
        """S3 with the rights of another role, and the product's settings."""
        assumed = self.client("sts").assume_role(RoleArn=role, RoleSessionName=NAME)
        keys = assumed["Credentials"]
        client = self.client(
            "s3",
            config=self.s3.meta.config,
            aws_access_key_id=keys["AccessKeyId"],
            aws_secret_access_key=keys["SecretAccessKey"],
            aws_session_token=keys["SessionToken"],
        )
        return self._counted(client)

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
