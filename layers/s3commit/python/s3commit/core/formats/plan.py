"""The plan: which files a decided job completes, cut into units of work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from s3commit.core.formats.strict_json import Fields, bounded, dump, parse
from s3commit.core.model.limits import MAX_UNITS, UNIT_BYTES, UNIT_FILES, UNIT_PARTS

# 200,000 manifests (documents.MAX_ATTEMPTS), cut by at most MAX_UNITS units.
MAX_PLAN_BYTES = 96 * 1024 * 1024
MAX_PLAN_VALUES = 1_500_000
MAX_SLICES = 210_000
_BOUNDS: Final[Any] = {"what": "plan", "max_bytes": MAX_PLAN_BYTES, "most": MAX_PLAN_VALUES}


@dataclass(frozen=True, slots=True)
class Slice:
    """A range of one manifest's files: ``start`` included, ``stop`` excluded."""

    manifest: str
    sha256: str
    start: int
    stop: int


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
    manifests: Iterable[tuple[str, str, list[int]]], *, total_files: int
) -> Iterator[Unit]:
    """Cut manifests, each with its digest and the number of parts of each file, into units.

    The cut depends on its input alone, so that whoever plans a job again gets the same bytes.
    """
    manifests = list(manifests)
    sizes = [_slice_size(*one) for one in manifests]
    # Units that end because they are full of names have at least half of these bytes.
    of_names = 2 * sum(sizes) // UNIT_BYTES
    limit = max(UNIT_FILES, -(-total_files // max(1, MAX_UNITS - of_names)))
    # Never more units than MAX_UNITS, whatever the parts weigh: so many files fit one a unit.
    parts_limit = UNIT_PARTS if total_files <= MAX_UNITS else 2**62
    slices: list[Slice] = []
    files = parts = number = named = 0
    for (manifest, sha256, weights), size in zip(manifests, sizes, strict=True):
        start = 0
        for index, weight in enumerate(weights):
            full = files >= limit or parts + weight > parts_limit
            if files and (full or (index == start and named + size > UNIT_BYTES)):
                if index > start:
                    slices.append(Slice(manifest, sha256, start, index))
                yield Unit(number, tuple(slices))
                number, slices, files, parts, start = number + 1, [], 0, 0, index
                named = 0
            named += size if index == start else 0
            files, parts = files + 1, parts + weight
        if len(weights) > start:
            slices.append(Slice(manifest, sha256, start, len(weights)))
    if slices:
        yield Unit(number, tuple(slices))


def _slice_size(manifest: str, sha256: str, weights: list[int]) -> int:
    """The bytes of the manifest's largest slice in a unit; none for one without files.

    Name and digest are ids and need no escapes.
    """
    return _FRAME + len(manifest) + len(sha256) if weights else 0


def unit_json(unit: Unit) -> dict[str, Any]:
    """A unit as it stands in the plan and travels to its worker."""
    return {
        "unit": unit.number,
        "slices": [_slice_json(part) for part in unit.slices],
    }


def _slice_json(part: Slice) -> dict[str, Any]:
    return {
        "manifest": part.manifest,
        "sha256": part.sha256,
        "from": part.start,
        "to": part.stop,
    }


# What a slice has beside the manifest's name and digest.
_FRAME: Final = len(dump(_slice_json(Slice("", "", 10**6, 10**6)))) + 1


def encode_plan(units: Iterable[Unit]) -> bytes:
    """The plan: an array of units, as the state machine's Map reads it.

    Raises `InvalidInputError` (``TOO_LARGE``) for one that could not be read again.
    """
    return bounded(dump([unit_json(unit) for unit in units]), **_BOUNDS)


def decode_unit(value: object, path: str = "$") -> Unit:
    """Read one unit. Raises `InvalidInputError`."""
    fields = Fields(value, path)
    slices = tuple(
        Slice(
            manifest=part.text("manifest"),
            sha256=part.text("sha256", longest=64),
            start=part.integer("from"),
            stop=part.integer("to"),
        )
        for part in fields.objects("slices", most=MAX_SLICES)
    )
    return Unit(fields.integer("unit"), slices)


def decode_plan(body: bytes) -> list[Unit]:
    """Read a plan. Raises `InvalidInputError`."""
    wrapped = {"units": parse(body, **_BOUNDS)}
    fields = Fields(wrapped, "$")
    return [decode_unit(unit.value, unit.path) for unit in fields.objects("units", most=MAX_SLICES)]
