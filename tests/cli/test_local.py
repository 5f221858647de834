"""``s3commit local up``: what it hands on, and what it says if something is missing."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import ANY, Mock, create_autospec

import pytest

from s3commit.cli.ui import page_beside
from s3commit.local.foreground import FILE, announced, greeting, run_foreground
from s3commit.local.rehearsal import FAULTS
from s3commit.version import __version__
from tests.cli.support import Desk
from tests.servers import ran


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """In place of the runtime: ``serve`` and ``synthesize``."""
    runtime = Mock(serve=create_autospec(run_foreground))
    runtime.synthesize.side_effect = lambda project: project / "assembly"
    monkeypatch.setattr("s3commit.local.foreground.run_foreground", runtime.serve)
    monkeypatch.setattr("s3commit.local.synth.assembly_for", runtime.synthesize)
    return runtime


def test_up_serves_the_assembly_of_the_project(desk: Desk, runtime: Mock, tmp_path: Path) -> None:
    desk.run("local", "up", "--project", str(tmp_path), "--port", "4566", "--bucket", "lake")
    how = {"versioned": False, "project": tmp_path, "verbose": False, "beside": ANY}
    runtime.serve.assert_called_once_with(tmp_path / "assembly", 4566, "lake", **how)
    assert runtime.serve.call_args.kwargs["beside"].func is page_beside


def test_up_serves_an_assembly_as_it_is(desk: Desk, runtime: Mock, tmp_path: Path) -> None:
    desk.run("local", "up", "--assembly", str(tmp_path), "--verbose", "--versioned")
    how = {"versioned": True, "project": Path(), "verbose": True, "beside": ANY}
    runtime.serve.assert_called_once_with(tmp_path, 0, None, **how)
    runtime.synthesize.assert_not_called()


def test_without_the_extra_it_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"flask": True, "waitress": True, "awslambdaric": True}
    monkeypatch.setattr("s3commit.cli.ui.find_spec", found.get)
    assert desk.fails("local", "up", exit_code=1) == (
        f"Error: the embedded runtime needs moto: pip install 's3commit-{__version__}-py3-none-any"
        ".whl[local]', or pip install '.[local]' in a checkout of s3commit"
    )


@pytest.mark.parametrize("on_path", [True, False])
def test_the_line_that_it_prints_when_it_is_up_works_in_any_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, on_path: bool
) -> None:
    """Without a checkout too; of one the command may stand in a virtual environment alone."""
    project = tmp_path / "it's here"
    project.mkdir()
    programs = tmp_path / "bin"
    programs.mkdir()
    if on_path:
        (programs / "s3commit").write_text(f'#!/bin/sh\nexec {sys.executable} -m s3commit "$@"\n')
        (programs / "s3commit").chmod(0o700)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    told = greeting("http://127.0.0.1:1", "lake", project)
    command = told.partition("In another terminal: ")[2].partition(". Ctrl-C")[0]
    assert ("-m s3commit" in command) is not on_path
    with announced(project, {"BUCKET": "lake"}):
        said = in_shell(f'{command}\nprintf "%s|" "$BUCKET"; command -v s3commit', Path("/"))
    found = programs if on_path else Path(sys.executable).parent
    assert (said.stdout, said.stderr) == (f"lake|{found / 's3commit'}\n", "")


HOSTILE = "it's $(touch pwned) `touch pwned`; \\ \"\n!"


def in_shell(script: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return ran("/bin/sh", "-c", script, cwd=cwd, env={**os.environ, **environment})


def test_a_shell_gets_the_values_as_they_are_whatever_they_are(tmp_path: Path) -> None:
    found = {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566", "BUCKET": HOSTILE}
    script = (
        f'eval "$({sys.executable} -m s3commit local env)"\n'
        'printf "%s|%s|%s" "$AWS_ENDPOINT_URL" "$BUCKET" "${AWS_PROFILE-none}"'
    )
    with announced(tmp_path, found) as first:
        done = in_shell(script, tmp_path, AWS_PROFILE="work")
    assert first == ""
    assert (done.stdout, done.stderr) == (f"http://127.0.0.1:4566|{HOSTILE}|none", "")
    assert [path.name for path in tmp_path.iterdir()] == [".s3commit"]


def test_without_a_runtime_a_shell_gets_nothing_to_run(desk: Desk, tmp_path: Path) -> None:
    line = desk.fails("local", "env", "--project", str(tmp_path), exit_code=1)
    assert line.startswith(
        f"Error: no runtime of {tmp_path} is running: start one with `s3commit local"
    )
    with announced(tmp_path, {"BUCKET": "lake"}):
        assert "export BUCKET=lake" in desk.run("local", "env", "--project", str(tmp_path)).stdout
    assert desk.fails("local", "env", "--project", str(tmp_path), exit_code=1) == line


def test_what_a_killed_runtime_left_behind_is_no_runtime(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / FILE).parent.mkdir()
    (tmp_path / FILE).write_text('{"BUCKET": "lake"}')
    assert "no runtime" in desk.fails("local", "env", "--project", str(tmp_path), exit_code=1)


def test_of_two_runtimes_the_first_is_found(desk: Desk, tmp_path: Path) -> None:
    with announced(tmp_path, {"BUCKET": "first"}):
        with announced(tmp_path, {"BUCKET": "second"}) as hidden:
            told = greeting("http://127.0.0.1:1", "lake", tmp_path, hidden)
            assert "does not find it: another runtime is up" in told and "eval" not in told
        assert "BUCKET=first" in desk.run("local", "env", "--project", str(tmp_path)).stdout


@pytest.mark.parametrize(
    ("fault", "undo"),
    [
        ("dead-letter", "s3commit local repair"),
        ("refused-documents", "aws s3 rm --recursive s3://$BUCKET/rehearsal/refused/"),
    ],
)
def test_a_fault_says_when_its_alarm_fires_and_what_undoes_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, fault: str, undo: str
) -> None:
    for name in ("s3commit.local.foreground.read_running", "s3commit.local.foreground.enter"):
        monkeypatch.setattr(name, Mock())
    monkeypatch.setattr("s3commit.cli.local.Rehearsal", Mock())
    monkeypatch.setitem(FAULTS, fault, replace(FAULTS[fault], happen=Mock()))
    told = desk.run("local", "break", fault).stderr
    assert told.startswith("alarms fire within twenty seconds, ")
    assert told.endswith(f"undo it: {undo}\n")
