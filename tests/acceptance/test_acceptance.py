"""The acceptance run, in small: an embedded runtime with another deployment is the account."""

import io
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from botocore.exceptions import ClientError

from acceptance import judged, things
from acceptance.__main__ import main
from acceptance.places import PARAMETERS, STANDS_IN, Aws, BrokenError, Embedded, NotSeenError
from acceptance.plan import dollars, minutes, plan
from acceptance.report import Report
from acceptance.run import BROKEN, CHECKS, NOT_SEEN, SEEN, Check, Result, Run, tried
from stacks.access import ACCESS
from stacks.config import DeployConfig
from tests.conftest import REGION
from tests.e2e.conftest import Deployed, runtime

ROOT = Path(__file__).parents[2]
NAME = "accept-00001a"
RECORDING = Path(__file__).with_name("recording")
# One of each kind; the others every night.
DAILY = {
    "a-table-by-write-table",
    "a-child-of-the-map-fails",
    "a-killed-driver",
    "the-sweep-finds-a-job",
    "an-undo",
    "keys-by-notifications",
    "rights-of-the-functions",
    "alarms-that-fire",
    "keys-by-eventbridge",
}
NOT_HERE = {
    "a-large-job-by-the-map",
    "a-child-of-the-map-fails",
    "the-dataset-of-the-map-is-missing",
    "rights-of-the-functions",
    "a-redeployment-beside-jobs",
    "keys-by-eventbridge",
}


@dataclass(frozen=True)
class Account:
    """The embedded runtime, and where a run leaves its report and the notes of its calls."""

    deployed: Deployed
    directory: Path

    def things(self) -> list[tuple[str, str, str]]:
        return sorted(things.found(self.deployed.client, ""))

    def run(self, *arguments: str, dies: str = "") -> int:
        """The command as a person types it; its exit code."""
        temporary = self.directory / "tmp"
        temporary.mkdir(exist_ok=True)
        environment = {
            **os.environ,
            "TMPDIR": str(temporary),
            "PYTHONPATH": os.pathsep.join([str(RECORDING), *sys.path]),
            "ACCEPTANCE_CALLS": str(self.directory / "calls"),
            "ACCEPTANCE_DIES": dies,
        }
        where = ["--endpoint", self.deployed.endpoint, "--report", str(self.directory)]
        command = [sys.executable, "-m", "acceptance", *where, "--name", NAME, *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, check=False, stdin=subprocess.DEVNULL
        )
        return done.returncode

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.directory / "acceptance_report.json").read_text())
        return found


@pytest.fixture(scope="module")
def deployed() -> Iterator[Deployed]:
    with runtime() as deployed:
        yield deployed


@pytest.fixture
def account(deployed: Deployed, tmp_path: Path) -> Account:
    return Account(deployed, tmp_path)


def only(*names: str) -> list[str]:
    return [word for name in names for word in ("--only", name)]


def test_a_run_reports_what_it_has_seen_and_leaves_nothing(account: Account) -> None:
    tried_here(account, [name for name in CHECKS if name in DAILY])


@pytest.mark.long
def test_a_runtime_is_started_for_a_run_that_has_none(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "acceptance", "--local", "--yes", *only("a-job-by-open-job")]
    subprocess.run([*command, "--report", str(tmp_path)], cwd=ROOT, check=True)
    report = json.loads((tmp_path / "acceptance_report.json").read_text())
    assert [one["verdict"] for one in report["results"]] == [SEEN]
    assert (report["place"], report["left"]) == ("the embedded runtime, on this machine", [])


@pytest.mark.long
def test_a_run_of_all_checks_asks_for_the_rights_of_its_policy(account: Account) -> None:
    calls = tried_here(account, list(CHECKS))
    used = {right for line in calls for right in rights(line)}
    in_time = {"states:StopExecution"}  # of what still runs at the end, if something does
    assert ALLOWED - used - in_time == NOT_HERE_CALLED


def tried_here(account: Account, names: list[str]) -> set[str]:
    """Run these checks; the calls that were made."""
    before = account.things()
    assert account.run("--yes", "--files", "30", *only(*names)) == 0
    assert account.things() == before
    report = account.report()
    assert [one["check"] for one in report["results"]] == names
    verdicts = {one["check"]: one["verdict"] for one in report["results"]}
    assert {name for name, verdict in verdicts.items() if verdict != SEEN} == NOT_HERE & {*names}
    assert set(verdicts.values()) == {SEEN, NOT_SEEN}
    assert all(one["detail"] for one in report["results"])
    assert (report["ok"], report["problem"], report["left"]) == (True, "", [])
    missing = [one["name"] for one in report["measures"] if one["seconds"] is None]
    assert missing == ["EVENT", "COLD"]  # by EventBridge, and what Lambda logs
    calls = {*(account.directory / "calls").read_text().splitlines()}
    assert {line for line in calls if not {*rights(line)} <= ALLOWED} == set()
    return calls


# The policy that docs/acceptance.md asks for


POLICY = json.loads((ROOT / "acceptance" / "policy.json").read_text())


def many(value: Any) -> list[Any]:
    return [value] if isinstance(value, str) else list(value)


ALLOWED = {action for one in POLICY["Statement"] for action in many(one["Action"])}
# What is asked of AWS alone: by the CDK, of stacks, of roles, and of logs.
NOT_HERE_CALLED = {
    "iam:SimulatePrincipalPolicy",
    "sts:AssumeRole",
    "cloudformation:DeleteStack",
    "cloudformation:DescribeStacks",
    "cloudformation:UpdateTerminationProtection",
    "logs:FilterLogEvents",
}
SERVICES = {"stepfunctions": "states"}
# https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html
ACTIONS = {
    "s3:CompleteMultipartUpload": ["s3:PutObject"],
    "s3:CreateMultipartUpload": ["s3:PutObject"],
    "s3:DeleteObjects": ["s3:DeleteObject", "s3:DeleteObjectVersion"],
    "s3:GetBucketNotificationConfiguration": ["s3:GetBucketNotification"],
    "s3:HeadBucket": ["s3:ListBucket"],
    "s3:HeadObject": ["s3:GetObject"],
    "s3:ListBuckets": ["s3:ListAllMyBuckets"],
    "s3:ListMultipartUploads": ["s3:ListBucketMultipartUploads"],
    "s3:ListObjectVersions": ["s3:ListBucketVersions"],
    "s3:ListObjectsV2": ["s3:ListBucket"],
    "s3:ListParts": ["s3:ListMultipartUploadParts"],
    "s3:UploadPart": ["s3:PutObject"],
    "s3:UploadPartCopy": ["s3:PutObject", "s3:GetObjectVersion"],
    "dynamodb:TransactWriteItems": [
        f"dynamodb:{part}Item" for part in ("Put", "Update", "Delete", "ConditionCheck")
    ],
    "lambda:CreateFunction": ["lambda:CreateFunction", "lambda:GetLayerVersion", "iam:PassRole"],
    "lambda:Invoke": ["lambda:InvokeFunction"],
    "states:CreateStateMachine": ["states:CreateStateMachine", "iam:PassRole"],
}


def rights(line: str) -> list[str]:
    """What a call needs; nothing, if CloudFormation makes it on AWS."""
    service, operation, agent = line.split()
    action = f"{SERVICES.get(service, service)}:{operation}"
    return [] if agent == STANDS_IN else ACTIONS.get(action, [action])


BESIDE = {
    "CommitByTheStateMachine",
    "DeployByTheRolesOfTheCdk",
    "GiveItTheLayerOfTheFunctions",  # CloudFormation names it by its logical id
}


def test_the_policy_is_for_things_of_runs_alone() -> None:
    """Save for reading lists, the executions of state machines, and the roles of the CDK."""
    for statement in POLICY["Statement"]:
        actions, resources = (many(statement[name]) for name in ("Action", "Resource"))
        reads = all(action.split(":")[1].startswith(("List", "Describe")) for action in actions)
        commits = statement["Sid"] in BESIDE
        where = [*resources, *map(str, statement.get("Condition", {}).values())]
        narrow = [one for one in where if "accept" in one]
        assert reads or commits or narrow, statement["Sid"]
        assert reads or commits or {*where} - {*narrow} <= {"*"}, statement["Sid"]


# Killed, interrupted, or not begun


LAST_CALL = 160  # of such a run


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 11))
def test_what_a_killed_run_leaves_a_later_one_removes(account: Account, seed: int) -> None:
    before = account.things()
    assert interrupted(account, f"{seed}", "SIGKILL") < 0
    (late := Embedded(NAME).home / "assembly").mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(things, "found", lambda *_: [])
        assert str(late.parent) in Embedded(NAME).left()
    assert account.run("--clean", NAME) == 0
    assert account.things() == before
    assert not late.parent.exists()


@pytest.mark.parametrize("how", ["SIGINT", pytest.param("SIGTERM", marks=pytest.mark.long)])
def test_an_interrupted_run_removes_all_and_reports(account: Account, how: str) -> None:
    before = account.things()
    assert interrupted(account, how, how) == 1
    assert account.things() == before
    assert account.report()["problem"] == "it was interrupted"
    assert "did not come to its end" in (account.directory / "acceptance_report.md").read_text()


def interrupted(account: Account, seed: str, how: str) -> int:
    """A small run that gets the signal at one of its calls; its exit code."""
    moment = random.Random(seed).randrange(2, LAST_CALL)
    return account.run("--yes", *only("a-job-by-open-job"), dies=f"{moment}:{how}")


def test_without_a_yes_nothing_is_made(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    before = account.things()
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{NAME} no\n"))
    with mock.patch.dict(os.environ):
        assert main(["--endpoint", account.deployed.endpoint, "--name", NAME]) == 2
    assert account.things() == before


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"])
def test_what_is_called_aws_is_aws(
    account: Account, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    before = account.things()
    monkeypatch.setenv(name, account.deployed.endpoint)
    with mock.patch.dict(os.environ):
        assert main(["--region", REGION, "--yes"]) == 2
    assert account.things() == before


def test_without_an_account_nothing_is_begun(capsys: pytest.CaptureFixture[str]) -> None:
    gone = ClientError({"Error": {"Code": "ExpiredToken"}}, "GetCallerIdentity")
    sts = mock.Mock(get_caller_identity=mock.Mock(side_effect=gone))
    with (
        mock.patch("acceptance.__main__.Aws", partial(Aws, clients=lambda _: sts)),
        mock.patch.dict(os.environ),
    ):
        os.environ.pop("AWS_ENDPOINT_URL", None)
        assert main(["--region", REGION, "--yes"]) == 2
    assert re.search("ExpiredToken.*nothing was begun", capsys.readouterr().err)


# Its tables


def test_the_parameters_are_those_of_a_deployment() -> None:
    context = {f"s3commit:{name}": value for name, value in PARAMETERS.items()}
    assert DeployConfig.from_context({**context, "s3commit:name": NAME}).versioned


def test_the_rights_that_are_expected_are_those_of_the_table() -> None:
    assert judged.allowed(ACCESS["end"], "DeleteObject", "t/part-0-x.parquet")
    assert not judged.allowed(ACCESS["end"], "DeleteObject", "t/_commits/_x.jsonl")
    assert not judged.allowed(ACCESS["ingest"], "PutObject", "t/part-0-x.parquet")
    for name, access in ACCESS.items():
        patterns = [*access.objects, *(one for some in access.denied.values() for one in some)]
        for pattern in {*patterns} - {"_s3commit/*/_catalog.json"}:
            assert any(fnmatchcase(key, pattern) for key in judged.SAMPLES), (name, pattern)


# What is said


def test_a_verdict_is_never_better_than_what_was_seen() -> None:
    def raising(error: Exception) -> Check:
        def run(_run: Run) -> str:
            raise error

        return Check("one", "It holds", 1, run)

    nowhere: Any = None
    verdicts = [
        tried(nowhere, raising(error)).verdict
        for error in (NotSeenError("no"), BrokenError("no"), KeyError("no"), AssertionError())
    ]
    assert verdicts == [NOT_SEEN, BROKEN, BROKEN, BROKEN]
    held = Result("one", "It holds", SEEN, "yes", 1)
    where: Any = {"is_aws": False, "commit": "0a1b2c3"}
    assert Report("n", "here", "now", **where, results=[held]).is_well
    for more in ({"left": ["bucket b"]}, {"problem": "it fell"}):
        assert not Report("n", "here", "now", **where, results=[held], **more).is_well
    broken = Result("two", "It | holds", BROKEN, "a < b", 1)
    report = Report("n", "here", "now", **where, results=[held, broken], left=["bucket b"])
    page = report.page()
    assert "1 seen, 0 not seen here, 1 broken" in page
    assert "| **broken** | a &lt; b |" in page
    assert "- bucket b" in page
    assert "commit 0a1b2c3" in page
    assert "No AWS service took part" in page
    assert "No AWS service took part" not in replace(report, is_aws=True).page()


def test_the_plan_says_what_is_made_how_long_it_takes_and_what_it_costs() -> None:
    where: Any = {"is_aws": True, "region": "eu-central-1", "account": "111122223333"}
    where["where"] = "--region eu-central-1"
    said = plan(NAME, list(CHECKS), 10_500, **where)
    likely, most = dollars(10_500, 1)
    assert 0 < likely < 1 < most < 10
    for part in (
        f"--region eu-central-1 --clean {NAME}",
        f"S3CommitStorage-{NAME}",
        "account 111122223333",
        f"{minutes(CHECKS)} minutes",
    ):
        assert part in said
    assert minutes(CHECKS) <= 120


def test_every_promise_is_in_the_report_that_the_documentation_shows() -> None:
    page = (ROOT / "docs" / "acceptance_report.md").read_text()
    assert [one.promise for one in CHECKS.values() if f"| {one.promise} |" not in page] == []
    assert "tests that passed in a function: A1 " in page
    assert " 0 broken. Nothing with the name of the run is left.**" in page
