"""Figures, each with the baseline of the same run, and how they are shown and kept."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Sample:
    """The repetitions of one measurement, at least one."""

    values: tuple[float, ...]

    @property
    def least(self) -> float:
        """The smallest value: the repetition that was disturbed least."""
        return min(self.values)

    @property
    def median(self) -> float:
        """The value in the middle."""
        return statistics.median(self.values)

    def text(self) -> str:
        """``1.02 / 1.10 / 1.31``: least, median, greatest."""
        return " / ".join(_number(one) for one in (self.least, self.median, max(self.values)))

    def document(self) -> dict[str, Any]:
        """For the JSON file."""
        return {
            "min": round(self.least, 4),
            "median": round(self.median, 4),
            "max": round(max(self.values), 4),
            "runs": len(self.values),
        }


@dataclass(frozen=True, slots=True)
class Figure:
    """One measurement beside its baseline. The ratio is the medians'.

    ``goal`` bounds the ratio, ``limit`` the median itself; both None: for information.
    """

    benchmark: str
    what: str
    unit: str
    measured: Sample
    baseline: str
    against: Sample
    goal: float | None = None
    limit: float | None = None

    @property
    def ratio(self) -> float:
        """The measured median over the baseline's."""
        return self.measured.median / self.against.median

    @property
    def least_ratio(self) -> float:
        """The measured minimum over the baseline's: what is left when both were undisturbed."""
        return self.measured.least / self.against.least

    @property
    def missed(self) -> bool:
        """Whether the figure has a goal and misses it."""
        over = self.goal is not None and self.ratio > self.goal
        return over or (self.limit is not None and self.measured.median > self.limit)

    @property
    def verdict(self) -> str:
        """``<= 1.5 met``, or nothing for a figure without a goal."""
        if self.goal is None and self.limit is None:
            return ""
        wanted = f"ratio <= {self.goal:g}" if self.goal is not None else f"<= {self.limit:g}"
        return f"{wanted} {'MISSED' if self.missed else 'met'}"

    def document(self) -> dict[str, Any]:
        """For the JSON file."""
        return {
            "benchmark": self.benchmark,
            "what": self.what,
            "unit": self.unit,
            "measured": self.measured.document(),
            "baseline": {"what": self.baseline} | self.against.document(),
            "ratio": round(self.ratio, 3),
            "ratioOfMinima": round(self.least_ratio, 3),
            "goal": self.verdict or None,
        }


def show(figures: Iterable[Figure], console: Console) -> None:
    """Print a table for each benchmark, with its baseline in the title."""
    console.print("min / median / max; the ratio is of the medians (of the minima)", markup=False)
    for (benchmark, baseline), group in groupby(figures, lambda one: (one.benchmark, one.baseline)):
        table = Table(title=f"{benchmark}; baseline: {baseline}", title_justify="left")
        for title in ("what", "measured", "baseline", "ratio", "goal"):
            table.add_column(title, overflow="fold")
        for figure in group:
            table.add_row(
                f"{figure.what} [{figure.unit}]".replace("[", "\\["),
                figure.measured.text(),
                figure.against.text(),
                f"{figure.ratio:.2f} ({figure.least_ratio:.2f})",
                figure.verdict,
                style="bold red" if figure.missed else None,
            )
        console.print(table)


def _number(value: float) -> str:
    return (
        f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"
    )
