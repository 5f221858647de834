"""A machine on which only some packages are installed: what pip would bring, and no more.

The packages are links into this environment's own, with their metadata; the interpreter is started
without this environment (`-S`), so whatever was not declared is not there.
"""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.servers import ran

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "layers" / "s3commit" / "python"


def declared(*extras: str) -> list[str]:
    """The requirements of pyproject.toml: the base's, and those of the extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    known = project["optional-dependencies"]
    return [*project["dependencies"], *(one for extra in extras for one in known[extra])]


def closure(requirements: Iterable[str]) -> set[str]:
    """The names of all distributions that pip would install for the requirements."""
    found: set[str] = set()
    asked: set[tuple[str, frozenset[str]]] = set()
    todo = [Requirement(text) for text in requirements]
    while todo:
        wanted = todo.pop()
        name = canonicalize_name(wanted.name)
        if (name, frozenset(wanted.extras)) in asked:
            continue
        asked.add((name, frozenset(wanted.extras)))
        if name == "s3commit":
            todo += map(Requirement, declared(*wanted.extras))
            continue
        found.add(name)
        extras = wanted.extras or {""}
        for text in distribution(name).requires or ():
            needed = Requirement(text)
            marker = needed.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
                todo.append(needed)
    return found


@dataclass(frozen=True)
class Machine:
    """Runs Python with this package and the linked ones alone."""

    packages: Path

    def run(
        self, code: str, *more: Path, module: str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run ``code``, or ``module`` with ``code`` as arguments. ``more`` is importable too."""
        arguments = ["-m", module, *code.split()] if module else ["-c", code]
        path = os.pathsep.join(map(str, [self.packages, PACKAGE, *more]))
        said = {**os.environ, "PYTHONPATH": path, **environment}
        return ran(sys.executable, "-S", "-B", *arguments, env=said)


def install(into: Path, requirements: Iterable[str]) -> Machine:
    """A machine with what the requirements bring."""
    for name in closure(requirements):
        found = distribution(name)
        tops = {Path(file).parts[0] for file in found.files or ()} - {"..", "__pycache__"}
        for top in tops:
            link = into / top
            if not link.exists():  # a namespace may be of several distributions
                link.symlink_to(Path(str(found.locate_file(top))).resolve())
    return Machine(into)


def modules_of(*packages: str) -> list[str]:
    """The names of all modules of the package below ``s3commit``, ``writer`` for example."""
    return sorted(
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        for package in packages
        for path in (PACKAGE / "s3commit" / package).rglob("*.py")
    )
