"""Each row of the runbook's alarms: broken, the alarm fires and is seen, the command ends it."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from s3commit.cli.app import app
from s3commit.cli.page.server import make_page
from s3commit.cli.session import Session
from s3commit.local.foreground import UNSET, announced
from s3commit.local.rehearsal import FAULTS
from s3commit.local.runtime import LocalRuntime
from stacks.layers import ROOT
from tests.cli.support import run
from tests.e2e.conftest import commit, create_table
from tests.servers import until
from tests.stacks.synthesized import of_type, synthesize

PARAMETERS = {"catalogs": {"late/": "lake.late"}, "freshTables": "sales/=1"}
# The alarms that can't fire here, as docs/operations.md says.
IMPOSSIBLE = {
    "JobsTimedOut": "an execution has to run for a day",
    "SweepsNotCalled": "rights are not checked",
}


@dataclass
class Night:
    """A runtime whose clock of alarms and schedules can be put forward, and the commands on it."""

    project: Path
    runtime: LocalRuntime = field(init=False)
    ahead: timedelta = timedelta()
    session: Session = field(default_factory=Session)  # of all commands, which share its clients

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    @contextmanager
    def later(self, minutes: float) -> Iterator[None]:
        self.ahead = timedelta(minutes=minutes)
        try:
            yield
        finally:
            self.ahead = timedelta()

    def passes(self, minutes: float) -> bool:
        self.ahead += timedelta(minutes=minutes)
        return True

    def run(self, *arguments: str, exit_code: int = 0) -> str:
        return run(*arguments, exit_code=exit_code, session=self.session).output

    def json(self, *arguments: str) -> Any:
        """What a command prints, however it ends."""
        asked = [*arguments, "--output", "json"]
        return json.loads(CliRunner().invoke(app, asked, obj=self.session).stdout)

    def local(self, *arguments: str) -> None:
        self.run("local", *arguments, "--project", str(self.project))

    def status(self) -> Any:
        return self.json("status", "--all")

    def firing(self) -> set[str]:
        return {*self.status()["alarms"]}

    def jobs(self, state: str) -> list[dict[str, Any]]:
        """The rehearsal's jobs in that state."""
        found = [one for one in self.status()["jobs"] if one["destination"].endswith("rehearsal/")]
        return [one for one in found if one["state"] == state]

    def wait_for(self, state: str, count: int) -> list[dict[str, Any]]:
        return list(until(lambda: len(found := self.jobs(state)) >= count and found, state))

    def verdict(self, check: str) -> str:
        checks = self.json("doctor")["checks"]
        return next(str(one["verdict"]) for one in checks if one["check"] == check)

    def page(self) -> str:
        application, address = make_page(self.session, 8473)
        return application.test_client().get(address, follow_redirects=True).text

    def commit(self, table: str) -> None:
        commit(self.runtime.bucket, table, 1)

    def catalogs(self, *, on: bool) -> None:
        """Switch the event source of the function that notifies catalogs."""
        self.runtime.client("lambda").update_event_source_mapping(
            UUID=self.runtime.outputs["CatalogsMapping"], Enabled=on
        )


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    night = Night(tmp_path_factory.mktemp("night"))
    night.runtime = LocalRuntime(synthesize(**PARAMETERS).directory, now=night.now)
    with night.runtime, pytest.MonkeyPatch.context() as patch:
        for name in UNSET:
            patch.delenv(name, raising=False)
        for name, value in night.runtime.names().items():
            patch.setenv(name, value)
        with announced(night.project, night.runtime.names()):
            yield night


# What is done on the alarm


def resume_a_job(night: Night) -> None:
    (job,) = night.wait_for("SEALED", 1)
    assert (job["attention"], job["executionFailed"]) == (True, "PAGE_CHANGED")
    shown = night.run("show", job["jobId"])
    assert "shows no other committed job with key " in shown
    assert f"s3commit commit {job['jobId']}" in shown
    night.local("repair")
    night.run("commit", job["jobId"])
    until(lambda: night.run("show", job["jobId"]).count("COMMITTED"))


def redrive(night: Night, queue: str) -> None:
    """It is refused until the function can start."""
    assert f"in {queue}; fix the cause, then s3commit redrive" in night.run("status")
    assert night.verdict("dead letters") == "fix"
    assert "its function fails: Runtime.ImportModuleError" in night.run("redrive", exit_code=3)
    night.local("repair")
    assert " moved" not in night.run("redrive", "--dry-run")
    assert re.search(rf"{queue} +\d+  moved", night.run("redrive", queue))
    until(lambda: night.status()["deadLetters"] == {})
    assert night.verdict("dead letters") == "ok"


def redrive_a_request(night: Night) -> None:
    before = len(night.jobs("COMMITTED"))
    redrive(night, "Request")
    night.wait_for("COMMITTED", before + 1)


def raise_the_quota(night: Night) -> None:
    before = len(night.jobs("COMMITTED"))
    night.local("repair")
    night.wait_for("COMMITTED", before + 3)


def notify_again(night: Night) -> None:
    assert night.verdict("notifications") == "fix"
    night.local("repair")
    assert night.verdict("notifications") == "ok"
    assert night.json("sweep")["failed"] == 0
    assert "4 ABORTED" not in night.run("status", "--all")


def pause(night: Night) -> None:
    night.run("pause")


def delete_documents(night: Night) -> None:
    """The client is stopped, and what it has left is deleted."""
    s3, bucket = night.runtime.client("s3"), night.runtime.bucket
    for one in s3.list_objects_v2(Bucket=bucket, Prefix="rehearsal/refused/")["Contents"]:
        s3.delete_object(Bucket=bucket, Key=one["Key"])


def lose_the_catalogs_time(night: Night) -> None:
    night.catalogs(on=False)
    night.commit("late")


def fail_at_the_catalog(night: Night) -> None:
    """The table is not in the catalog. The commit stands, and the job says so."""
    sqs = night.runtime.client("sqs")
    (url,) = [one for one in sqs.list_queues()["QueueUrls"] if "CatalogsQueue" in one]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "1"})
    night.catalogs(on=True)


def create_the_table(night: Night) -> None:
    glue = night.runtime.client("glue")
    create_table(glue, night.runtime.bucket, "late")
    asked = {"DatabaseName": "lake", "TableName": "late"}
    job = next(one for one in night.status()["jobs"] if one["destination"].endswith("/late/"))
    show = partial(night.json, "show", f"{job['destination']}__magic_job-{job['jobId']}/")
    assert show()["problems"][0].startswith(
        "table lake.late of the catalog was not notified of this job: "
    )
    night.run("redrive")
    until(lambda: show()["problems"] == [])
    until(lambda: glue.get_partitions(**asked)["Partitions"])


@dataclass(frozen=True)
class Walk:
    """``after`` minutes the alarms fire."""

    alarms: tuple[str, ...]
    happens: Callable[[Night], object]
    fix: Callable[[Night], object]
    after: float = 0

    def __str__(self) -> str:
        return self.alarms[0]


def broken(fault: str, fix: Callable[[Night], object], **more: Any) -> Walk:
    return Walk(FAULTS[fault].fires, lambda night: night.local("break", fault), fix, **more)


WALKS = [
    broken("stuck-job", resume_a_job),  # the first thing that happens in this runtime
    broken("dead-function", partial(redrive, queue="Ingest")),
    broken("dead-letter", redrive_a_request),
    broken("throttled-account", raise_the_quota, after=20),
    broken("lost-events", notify_again),
    broken("refused-documents", delete_documents),
    # Later than any sweep that an earlier walk, with the clock put forward, has seen.
    Walk(("SweepsMissing",), pause, lambda night: night.run("resume"), after=14 * 24 * 60),
    Walk(("TableStale-sales/",), lambda _: None, lambda night: night.commit("sales"), after=61),
    Walk(("CatalogsBacklog",), lose_the_catalogs_time, fail_at_the_catalog, after=92),
    Walk(("CatalogsDeadLetters",), lambda _: None, create_the_table),
]


@pytest.mark.parametrize("walk", WALKS, ids=str)
def test_an_alarm_fires_is_seen_and_ends_by_the_runbooks_command(night: Night, walk: Walk) -> None:
    names = {*walk.alarms}
    walk.happens(night)
    with night.later(walk.after):
        until(lambda: names <= night.firing(), "the alarm")
        said, page = night.run("status"), night.page()
        for name in names:
            assert re.search(rf"^alarms: .*\b{name}", said, re.MULTILINE), said
            assert f"Alarm {name}</strong>" in page
        assert night.verdict("alarms") == "fix"
        walk.fix(night)
        until(lambda: night.passes(minutes=10) and not names & night.firing(), "that it ends")


def test_every_alarm_of_the_runbook_is_walked_or_said_to_be_impossible() -> None:
    alarms = of_type(synthesize(**PARAMETERS).pipeline, "AWS::CloudWatch::Alarm").values()
    named = {one["Properties"]["AlarmName"].removeprefix("S3CommitPipeline/") for one in alarms}
    walked = {name for walk in WALKS for name in walk.alarms}
    assert walked.isdisjoint(IMPOSSIBLE)
    assert named == walked | {*IMPOSSIBLE}
    page = (ROOT / "docs" / "operations.md").read_text().partition("\n## Rehearsal\n")[2]
    page = page.partition("\n## ")[0]
    for name, why in IMPOSSIBLE.items():
        assert re.search(rf"`{name}`: {why}", page)
