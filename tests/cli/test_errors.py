"""How the command ends when it can not do what was asked: one line, and the exit code."""

import re
import subprocess
import sys
from pathlib import Path

import click
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
from s3commit.version import __version__
from tests.cli.support import JOB, OTHER, SALES, TABLE, Desk
from tests.core.world import BUCKET, job_directory
from tests.docs.test_style import ROOT, of_python
from tests.servers import ran

EXITS: list[tuple[S3CommitError, int, str]] = [
    (InvalidInputError("bad"), 1, "bad [INVALID_INPUT]"),
    (NotFoundError("gone"), 1, "gone [NOT_FOUND]"),
    (TransientError("slow"), 1, "slow [TRANSIENT]; try again"),
    (AccessError("no"), 1, "no [ACCESS_DENIED]; check your identity: aws sts get-caller-identity"),
    (S3CommitError("odd"), 1, "odd"),
    (JobRefusedError("no"), 3, "no [REFUSED]"),
    (PreconditionError("else"), 3, "else [PRECONDITION_FAILED]"),
    (LostRaceError("lost", None), 3, "lost [LOST_RACE]"),
    (JobFailedError("over", code="X"), 3, "over [X]"),
    (OutcomeUnknownError("who knows"), 4, "who knows [OUTCOME_UNKNOWN]"),
]


@pytest.mark.parametrize(("error", "exit_code", "line"), EXITS, ids=str)
def test_each_error_ends_so(desk: Desk, error: S3CommitError, exit_code: int, line: str) -> None:
    desk.world.plan.fail("list", error)
    assert desk.fails("ls", SALES, exit_code=exit_code) == f"Error: {line}"


def test_what_changes_something_says_that_it_did_not(desk: Desk) -> None:
    desk.world.plan.fail("list", AccessError("no")).fail("list", PreconditionError("else"), nth=2)
    assert "; nothing was changed; check your identity" in desk.fails("rescue", SALES, exit_code=1)
    assert desk.fails("rescue", SALES, exit_code=3).endswith("; nothing was changed")


@pytest.mark.parametrize(
    "words",
    [
        ("show", JOB, "--table", TABLE),
        *((verb, JOB, "--table", TABLE, "--dry-run") for verb in ("undo", "commit", "abort")),
        ("undo", JOB, "--table", TABLE, "--back-to", "--dry-run"),
        *((verb, SALES) for verb in ("log", "ls", "fsck", "uploads", "rescue")),
        ("ls", SALES, "--files", JOB),
    ],
)
def test_a_bucket_that_is_gone_is_said(desk: Desk, words: tuple[str, ...]) -> None:
    desk.committed_job()
    gone = NotFoundError("The specified bucket does not exist", code="NO_BUCKET")
    for read in ("list", "list_uploads", "get", "first_bytes", "head"):
        desk.world.plan.fail(read, gone, times=None)
    assert "[NO_BUCKET]" in desk.fails(*words, exit_code=1)


def test_a_message_of_several_lines_is_one(desk: Desk) -> None:
    desk.world.plan.fail("list", S3CommitError("one\n  two\x1b[2J"))
    assert "one two\\x1b[2J" in desk.fails("ls", SALES, exit_code=1)


def test_i12_no_key_reaches_the_terminal_as_it_is(desk: Desk) -> None:
    """Who may write below a prefix must not write on the screen of who looks at it."""
    directory = desk.committed_job(files={f"\x9b2J\u202e-{JOB}.csv": b"x"})
    listed = desk.run("ls", SALES, "--files", JOB).stdout
    assert "\\x9b2J\\u202e-" in listed
    desk.world.store.put(BUCKET, "sales/\x9b]0;pwned.csv", b"x")
    checked = desk.run("fsck", SALES).stdout
    desk.open_job(OTHER)
    desk.world.request_abort(job_directory(OTHER), "\x1b[31m")
    shown = desk.run("show", OTHER, "--table", TABLE).stdout
    assert "reason \\x1b[31m" in shown
    everything = listed + checked + shown + desk.run("show", directory.uri).stdout
    assert not {"\x1b", "\x9b", "\u202e"} & set(everything)


def test_what_nobody_expected_has_its_traceback_and_ends_in_one_line(desk: Desk) -> None:
    desk.world.plan.fail("list", KeyError("x"))
    told = desk.run("ls", SALES, exit_code=1).stderr
    assert told.startswith("Traceback (most recent call last):")
    line = "Error: unexpected KeyError: 'x'; please report the lines above"
    assert told.splitlines()[-1] == line


WAYS = {"> /dev/full": "No space left on device", ">&-": "Bad file descriptor"}


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("asked", [["status", "--help"], ["--version"], ["local", "break", "-h"]])
def test_an_output_that_can_not_be_written_is_one_line(
    monkeypatch: pytest.MonkeyPatch, asked: list[str], way: str, unbuffered: str
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    done = redirected(way, *asked)
    line = f"the output could not be written ({WAYS[way]}); what was done stays done"
    assert done.stderr == f"Error: {line}\n"
    assert done.returncode == 1


def redirected(way: str, *asked: str) -> subprocess.CompletedProcess[str]:
    return ran("sh", "-c", f'"$@" {way}', "sh", sys.executable, "-m", "s3commit", *asked)


@pytest.mark.parametrize("way", ["2>&-", "2> /dev/full"])
@pytest.mark.parametrize("out", ["", *WAYS])
@pytest.mark.parametrize(("asked", "code"), [("--version", 0), ("no-such-verb", 2)])
def test_without_a_place_for_errors_the_exit_code_is_a_documented_one(
    way: str, out: str, asked: str, code: int
) -> None:
    """And no line that is not data is among the data."""
    done = redirected(f"{way} {out}", asked)
    printed = "" if out or code else f"s3commit, version {__version__}\n"
    assert (done.stdout, done.stderr) == (printed, "")
    assert done.returncode == (1 if code and "full" in way else code or int(out != ""))


NUMBERS = [
    (name, one.opts[0])
    for name, verb in app.commands.items()
    for one in verb.params
    if isinstance(one.type, click.IntRange)
]


@pytest.mark.parametrize(("verb", "option"), NUMBERS)
@pytest.mark.parametrize("number", [str(10**20), "-1", "0"])
def test_no_number_is_too_large_for_words(desk: Desk, verb: str, option: str, number: str) -> None:
    if (verb, number) == ("ui", "0"):
        return  # it serves
    desk.committed_job()
    place = {"log": [SALES], "commit": [JOB, "--table", TABLE], "status": ["--table", TABLE]}
    said = desk.run_any(verb, *place.get(verb, []), option, number)
    assert (said.exit_code in {0, 2, 3}, "Traceback" in said.stderr) == (True, False)


def test_without_click_it_says_what_to_install() -> None:
    script = "import sys; sys.modules['click'] = None; from s3commit.__main__ import main; main()"
    done = ran(sys.executable, "-c", script)
    assert done.returncode == 1
    assert done.stderr == (
        f"error: the command needs click: pip install 's3commit-{__version__}-py3-none-any.whl"
        "[cli]', or pip install '.[cli]' in a checkout of s3commit\n"
    )


def test_each_verb_with_an_output_has_json_for_short(desk: Desk) -> None:
    desk.committed_job()
    with_output = {
        name: {flag for one in verb.params for flag in one.opts} & {"--output", "--json"}
        for name, verb in app.commands.items()
    }
    assert {name for name, flags in with_output.items() if len(flags) != 2} == {"local"}
    asked = (["show", JOB, "--table", TABLE], ["status", "--all", "--table", TABLE])
    for verb in (*asked, *([name, SALES] for name in ("log", "ls", "fsck", "uploads"))):
        short, long = (desk.run_any(*verb, *how) for how in (["--json"], ["--output", "json"]))
        assert (short.stdout, short.exit_code) == (long.stdout, 0)
        assert verb[0] == "ls" or short.stdout[0] == "{"


@pytest.mark.parametrize("no_color", ["", "1"])
def test_no_color_turns_it_off(desk: Desk, monkeypatch: pytest.MonkeyPatch, no_color: str) -> None:
    desk.committed_job()
    monkeypatch.setenv("NO_COLOR", no_color)
    arguments = ["status", "--table", TABLE, "--all"]
    shown = CliRunner().invoke(app, arguments, obj=desk.session, color=True).stdout
    assert ("\x1b[32m" in shown) is not bool(no_color)


def test_what_python_says_names_a_flag_in_a_whole_command_alone() -> None:
    """A program has keywords, and can't give a flag; but Spark's, say, it can."""
    package = Path(ROOT, "layers", "s3commit", "python", "s3commit")
    ours = {name for verb in app.commands.values() for one in verb.params for name in one.opts}
    assert "--leave-removed" in ours
    found, whole = list[tuple[str, str]](), 0
    for path in package.rglob("*.py"):
        if path.relative_to(package).parts[0] not in {"cli", "local"}:
            for _, text in of_python(path.read_text()):
                for flag in re.finditer("--[a-z][a-z-]+", text):
                    named = re.search(r"s3commit [a-z]+[^`.;:,]*$", text[: flag.start()])
                    whole += bool(named)
                    found += [(path.name, text)] * (flag[0] in ours and not named)
    assert (found, whole > 2) == ([], True)
