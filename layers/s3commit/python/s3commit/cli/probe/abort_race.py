"""An abort against the running completion of many parts: the one or the other, never both."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from s3commit.cli.probe.model import Case, Cost, Probe, Seen
from s3commit.cli.probe.place import Upload
from s3commit.cli.probe.uploads import ABORTS, GONE
from s3commit.cli.probe.world import PART_BYTES, PARTS, World, at_once, distinct

# How much later than the completion the abort is sent (negative: earlier), in seconds.
DELAYS = (-0.02, 0.0, 0.02, 0.05, 0.1, 0.3)
SETTLE_SECONDS = 1.0
COPIERS = 8
ABORTS_TRIED = 5


def _abort_race(world: World) -> Iterator[Seen]:
    """An abort meets the running completion of many parts: the file is there, or never will be."""
    place = world.place
    place.put("part", bytes(PART_BYTES))
    outcomes = [_raced(world, f"raced-{n}", DELAYS[n % len(DELAYS)]) for n in range(world.rounds)]
    detail = f"{world.rounds} races with {world.parts} parts of 5 MiB"
    yield Seen("how each race ends", distinct(outcomes), detail)


def _raced(world: World, key: str, delay: float) -> str:
    place, pause = world.place, world.environment.sleep
    upload = _many_parts(world, key)

    def complete() -> tuple[str, int]:
        pause(max(0.0, -delay))
        return place.completed(upload)

    def abort() -> tuple[str, int]:
        pause(max(0.0, delay))
        return place.abort(upload), 0

    (told, repeated), (aborted, _) = at_once([complete, abort])
    # As a roll back does: abort until ListParts does not know it, then look what is visible.
    for _ in range(ABORTS_TRIED):
        if place.parts_of(upload) == GONE:
            break
        aborted = place.abort(upload)
    open_still = place.parts_of(upload) != GONE
    visible = place.head(key) == "200"
    pause(SETTLE_SECONDS)
    later = place.head(key) == "200"
    place.delete(key)
    if open_still:
        return f"neither: the upload is open (complete {told}, abort {aborted})"
    if visible != later:
        return "both: aborted, and visible later" if later else "visible, and gone later"
    if told == "200":
        return "completed" if visible else "neither: completed, and nothing is visible"
    # botocore asked again after an answer that was lost or an error: the first try had succeeded
    if visible and not repeated:
        return f"both: refused with {told}, and visible"
    return "completed" if visible else "aborted"


def _many_parts(world: World, key: str) -> Upload:
    place = world.place
    upload = place.start(key, None)
    with ThreadPoolExecutor(COPIERS) as pool:
        numbers = range(1, world.parts + 1)
        parts = tuple(pool.map(lambda number: place.copy_part(upload, number, "part"), numbers))
    return Upload(key, upload.upload_id, parts)


_ABORT_RACE = {"how each race ends": Case(("completed", "aborted"))}

PROBES: tuple[Probe[World], ...] = (
    Probe(
        "abort-race",
        "an abort and a completion at once: the one or the other",
        ("A4",),
        ABORTS,
        _ABORT_RACE,
        _abort_race,
        Cost(requests=1, sent=PART_BYTES),
        Cost(requests=PARTS + 12, copied=PARTS * PART_BYTES),
    ),
)
