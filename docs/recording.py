"""Runs the demo and draws what it prints as docs/pictures/demo.svg: `make recording`.

The picture is an SVG that animates itself by CSS. The demo only appends lines, so each line is a
text that appears at its time, and all of them move up when the window is full. Where nothing is
animated, the last lines are shown; with them it also begins, for who sees its first frame alone.
"""

import subprocess
import sys
import time
from html import escape
from itertools import pairwise
from typing import Final

from docs import pictures

PICTURE: Final = pictures.FOLDER / "demo.svg"
DEMO: Final = pictures.ROOT / "examples" / "demo.py"
LONGEST_WAIT: Final = 2.0  # seconds; who looks on has seen by then that it takes a while
LAST_SECONDS: Final = 8.0  # the whole text stays for so long, then it begins anew
FIRST_SECONDS: Final = 4.0  # of these, before the first time
ROWS, WIDTH, MARGIN, LEADING = 22, 960, 24, 20
PAPER, WORDS, GOOD = "#1f2933", "#e4e7eb", "#8fd19e"

Line = tuple[float, str]


def record(command: list[str]) -> list[Line]:
    """What the command prints, line by line, with the seconds since its start.

    Raises `subprocess.CalledProcessError` if it fails.
    """
    begun = time.monotonic()
    lines: list[Line] = []
    with subprocess.Popen(  # noqa: S603 - our own
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout or ():
            if "http://" not in line:  # an address of this run, with its token
                lines.append((time.monotonic() - begun, line.rstrip()))
            sys.stdout.write(line)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return lines


def shorten(lines: list[Line]) -> list[Line]:
    """The same lines, none of them later than `LONGEST_WAIT` after the line before it."""
    moment, shortened = 0.0, []
    for (before, _), (now, words) in pairwise([(0.0, ""), *lines]):
        moment += min(now - before, LONGEST_WAIT)
        shortened.append((moment, words))
    return shortened


def draw(command: str, lines: list[Line]) -> str:
    """The recording: lines with the seconds at which they were printed, below the command."""
    shown = [(0.0, f"$ {command}"), *shorten(lines)]
    period = shown[-1][0] + LAST_SECONDS
    height = 2 * MARGIN + LEADING * (ROWS + 2)
    rules, texts, moves = [], [], []
    for number, (moment, words) in enumerate(shown):
        share = f"{100 * moment / period:.2f}%"
        if number >= ROWS:
            moves.append(f"{share}{{transform:translateY({LEADING * (ROWS - 1 - number)}px)}}")
        if words:
            rules.append(f"@keyframes l{number}{{0%{{opacity:0}}{share},to{{opacity:1}}}}")
            texts.append(_text(number, words, f'style="animation-name:l{number}"'))
    note = (
        f"A recording of {lines[-1][0]:.0f} s."
        f" Waits of more than {LONGEST_WAIT:.0f} s are shortened to {LONGEST_WAIT:.0f} s."
    )
    end = LEADING * (ROWS - len(shown))
    rules += [
        f"@keyframes up{{0%{{transform:none}}{''.join(moves)}to{{transform:translateY({end}px)}}}}",
        f".up{{transform:translateY({end}px);animation-name:up}}",
        f".up,.up text{{animation-duration:{period:.2f}s;animation-timing-function:step-end;"
        f"animation-delay:{FIRST_SECONDS - period:.2f}s;"
        "animation-iteration-count:infinite}",
        "@media (prefers-reduced-motion){.up,.up text{animation:none!important}}",
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
            ' font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">',
            f"<title>What {escape(command)} prints</title>",
            f"<style>{''.join(rules)}</style>",
            f'<rect width="{WIDTH}" height="{height}" rx="8" fill="{PAPER}"/>',
            f'<svg x="{MARGIN}" y="{MARGIN}" width="{WIDTH - 2 * MARGIN}"'
            f' height="{LEADING * ROWS}"><g class="up">',
            *texts,
            "</g></svg>",
            f'<g transform="translate({MARGIN} {MARGIN})">{_text(ROWS + 1, note)}</g>',
            "</svg>\n",
        ]
    )


def _text(row: int, words: str, style: str = "") -> str:
    """A line of the terminal, whose spaces count."""
    colour = GOOD if words.lstrip().startswith("ok:") else WORDS
    place = f'y="{LEADING * row + 14}" fill="{colour}" xml:space="preserve"'
    return f"<text {place} {style}>{escape(words)}</text>"


def main() -> None:
    """Record the demo, and write its picture."""
    PICTURE.write_text(draw("make demo", record([sys.executable, str(DEMO)])))


if __name__ == "__main__":
    main()
