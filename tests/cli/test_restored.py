"""A ledger that may not know all jobs: every verb that reads it says so before all else."""

import json
from collections.abc import Callable

import pytest

from s3commit.cli.app import app
from s3commit.cli.session import CHANGES
from s3commit.core.model.states import JobState
from tests.cli.account import Account
from tests.cli.browser import Browser
from tests.cli.support import JOB, MACHINE, SALES, TABLE, Desk
from tests.cli.test_environment import LIMITS
from tests.core.world import BUCKET, OTHER_JOB, job_directory

PLACE = ["--table", TABLE]
READING = {
    "status": PLACE,
    "log": [SALES, *PLACE],
    "show": [JOB, *PLACE],
    "fsck": [SALES, *PLACE],
    "abort": [OTHER_JOB, "--destination", SALES, *PLACE],
    "commit": [OTHER_JOB, "--destination", SALES, *PLACE],
    "undo": [JOB, "--dry-run", *PLACE],
    "sweep": [*LIMITS, "--state-machine", MACHINE, *PLACE],
    "redrive": ["--dry-run"],
    "doctor": ["--name", "NAME"],
}
# Of S3, a deployment's switches or another process: what they say is true whatever the ledger is.
NOT_READING = {"ls", "rescue", "uploads", "pause", "resume", "local"}


def restore(desk: Desk) -> None:
    """A job that is committed since; the backup has it COMMITTING."""
    directory = desk.requested_job()
    desk.world.plan.run_after("decide", lambda: backups.append(desk.world.ledger.backup()))
    backups: list[object] = []
    desk.world.run(directory)
    desk.world.ledger.restore(backups[0])  # type: ignore[arg-type]
    assert desk.world.record(directory).state is JobState.COMMITTING


def empty(desk: Desk) -> None:
    desk.committed_job()
    desk.world.ledger.lose()


def heal_half(desk: Desk) -> None:
    empty(desk)
    desk.world.ledger.healing(BUCKET, now=desk.world.clock.now())


SAYS: dict[Callable[[Desk], None], str] = {
    restore: "the ledger's table was restored from a backup",
    empty: "the ledger's table has no decided job yet",
    heal_half: f"the ledger's table is new, and may lack decided jobs of s3://{BUCKET}",
}


def test_each_verb_reads_the_ledger_or_has_no_need_to() -> None:
    assert {*READING, *NOT_READING, "ui"} == set(app.commands)


@pytest.mark.parametrize("to_ledger", SAYS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("verb", READING)
def test_each_verb_says_first_what_the_ledger_may_not_know(
    deployed: Account, desk: Desk, verb: str, to_ledger: Callable[[Desk], None]
) -> None:
    if verb != "doctor":
        desk.stacks.deploy()
        desk.session.deployments = desk.stacks.deployment
    desk.requested_job(OTHER_JOB)
    to_ledger(desk)
    desk.world.clock.advance(60)
    before = desk.world.all_keys(), desk.world.ledger.backup().parts()
    typed = [deployed.name if one == "NAME" else one for one in READING[verb]]
    is_refused = to_ledger is restore and verb in CHANGES
    for output in ("text", "json"):
        desk.session.trusted.clear()
        desk.session.out.warning = ""
        result = desk.run_any(verb, *typed, "--output", output)
        first = result.stderr.splitlines()[0]
        begins = "Error" if is_refused else "Warning"
        assert first.startswith(f"{begins}: {SAYS[to_ledger]}"), result.output
        assert "did not write it" not in result.output
        if is_refused:
            assert (result.exit_code, result.stdout) == (1, "")
            assert first.endswith("[LEDGER_RESTORED]; nothing was changed")
    if is_refused or verb not in CHANGES:  # a reader's rights are enough
        assert (desk.world.all_keys(), desk.world.ledger.backup().parts()) == before
    if result.stdout:
        assert json.loads(result.stdout)["warning"] == f"{first.removeprefix('Warning: ')}"


def test_of_a_restored_ledger_s3_and_doctor_say_more(desk: Desk, deployed: Account) -> None:
    restore(desk)
    assert desk.shown()["state"] == JobState.COMMITTED
    assert [job["state"] for job in desk.json("log", SALES, *PLACE)["jobs"]] == ["COMMITTED"]
    world, undecided = desk.world, job_directory(OTHER_JOB)
    world.ask(undecided)
    assert desk.json("show", undecided.uri, *PLACE)["next"] == [
        "the ledger knows how far it is: deploy an empty one"
    ]
    verdict, text = deployed.ask()["ledger"]
    assert (verdict, "deploy with an empty table" in text) == ("fix", True)
    world.ledger.lose()
    world.heal()
    assert deployed.ask()["ledger"] == ("ok", f"table {TABLE} knows all decided jobs")


def test_the_page_says_it_until_the_table_is_another(desk: Desk, browser: Browser) -> None:
    restore(desk)
    assert SAYS[restore].replace("'", "&#39;") in browser.get("/")
    desk.world.ledger.lose()
    desk.world.heal()
    assert "restored" not in browser.get("/")
