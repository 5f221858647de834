"""``s3commit local up`` and ``demo``: what they hand on, and what they say if it is missing."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from s3commit.local.errors import LocalRuntimeError
from tests.cli.support import Desk


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The calls of the runtime, of the synthesis and of the demo."""
    made: list[tuple[Any, ...]] = []

    def synthesize(project: Path, out: Path) -> Path:
        made.append(("synthesize", project, out))
        return out

    def run_foreground(assembly: Path, port: int, bucket: str | None, *, verbose: bool) -> None:
        made.append(("run", assembly, port, bucket, verbose))

    def run_demo(*, keep: bool, project: Path, pace: float) -> int:
        made.append(("demo", keep, project, pace))
        return 3

    for name, function in {
        "s3commit.local.server": run_foreground,
        "s3commit.local.synth": synthesize,
        "s3commit.cli.demo.run": run_demo,
    }.items():
        module = ModuleType(name)
        setattr(module, function.__name__, function)
        monkeypatch.setitem(sys.modules, name, module)
    return made


def test_up_synthesizes_the_project_and_serves_it(
    desk: Desk, calls: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    desk.run("local", "up", "--project", str(tmp_path), "--port", "4566", "--bucket", "lake")
    out = tmp_path / ".s3commit" / "assembly"
    assert calls == [("synthesize", tmp_path, out), ("run", out, 4566, "lake", False)]


def test_up_serves_an_assembly_as_it_is(
    desk: Desk, calls: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    desk.run("local", "up", "--assembly", str(tmp_path), "--verbose")
    assert calls == [("run", tmp_path, 0, None, True)]


def test_what_the_runtime_can_not_do_is_one_line(
    desk: Desk, calls: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: Any) -> Path:
        raise LocalRuntimeError("/tmp has no app.py")

    monkeypatch.setattr(sys.modules["s3commit.local.synth"], "synthesize", fail)
    line = desk.fails("local", "up", exit_code=1)
    assert line == "error: /tmp has no app.py [LOCAL_RUNTIME]"
    assert calls == []


@pytest.mark.parametrize("verb", [("local", "up"), ("demo",)])
def test_without_the_extra_it_says_what_to_install(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...]
) -> None:
    known = importlib.util.find_spec
    monkeypatch.setattr(
        "s3commit.cli.verbs.local.find_spec",
        lambda name: None if name == "moto" else known(name),
    )
    assert desk.fails(*verb, exit_code=1) == (
        "error: the embedded runtime needs moto; install: pip install 's3commit[local]'"
    )


def test_the_demo_ends_with_its_own_code(
    desk: Desk, calls: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    desk.run("demo", "--keep", "--project", str(tmp_path), "--pace", "0", exit_code=3)
    assert calls == [("demo", True, tmp_path, 0.0)]


def test_a_project_that_is_not_there_is_usage(desk: Desk) -> None:
    desk.fails("local", "up", "--project", "/nowhere", exit_code=2)
