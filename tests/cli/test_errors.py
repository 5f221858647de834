"""How the command ends when it can not do what was asked: one line, and the exit code."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from s3commit.cli.app import app
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    JobFailedError,
    JobRefusedError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    S3CommitError,
    TransientError,
)
from s3commit.core.ports.ledger import LostRaceError
from tests.cli.support import SALES, Desk

EXITS: list[tuple[S3CommitError, int, str]] = [
    (InvalidInputError("bad"), 1, "error: bad [INVALID_INPUT]"),
    (NotFoundError("gone"), 1, "error: gone [NOT_FOUND]"),
    (TransientError("slow"), 1, "error: slow [TRANSIENT]; try again"),
    (
        AccessError("no"),
        1,
        "error: no [ACCESS_DENIED]; see who you are with: aws sts get-caller-identity",
    ),
    (S3CommitError("odd"), 1, "error: odd"),
    (JobRefusedError("no"), 3, "error: no [REFUSED]"),
    (PreconditionError("else"), 3, "error: else [PRECONDITION_FAILED]"),
    (LostRaceError("lost", None), 3, "error: lost [LOST_RACE]"),
    (JobFailedError("over", code="X"), 3, "error: over [X]"),
    (OutcomeUnknownError("who knows"), 4, "error: who knows [OUTCOME_UNKNOWN]"),
]


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("error", "exit_code", "line"), EXITS, ids=str)
def test_each_error_has_its_exit_code_and_its_line(
    desk: Desk, error: S3CommitError, exit_code: int, line: str
) -> None:
    desk.world.plan.fail("list", error)
    assert desk.fails("ls", SALES, exit_code=exit_code) == line


def test_what_changes_something_says_that_it_did_not(desk: Desk) -> None:
    desk.world.plan.fail("list", AccessError("no")).fail("list", PreconditionError("else"), nth=2)
    assert "; nothing was changed; see who" in desk.fails("rescue", SALES, exit_code=1)
    assert desk.fails("rescue", SALES, exit_code=3).endswith("; nothing was changed")


def test_a_message_of_several_lines_is_one(desk: Desk) -> None:
    desk.world.plan.fail("list", S3CommitError("one\n  two\x1b[2J"))
    assert "one two\\x1b[2J" in desk.fails("ls", SALES, exit_code=1)


def test_what_nobody_expected_is_one_line_and_a_traceback_on_demand(desk: Desk) -> None:
    desk.world.plan.fail("list", KeyError("x"), times=None)
    assert desk.fails("ls", SALES, exit_code=1) == (
        "error: unexpected KeyError: 'x'; --verbose shows where"
    )
    told = desk.run("ls", SALES, "--verbose", exit_code=1).stderr
    assert told.startswith("Traceback (most recent call last):")
    assert told.splitlines()[-1] == "error: unexpected KeyError: 'x'"


@pytest.mark.parametrize(
    "arguments",
    [("lss",), ("ls",), ("ls", SALES, "--output", "xml"), ("--nope",), ("status", "--limit", "0")],
)
def test_usage_is_one_line_that_leads_to_the_help(desk: Desk, arguments: tuple[str, ...]) -> None:
    assert "; see: app" in desk.fails(*arguments, exit_code=2)


@pytest.mark.parametrize("arguments", [[], ["local"]])
def test_nothing_to_do_shows_the_help(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "Commands:" in result.stderr


@pytest.mark.parametrize("name", sorted(app.commands))
def test_every_verb_has_a_help_that_fits_80_columns(name: str) -> None:
    result = CliRunner().invoke(app, [name, "--help"])
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 84


def test_the_list_of_verbs_is_not_cut() -> None:
    result = CliRunner().invoke(app, ["--help"], terminal_width=80)
    assert "..." not in result.stdout.split("Commands:")[1]


def test_the_help_loads_nothing_that_is_slow() -> None:
    script = (
        "import sys; from s3commit.cli.app import app; app(['--help'], standalone_mode=False);"
        "slow = {'boto3', 'botocore', 'pynamodb', 'rich', 'moto', 'pyspark', 'pyarrow'};"
        "sys.exit(repr(slow & set(sys.modules)) if slow & set(sys.modules) else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_module_is_the_command() -> None:
    done = python("-m", "s3commit", "--version")
    assert (done.returncode, done.stdout) == (0, "s3commit, version 0.1.0\n")


def test_without_click_it_says_what_to_install() -> None:
    script = "import sys; sys.modules['click'] = None; from s3commit.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "error: the command needs click: pip install '.[cli]' in a checkout of s3commit\n"
    )


def test_no_terminal_no_colours(desk: Desk) -> None:
    desk.committed_job()
    assert "\x1b" not in desk.run("ls", SALES).stdout


@pytest.mark.parametrize("no_color", [True, False])
def test_no_color_turns_colours_off(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, no_color: bool
) -> None:
    desk.committed_job()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1") if no_color else monkeypatch.delenv("NO_COLOR", False)
    shown = desk.run("status", "--table", "ledger", "--all").stdout
    assert ("\x1b[32m" in shown) is not no_color
