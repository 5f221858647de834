"""The command: what it says before, the table, its exit codes, and that it leaves nothing."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError
from click.testing import CliRunner, Result

from s3commit.cli.app import app
from s3commit.cli.probe import conditions, pipeline, run, tables, uploads
from s3commit.cli.probe.model import Answers, Case, Probe, Run, Verdict
from s3commit.cli.probe.place import Place, answer_of
from s3commit.cli.probe.telling import WIDTH
from s3commit.cli.probe.world import Given, World

FEW = tuple(
    each
    for each in (*conditions.PROBES, *uploads.PROBES, *tables.PROBES, *pipeline.PROBES)
    if each.name in {"conditional-put", "conditional-put-versioned", "kms", "alarm", "checksums"}
)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick ones."""
    monkeypatch.setattr(run, "PROBES", FEW)


def call(world: World, *more: str, exit_code: int = 0) -> Result:
    """The command at the world's destination, without its options."""
    result = CliRunner().invoke(app, ["doctor", "--probe", world.given.destination.uri, *more])
    assert result.exit_code == exit_code, result.output
    return result


@pytest.mark.usefixtures("few")
def test_it_says_what_it_will_do_where_and_for_how_much(moto_world: World) -> None:
    bucket = moto_world.given.destination.bucket
    told = call(moto_world, "--versioned-bucket", f"{bucket}-versioned").stderr.splitlines()
    assert told[0].startswith(f"probes in s3://{bucket}/a/b/s3commit-probe-")
    assert told[1].startswith(f"probes in s3://{bucket}-versioned/a/b/s3commit-probe-")
    assert told[2] == (
        "takes some minutes and at most 50 S3 requests and 15 deletes; sends 0 B, copies 0 B"
        " within S3; costs"
        " less than 0.0003 USD (us-east-1)"
    )
    assert told[3] == "deletes all of it at the end, also if interrupted"
    assert told[-1] == "cleaning up"


@pytest.mark.usefixtures("few")
def test_the_table_fits_a_terminal_and_names_what_was_not_probed(moto_world: World) -> None:
    lines = call(moto_world).stdout.splitlines()
    sources = [line for line in lines if "://" in line]
    assert all(len(line) <= WIDTH for line in lines if line not in sources)
    assert (
        "  ok         put if none, an object there                412 PreconditionFailed" in lines
    )
    assert "  not probed give --versioned-bucket" in lines
    assert "  not probed give --key-role and --key" in lines
    assert "             expected: 404 NoSuchKey or 412 PreconditionFailed" in lines
    assert lines[-1] == "10 ok, 1 harmless, 14 not probed"


@pytest.mark.usefixtures("few")
def test_json_has_every_case_with_its_source(moto_world: World) -> None:
    document = json.loads(call(moto_world, "--output", "json").stdout)
    assert document["left"] == []
    assert document["verdicts"] == {"ok": 10, "harmless": 1, "not probed": 14}
    put = document["probes"][0]
    assert (put["name"], put["relies"]) == ("conditional-put", ["A2", "ADR 9"])
    assert put["source"].startswith("https://docs.aws.amazon.com/")
    assert put["cases"][1] == {
        "case": "put if none, an object there",
        "expected": ["412 PreconditionFailed"],
        "seen": "412 PreconditionFailed",
        "verdict": "ok",
    }


def test_the_whole_costs_less_than_a_cent(moto_world: World) -> None:
    world = World(moto_world.given, moto_world.environment)
    everything = dict.fromkeys([each.name for each in run.PROBES], "")
    assert 0.003 < run.cost_of(world, everything).price < 0.01


def test_a_difference_that_matters_is_exit_code_1(
    moto_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = replace(FEW[0], cases=tuple(Case(each.name, ("never",)) for each in FEW[0].cases))
    monkeypatch.setattr(run, "PROBES", (wrong,))
    result = call(moto_world, exit_code=1)
    assert result.stderr.splitlines()[-1] == (
        "error: not as correctness needs it: DIFFERS: conditional-put"
    )
    assert "8 DIFFERS" in result.stdout


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_leaves_nothing(
    moto_world: World, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    def interrupted(world: World, _place: Place) -> Answers:
        world.items.client.update_item(**world.items.take("x", 1))
        for place in world.places:
            place.put("object")
            place.delete("object")
            place.put("object")
            place.start("open")
        yield "1"
        signal.raise_signal(number)

    one = Probe("x", "x", (), "", (Case("x", ("1",)),), interrupted)
    monkeypatch.setattr(run, "PROBES", (one,))
    given = moto_world.given
    options = ["--versioned-bucket", str(given.versioned_bucket), "--table", str(given.table)]
    result = call(moto_world, *options, exit_code=130)
    assert "cleaning up" in result.stderr
    for bucket in (given.destination.bucket, given.versioned_bucket):
        s3: Any = moto_world.s3
        assert "Versions" not in s3.list_object_versions(Bucket=bucket)
        assert "DeleteMarkers" not in s3.list_object_versions(Bucket=bucket)
        assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)
    assert moto_world.client("dynamodb").scan(TableName=given.table)["Items"] == []


def test_what_could_not_be_deleted_is_named(
    moto_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leaving(world: World, _place: Place) -> Answers:
        world.place.put("kept/object")
        world.kept = "kept/"
        yield "1"

    one = Probe("x", "x", (), "", (Case("x", ("1",)),), leaving)
    monkeypatch.setattr(run, "PROBES", (one,))
    told = call(moto_world, exit_code=1).stderr.splitlines()[-1]
    assert told.startswith("error: 1 thing could not be deleted; delete by hand: s3://")
    assert told.endswith("/kept/object")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--key-role", "arn:aws:iam::1:role/x"), "--key-role and --key belong together"),
        (("--versioned-bucket", "PLAIN"), "has no versioning: give one that has"),
        (("--machine-role", "probes"), "--machine-role is an ARN"),
        (("--name", "dev"), "--name, --bucket, --role and --prefix are for the checks"),
    ],
)
def test_what_does_not_fit_is_usage_and_nothing_is_done(
    moto_world: World, options: tuple[str, str], told: str
) -> None:
    bucket = moto_world.given.destination.bucket
    given = [option.replace("PLAIN", bucket) for option in options]
    result = call(moto_world, *given, exit_code=2)
    assert told in result.stderr
    assert "probes in" not in result.stderr


def test_a_bucket_that_is_not_there_is_one_line_and_nothing_is_done(moto_world: World) -> None:
    result = CliRunner().invoke(app, ["doctor", "--probe", "s3://no-such-bucket/t/"])
    assert result.exit_code == 1
    assert moto_world.requests == 0
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: looking at the buckets: Not Found")


def test_a_right_that_lacks_is_no_answer(moto_world: World) -> None:
    def denied(**_request: Any) -> Any:
        said = {"Error": {"Code": "AccessDenied", "Message": "no"}, "ResponseMetadata": NO}
        raise ClientError(said, "PutObject")  # type: ignore[arg-type]

    cases = (Case("x", ("200",)), Case("y", ("200",)))
    one = Probe("x", "x", (), "", cases, denied_by(denied))
    row, other = run._probed(one, moto_world)
    assert (row.verdict, row.seen) == (Verdict.FAILED, "x: no (AccessDenied)")
    assert other.verdict is Verdict.FAILED


def denied_by(call: Callable[..., Any]) -> Run:
    """A probe's function that asks what it may not."""

    def asking(_world: World, _place: Place) -> Answers:
        yield answer_of(call)

    return asking


def test_an_option_of_the_probes_alone_is_usage_without_them() -> None:
    result = CliRunner().invoke(app, ["doctor", "--machine-role", "arn:aws:iam::1:role/x"])
    assert result.exit_code == 2
    assert result.stderr == "error: --machine-role goes with --probe URI; nothing was checked\n"


class Alarms:
    """CloudWatch, as far as the probe asks it; moto has no history of alarms."""

    def __init__(self, summary: str) -> None:
        self.summary = summary
        self.states: list[str] = []
        self.asked = 0

    def describe_alarms(self, **asked: Any) -> Any:
        assert asked == {"AlarmNames": ["JobsFailed"]}
        alarm = {"StateValue": "OK", "AlarmActions": ["arn:aws:sns:topic"]}
        return {"MetricAlarms": [alarm]}

    def set_alarm_state(self, **said: str) -> None:
        assert said["AlarmName"] == "JobsFailed"
        assert "a test" in said["StateReason"]
        self.states.append(said["StateValue"])

    def describe_alarm_history(self, **asked: Any) -> Any:
        assert (asked["AlarmName"], asked["HistoryItemType"]) == ("JobsFailed", "Action")
        assert asked["StartDate"] == BEGAN
        self.asked += 1
        return {"AlarmHistoryItems": [{"HistorySummary": self.summary}] * (self.asked >= 3)}


NO = {"HTTPStatusCode": 403, "RetryAttempts": 0}
BEGAN = datetime(2026, 11, 21, 22, 7, 22, tzinfo=UTC)


class Quick:
    """A clock that whoever sleeps moves on."""

    def __init__(self) -> None:
        self.now = BEGAN.timestamp()

    def epoch(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def new_id(self) -> str:
        return "7c9e6679-7425-40de-944b-e07fc1f90ae7"

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(
    ("summary", "told"),
    [
        ("Successfully executed action arn:aws:sns:topic", "succeeded (2.0 s after the alarm)"),
        ("Failed to execute action arn:aws:sns:topic", "failed (2.0 s after the alarm)"),
        ("", "failed (2.0 s after the alarm)"),
    ],
)
def test_an_alarm_is_set_off_and_back(
    moto_world: World, monkeypatch: pytest.MonkeyPatch, summary: str, told: str
) -> None:
    alarms = Alarms(summary)
    world = World(Given(moto_world.given.destination, alarm="JobsFailed"), Quick())
    monkeypatch.setattr(World, "client", lambda _world, _service: alarms)
    (one,) = [each for each in pipeline.PROBES if each.name == "alarm"]
    actions, first = run._probed(one, world)
    assert actions.seen == "some"
    assert first.seen == told
    assert alarms.states == ["ALARM"]
    assert world.clean() == []
    assert alarms.states == ["ALARM", "OK"]
