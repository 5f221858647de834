"""The committers' results as tables in markdown, and as plots."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from bench.committers import LONG, Compared, Run

COLUMNS: Final = (
    "committer",
    "wall (s)",
    "ratio",
    "commit (s)",
    "CPU (s)",
    "requests",
    "memory (MB)",
)
LEAST_SHOWN: Final = 0.05  # seconds; a logarithm needs some
MEMORY: Final[tuple[Callable[[Run], float], ...]] = (
    lambda run: run.heap,
    lambda run: run.worker,
    lambda run: run.function,
)
PLOTS: Final[dict[str, Callable[[Run], float]]] = {
    "write": lambda run: run.wall,
    "commit": lambda run: run.commit,
}


def table(compared: Compared) -> str:
    """One workload behind one delay: medians, the wall time's spread, the ratio to the first."""
    lines = [f"### {compared.workload.title}, +{compared.delay} ms", ""]
    lines += [_row(COLUMNS), _row("---" for _ in COLUMNS)]
    first = next(iter(compared.runs.values()))
    for name, runs in compared.runs.items():
        walls = [run.wall for run in runs]
        lines.append(
            _row(
                (
                    name,
                    f"{_median(runs, PLOTS['write']):.1f} ({min(walls):.1f} to {max(walls):.1f})",
                    f"{_median(runs, PLOTS['write']) / _median(first, PLOTS['write']):.2f}",
                    f"{_median(runs, PLOTS['commit']):.1f}",
                    _sides(runs, ".1f", lambda run: run.cluster, lambda run: run.pipeline),
                    _sides(
                        runs,
                        ",.0f",
                        lambda run: sum(run.requests.values()),
                        lambda run: sum(run.pipeline_requests.values()),
                    ),
                    ", ".join(_megabytes(runs, of) for of in MEMORY),
                )
            )
        )
    return "\n".join(lines) + "\n"


def keep(folder: Path, machine: str, arguments: str, compared: Sequence[Compared]) -> None:
    """Write ``committers.md`` and its plots."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [
        "# The committers side by side\n",
        f'By `make bench ARGS="{arguments}"`; {machine}.\n',
        "Medians, with the least and the greatest wall time; the ratio is to the first line."
        " CPU and requests are of the cluster + of the pipeline. Memory is the largest peak of"
        f" heap, worker, function. Who took longer than {LONG} s ran once.\n",
    ]
    for delay, group in groupby(compared, lambda one: one.delay):
        workloads = list(group)
        for what, of in PLOTS.items():
            name = f"{what}-{delay}ms.svg"
            _plot(folder / name, f"{what}, +{delay} ms", workloads, of)
            parts.append(f"![{what}, +{delay} ms]({name})\n")
        parts += [table(one) for one in workloads]
    (folder / "committers.md").write_text("\n".join(parts))


def _plot(path: Path, title: str, compared: Sequence[Compared], of: Callable[[Run], float]) -> None:
    """Bars of seconds in groups, one group a workload; a logarithmic axis."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "s3commit"  # the same figures give the same file
    figure = Figure(figsize=(11, 5), layout="constrained")
    axes = figure.subplots()
    names = list(dict.fromkeys(name for one in compared for name in one.runs))
    width = 0.85 / len(names)
    for place, name in enumerate(names):
        found = [
            (group + place * width, max(_median(one.runs[name], of), LEAST_SHOWN))
            for group, one in enumerate(compared)
            if name in one.runs
        ]
        bars = axes.bar([at for at, _ in found], [high for _, high in found], width, label=name)
        axes.bar_label(bars, fmt="%.1f", fontsize=6, rotation=90, padding=2)
    axes.set_yscale("log")
    axes.set_ylabel("seconds")
    axes.set_xticks(
        [group + 0.425 - width / 2 for group in range(len(compared))],
        [one.workload.name for one in compared],
    )
    axes.set_title(title)
    axes.margins(y=0.15)
    figure.legend(loc="outside lower center", ncols=5, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def _sides(runs: Sequence[Run], form: str, *of: Callable[[Run], float]) -> str:
    """The median of the cluster, and of the pipeline where it has one."""
    sides = (f"{_median(runs, one):{form}}" for one in of)
    return " + ".join(side for side in sides if float(side.replace(",", "")))


def _megabytes(runs: Iterable[Run], of: Callable[[Run], float]) -> str:
    return f"{most / 1_000_000:.0f}" if (most := max(map(of, runs))) else "-"


def _median(runs: Iterable[Run], of: Callable[[Run], float]) -> float:
    return statistics.median(map(of, runs))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
