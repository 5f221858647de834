"""An abort against the running completion of many parts: the one or the other, never both."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from s3commit.cli.probe.model import Case, Cost, Seen, at_once, in_rounds, probe
from s3commit.cli.probe.s3_prefix import Upload
from s3commit.cli.probe.target import PART_BYTES, PARTS, Target
from s3commit.cli.probe.uploads import ABORTS, GONE

# How much later than the completion the abort is sent (negative: earlier), in seconds.
DELAYS = (-0.02, 0.0, 0.02, 0.05, 0.1, 0.3)
SETTLE_SECONDS = 1.0
COPIERS = 8
ABORTS_TRIED = 5


@probe(
    relies=("A4",),
    source=ABORTS,
    cases={"how each race ends": Case(("completed", "aborted"))},
    cost=Cost(requests=1, sent=PART_BYTES),
    each_round=Cost(requests=PARTS + 12, copied=PARTS * PART_BYTES),
)
@in_rounds("{rounds} races with {parts} parts of 5 MiB")
def abort_race(target: Target, number: int) -> Iterator[Seen]:
    """An abort and a completion at once: the one or the other.

    The abort meets the running completion of many parts: the file is there, or never will be.
    """
    if not number:
        target.prefix.put("part", bytes(PART_BYTES))
    yield Seen(
        "how each race ends", _raced(target, f"raced-{number}", DELAYS[number % len(DELAYS)])
    )


def _raced(target: Target, key: str, delay: float) -> str:
    at, pause = target.prefix, target.environment.sleep
    upload = _many_parts(target, key)

    def complete() -> tuple[str, int]:
        pause(max(0.0, -delay))
        return at.completed(upload)

    def abort() -> tuple[str, int]:
        pause(max(0.0, delay))
        return at.abort(upload), 0

    (told, repeated), (aborted, _) = at_once(complete, abort)
    # As a roll back does: abort until ListParts does not know it, then look what is visible.
    for _ in range(ABORTS_TRIED):
        if at.parts_of(upload) == GONE:
            break
        aborted = at.abort(upload)
    open_still = at.parts_of(upload) != GONE
    visible = at.head(key) == "200"
    pause(SETTLE_SECONDS)
    later = at.head(key) == "200"
    at.delete(key)
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


def _many_parts(target: Target, key: str) -> Upload:
    at = target.prefix
    upload = at.start(key, None)
    with ThreadPoolExecutor(COPIERS) as pool:
        numbers = range(1, target.parts + 1)
        parts = tuple(pool.map(lambda number: at.copy_part(upload, number, "part"), numbers))
    return Upload(key, upload.upload_id, parts)


PROBES = (abort_race,)
