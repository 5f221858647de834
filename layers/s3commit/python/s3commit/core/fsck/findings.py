"""What a check finds, and the repairs of it: as values, and as lines of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from s3commit.core.formats.layout import parse_destination
from s3commit.core.formats.strict_json import Fields, dump, members, parse
from s3commit.core.fsck.verdict import Action, Verdict
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Destination

PLAN_VERSION: Final = 1
MAX_PLAN_BYTES: Final = 1024 * 1024 * 1024
MAX_LINE_BYTES: Final = 16 * 1024
BAD_PLAN: Final = "BAD_PLAN"


@dataclass(frozen=True, slots=True)
class Repair:
    """One change, with the condition under which it is made.

    ``key`` is an object's or upload's, or a job directory for an execution; ``upload_id``, or
    ``etag`` and on a versioned bucket ``version_id``, or an execution's ``generation`` say what was
    seen there.
    """

    action: Action
    finding: str
    bucket: str
    key: str
    job_id: str
    upload_id: str = ""
    etag: str = ""
    version_id: str = ""
    generation: int = 0


def repairs_of(
    verdict: Verdict, bucket: str, key: str, job_id: str, **seen: Any
) -> tuple[Repair, ...]:
    """The verdict's one repair, under the condition of what was ``seen``; none if it has none."""
    if verdict.action is None:
        return ()
    return (Repair(verdict.action, verdict.name, bucket, key, job_id, **seen),)


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of a table that is true of something; ``key`` says of what, ``detail`` a bit more.

    ``restore`` is the id of the version that still has a committed file's bytes.
    """

    verdict: Verdict
    bucket: str
    key: str
    job_id: str = ""
    detail: str = ""
    restore: str = ""
    repairs: tuple[Repair, ...] = field(default=())

    @property
    def name(self) -> str:
        """The row's name."""
        return self.verdict.name


@dataclass(slots=True)
class Tally:
    """What a check has looked at: jobs of which there is a trace."""

    jobs: int = 0


def encode_plan(destination: Destination, repairs: Iterable[Repair]) -> Iterator[bytes]:
    """The plan, line by line: a line about the plan, then one for each repair."""
    yield dump({"version": PLAN_VERSION, "destination": destination.uri}) + b"\n"
    for one in repairs:
        document = {name: value for name, value in members(one).items() if value or name == "jobId"}
        yield dump(document) + b"\n"


def decode_plan(body: bytes, destination: Destination) -> list[Repair]:
    """Read a plan. Raises `InvalidInputError` (``BAD_PLAN``) for one of another destination.

    What it says is only a choice among the repairs that a check finds: by itself it changes
    nothing.
    """
    if len(body) > MAX_PLAN_BYTES:
        raise InvalidInputError("the plan is too large", code=BAD_PLAN)
    lines = body.splitlines()
    if not lines:
        raise InvalidInputError("the plan is empty", code=BAD_PLAN)
    head = Fields(parse(lines[0], what="plan", max_bytes=MAX_LINE_BYTES), "$")
    head.version(PLAN_VERSION)
    if parse_destination(head.text("destination")) != destination:
        raise InvalidInputError(
            f"the plan is of {head.text('destination')[:200]}, not of {destination.uri}",
            code=BAD_PLAN,
        )
    return [_repair(line) for line in lines[1:]]


def _repair(line: bytes) -> Repair:
    fields = Fields(parse(line, what="plan", max_bytes=MAX_LINE_BYTES), "$")
    action = fields.text("action", longest=80)
    if action not in set(Action):
        raise InvalidInputError(f"the plan asks for {action!r}", code=BAD_PLAN)
    return Repair(
        action=Action(action),
        finding=fields.text("finding", longest=80),
        bucket=fields.text("bucket", longest=80),
        key=fields.text("key"),
        job_id=fields.text("jobId", longest=80),
        upload_id=fields.text("uploadId", ""),
        etag=fields.text("etag", ""),
        version_id=fields.text("versionId", ""),
        generation=fields.integer("generation", 0),
    )
