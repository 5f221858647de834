"""Draws docs/pictures/pipeline.svg and speed.svg: `make pictures`."""

import re
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / "docs" / "pictures"
FIGURES: Final = ROOT / "bench" / "results" / "committers.md"
COLUMN: Final = 112  # of the pipeline's picture
INK, GREY, BLUE, GREEN, SAND = "#1f2933", "#8a94a0", "#2563a8", "#5a9367", "#f3f5f8"


def picture(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    """An SVG on a white card, so that it is legible on a dark page as well."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'width="{max(width, 640)}" font-family="Helvetica, Arial, sans-serif" font-size="13" '
        f'fill="{INK}">'
    )
    arrow = (
        '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        f'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="{INK}"/></marker></defs>'
    )
    card = f'<rect width="{width}" height="{height}" rx="8" fill="white"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", arrow, card, *parts, "</svg>\n"])


def text(x: float, y: float, words: str, anchor: str = "start", style: str = "") -> str:
    """A line of text."""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" {style}>{escape(words)}</text>'


def rect(x: float, y: float, width: float, height: float, style: str) -> str:
    """A rectangle; its style is attributes of SVG."""
    size = f'width="{width:g}" height="{height:g}"'
    return f'<rect x="{x:g}" y="{y:g}" {size} rx="4" {style}/>'


def box(column: float, y: int, columns: int, lines: tuple[str, ...]) -> Iterable[str]:
    """A box as wide as so many columns; the first of its lines is bold."""
    x, width = _left(column), columns * COLUMN - 8
    yield rect(x, y, width, 20 + 16 * len(lines), f'fill="white" stroke="{BLUE}"')
    for number, words in enumerate(lines):
        style = 'font-weight="bold"' if number == 0 else 'font-size="12"'
        yield text(x + width / 2, y + 20 + 17 * number, words, "middle", style)


def _left(column: float) -> float:
    return 20 + column * COLUMN


def arrow(x: float, y1: int, y2: int, number: int) -> Iterable[str]:
    """An arrow up or down with its number in the order of a job."""
    yield f'<path d="M{x:g} {y1} {x:g} {y2}" stroke="{INK}" fill="none" marker-end="url(#a)"/>'
    y = (y1 + y2) / 2
    yield f'<circle cx="{x:g}" cy="{y:g}" r="9" fill="{BLUE}"/>'
    yield text(x, y + 4, str(number), "middle", 'font-size="12" fill="white"')


def pipeline() -> str:
    """What a job writes, and what the pipeline does with it; as narrow as a phone."""
    parts: list[str] = []
    for y, height, title in ((8, 90, "Spark"), (132, 106, "S3 bucket"), (272, 106, "Pipeline")):
        parts += [rect(8, y, 464, height, f'fill="{SAND}"')]
        parts += [text(240, y + 20, title, "middle", 'font-size="14" font-weight="bold"')]
    for column, y, columns, lines in (
        (0, 38, 2, ("Tasks", "upload files, never complete")),
        (2, 38, 2, ("Driver", "asks, then waits")),
        (0, 162, 1, ("Data files", "at final keys,", "invisible")),
        (1, 162, 1, ("Manifests", "each task's", "open uploads")),
        (2, 162, 1, ("_request.json", "commit: these", "attempts count")),
        (3, 162, 1, ("_result.json", "committed,", "or why not")),
        (0, 302, 1, ("Lambda", "completes, or", "aborts, uploads")),
        (1, 302, 1, ("DynamoDB", "the ledger notes", "each manifest")),
        (2, 302, 1, ("Step Functions", "decide by one", "write")),
        (3, 302, 1, ("Lambda", "cleans up, and", "says it is done")),
    ):
        parts += box(column, y, columns, lines)
    spark, below, above, pipeline = 90, 162, 230, 302  # edges of boxes
    for number, (column, start, end) in enumerate(
        (
            (0, spark, below),
            (1, spark, below),
            (1, above, pipeline),
            (2, spark, below),
            (2, above, pipeline),
            (0, pipeline, above),
            (3, pipeline, above),
            (3, below, spark),
        ),
        start=1,
    ):
        parts += arrow(_left(column) + (COLUMN - 8) / 2, start, end, number)
    return picture(480, 386, "How a job is committed", parts)


# The jobs and the committers of the figures, in the words of a reader who knows none of them.
JOBS: Final = {
    "400 small files": "400 small files in 100 directories",
    "100 files": "100 files, 2,000,000 rows",
    "dynamic overwrite": "200 partitions overwritten",
    "one file": "One file, 1,000,000 rows",
    "40 tasks": "40 tasks, one file each",
}
COMMITTERS: Final = {
    "s3commit, the jar": ("s3commit, the jar", BLUE),
    "s3commit, write": ("s3commit, write()", BLUE),
    "S3A directory, tuned": ("S3A directory, tuned", GREEN),
    "S3A partitioned": ("S3A partitioned", GREEN),
    "S3A magic, tuned": ("S3A magic, tuned", GREEN),
    "S3A magic": ("S3A magic, defaults", GREEN),
    "FileOutputCommitter v1": ("Rename (Spark to 4.0)", GREY),
}


def seconds(page: str, job: str) -> dict[str, float]:
    """The median of a whole write by committer, behind 20 ms, for the job that begins so."""
    [section] = re.findall(rf"^### {job}[^\n]*\+20 ms\n(.+?)(?=^[#!]|\Z)", page, re.M | re.S)
    rows = re.findall(r"^\| ([^|]+?) \| ([\d.]+) \(", section, re.M)
    return {name: float(median) for name, median in rows}


def speed(page: str) -> str:
    """A panel for each job, each with a linear axis of its own."""
    parts: list[str] = []
    for number, (job, title) in enumerate(JOBS.items()):
        x, y = 16 + 470 * (number % 2), 16 + 168 * (number // 2)
        found = seconds(page, job)
        parts += [text(x, y + 16, title, style='font-size="15" font-weight="bold"')]
        shown = [(*COMMITTERS[name], found[name]) for name in COMMITTERS if name in found]
        for row, (name, colour, took) in enumerate(shown):
            top, length = y + 26 + 20 * row, 220 * took / max(one[2] for one in shown)
            parts += [text(x + 156, top + 12, name, "end")]
            parts += [rect(x + 164, top, length, 15, f'fill="{colour}"')]
            parts += [text(x + 170 + length, top + 12, f"{took:.1f} s")]
    for row, words in enumerate(
        (
            "Seconds from the start of a write to its commit.",
            "Shorter is better.",
            "Each panel has a linear axis of its own, from zero.",
            "Medians of three rounds; one if it took over a minute.",
            "Every response of the server takes 20 ms longer.",
            f"Run of {re.findall(r'; (20..-..-..)T', page)[0]}, two cores, not on AWS.",
        )
    ):
        parts += [text(506, 388 + 20 * row, words)]
    return picture(960, 520, "How long a whole write takes", parts)


def main() -> None:
    """Write both pictures."""
    (FOLDER / "pipeline.svg").write_text(pipeline())
    (FOLDER / "speed.svg").write_text(speed(FIGURES.read_text()))


if __name__ == "__main__":
    main()
