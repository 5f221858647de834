"""The plan: which files a decided job completes, cut into units of work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from s3commit.core.jsontext import Fields, dump, parse
from s3commit.core.policy import MAX_UNITS, UNIT_FILES, UNIT_PARTS

MAX_PLAN_BYTES = 256 * 1024 * 1024
MAX_SLICES = 1_000_000


@dataclass(frozen=True, slots=True)
class Slice:
    """A range of one manifest's files: ``start`` included, ``stop`` excluded.

    ``location`` says where the manifest lies, as in `model.CountedAttempt`.
    """

    manifest: str
    sha256: str
    start: int
    stop: int
    location: str = ""


@dataclass(frozen=True, slots=True)
class Unit:
    """What one worker call completes; ``number`` counts from 0 without a gap."""

    number: int
    slices: tuple[Slice, ...]

    @property
    def files(self) -> int:
        """How many files the unit has."""
        return sum(part.stop - part.start for part in self.slices)


def cut_units(
    manifests: Iterable[tuple[str, str, list[int], str]], *, total_files: int
) -> Iterator[Unit]:
    """Cut manifests, each with its digest and the number of parts of each file, into units.

    Last comes the location where it lies, empty for the destination. The cut depends on its input
    alone, so that whoever plans a job again gets the same bytes.
    """
    limit = max(UNIT_FILES, -(-total_files // MAX_UNITS))
    # Never more units than MAX_UNITS, whatever the parts weigh: so many files fit one a unit.
    parts_limit = UNIT_PARTS if total_files <= MAX_UNITS else 2**62
    slices: list[Slice] = []
    files = parts = number = 0
    for manifest, sha256, weights, location in manifests:
        start = 0
        for index, weight in enumerate(weights):
            if files and (files >= limit or parts + weight > parts_limit):
                if index > start:
                    slices.append(Slice(manifest, sha256, start, index, location))
                yield Unit(number, tuple(slices))
                number, slices, files, parts, start = number + 1, [], 0, 0, index
            files, parts = files + 1, parts + weight
        if len(weights) > start:
            slices.append(Slice(manifest, sha256, start, len(weights), location))
    if slices:
        yield Unit(number, tuple(slices))


def unit_json(unit: Unit) -> dict[str, Any]:
    """A unit as it stands in the plan and travels to its worker."""
    return {
        "unit": unit.number,
        "slices": [_slice_json(part) for part in unit.slices],
    }


def _slice_json(part: Slice) -> dict[str, Any]:
    document: dict[str, Any] = {
        "manifest": part.manifest,
        "sha256": part.sha256,
        "from": part.start,
        "to": part.stop,
    }
    return {**document, "location": part.location} if part.location else document


def encode_plan(units: Iterable[Unit]) -> bytes:
    """The plan: an array of units, as the state machine's Map reads it."""
    return dump([unit_json(unit) for unit in units])


def decode_unit(value: object, path: str = "$") -> Unit:
    """Read one unit. Raises `InvalidInputError`."""
    fields = Fields(value, path)
    slices = tuple(
        Slice(
            manifest=part.text("manifest"),
            sha256=part.text("sha256", longest=64),
            start=part.integer("from"),
            stop=part.integer("to"),
            location=part.text("location", ""),
        )
        for part in fields.objects("slices", most=MAX_SLICES)
    )
    return Unit(fields.integer("unit"), slices)


def decode_plan(body: bytes) -> list[Unit]:
    """Read a plan. Raises `InvalidInputError`."""
    wrapped = {"units": parse(body, what="plan", max_bytes=MAX_PLAN_BYTES, most=MAX_PLAN_BYTES)}
    fields = Fields(wrapped, "$")
    return [decode_unit(unit.value, unit.path) for unit in fields.objects("units", most=MAX_SLICES)]
