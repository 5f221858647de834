"""``python -m bench``: run the benchmarks and print their figures."""

from __future__ import annotations

import argparse
import functools
import json
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console

from bench.figures import Figure, show
from bench.machine import describe, load, summary

if TYPE_CHECKING:
    from bench.spark import Bench

BY_DEFAULT: Final = (
    *("write", "partitions", "memory", "latency"),
    *("cold", "start", "documents", "ledger"),
)
COMMITTERS: Final = "committers"  # alone, and not by default: it needs JDK 17, Maven and Go
ALONE: Final = ("read", COMMITTERS)  # Spark's JVM has the jars that it was started with
NAMES: Final = (*BY_DEFAULT, "commit", *ALONE)


def main(arguments: list[str] | None = None) -> int:
    """Run what is asked for; 1 if a goal is missed."""
    chosen = _parse(arguments)
    if chosen.only == [COMMITTERS]:
        return _committers(chosen)
    from bench import cold, commit, documents, latency, ledger, start, writing

    # A pipe has no width, and Rich would take 80.
    console = Console() if sys.stdout.isatty() else Console(width=120)
    machine = describe()
    console.print(summary(machine), markup=False, soft_wrap=True)
    settings = writing.Settings(chosen.rows, chosen.rounds, _say)
    figures: list[Figure] = []
    with ExitStack() as stack:
        # One for all: Spark's JVM has the environment that it was started with.
        bench = functools.cache(lambda: stack.enter_context(_bench()))
        runs: dict[str, Callable[[], list[Figure]]] = {
            "write": lambda: writing.write(bench(), settings),
            "partitions": lambda: writing.partitions(bench(), settings),
            "memory": lambda: writing.memory(bench(), settings),
            "latency": lambda: latency.latency(_say),
            "cold": lambda: cold.cold(_say),
            "start": lambda: start.start(_say),
            "documents": lambda: documents.documents(_say),
            "ledger": lambda: ledger.ledger(_say),
            "read": lambda: writing.read_back(bench(), settings),
            "commit": lambda: commit.commit(
                _say, chosen.files or 10_000, chosen.rounds, max(chosen.delay or [100])
            ),
        }
        stack.callback(show, figures, console)  # those that there are, if one fails
        for name in chosen.only or BY_DEFAULT:
            _say(f"{name} (load {load()})")
            figures += runs[name]()
    machine["loadAtEnd"] = load()
    if chosen.json:
        document = {"machine": machine, "figures": [figure.document() for figure in figures]}
        chosen.json.write_text(json.dumps(document, indent=2) + "\n")
    return int(any(figure.missed for figure in figures))


def _committers(chosen: argparse.Namespace) -> int:
    """Print the committers' tables; with ``--report`` keep them, and the plots."""
    from bench import committers, report, workloads

    scale = committers.Scale(
        chosen.files or 1_000,
        chosen.rows,
        chosen.rounds,
        chosen.delay or (0, 20),
        chosen.workload or workloads.NAMES,
        chosen.committer or (),
        chosen.commit_only,
    )
    machine = describe()
    with _bench() as bench:
        compared = []
        for one in committers.committers(bench, scale, _say):
            compared.append(one)
            print(report.table(one), flush=True)
    machine["loadAtEnd"] = load()
    if chosen.report:
        arguments = shlex.join(sys.argv[1:])
        report.keep(chosen.report, summary(machine), arguments, compared)
    return 0


@contextmanager
def _bench() -> Iterator[Bench]:
    from bench.spark import Bench

    with (
        tempfile.TemporaryDirectory(prefix="s3commit-bench-") as name,
        Bench.running(Path(name)) as bench,
    ):
        yield bench


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m bench", description="Measure s3commit beside its baselines (bench/README.md)."
    )
    parser.add_argument("--only", action="append", choices=NAMES, help="repeatable")
    parser.add_argument("--rows", type=_positive, default=8_000_000, help="default: 8,000,000")
    parser.add_argument("--rounds", type=_positive, default=3, help="of A B A B; default: 3")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures here too")
    parser.add_argument(
        "--files",
        type=_positive,
        help=f"small ones of commit and {COMMITTERS}; default: 10,000 and 1,000",
    )
    parser.add_argument(
        "--delay",
        type=int,
        action="append",
        metavar="MS",
        help=f"of S3, beside 0: for commit; default: 100. For {COMMITTERS}, repeatable: 0 and 20",
    )
    alone = parser.add_argument_group(f"--only {COMMITTERS}, which runs alone")
    alone.add_argument("--workload", action="append", metavar="NAME", help="default: all")
    alone.add_argument("--committer", action="append", metavar="PART", help="of a name; all")
    alone.add_argument("--commit-only", action="store_true", help="no delay before the commit")
    alone.add_argument("--report", type=Path, metavar="DIR", help="keep tables and plots here")
    chosen = parser.parse_args(arguments)
    for name in ALONE:
        if name in (chosen.only or ()) and len(chosen.only) > 1:
            parser.error(f"{name} runs alone")
    return chosen


def _positive(text: str) -> int:
    number = int(text.replace(",", "").replace("_", ""))
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def _say(line: str) -> None:
    print(f"bench: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
