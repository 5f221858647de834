"""The probes that need a deployment, on the embedded runtime; tests/probe has the others."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from click.testing import CliRunner

import s3commit.writer.job
from s3commit.cli.app import app
from s3commit.cli.probe import machines, run, tables
from s3commit.cli.probe.pipeline import PROBES
from stacks.definition import definition
from stacks.functions import FUNCTIONS
from tests.e2e.conftest import Deployed

PATIENCE = 120  # seconds that jobs of other tests are given to end
ROLE = "arn:aws:iam::123456789012:role/probes"


def leftovers(deployed: Deployed) -> dict[str, Any]:
    """What of the deployment would show that something was left, when all jobs have ended."""
    for _ in range(PATIENCE):
        if "RUNNING" not in executions(deployed).values():
            break
        time.sleep(1)
    s3 = deployed.client("s3")
    return {
        "objects": s3.list_objects_v2(Bucket=deployed.bucket).get("KeyCount"),
        "uploads": len(s3.list_multipart_uploads(Bucket=deployed.bucket).get("Uploads", ())),
        "items": deployed.client("dynamodb").scan(TableName=deployed.table)["Items"],
        "machines": len(deployed.client("stepfunctions").list_state_machines()["stateMachines"]),
    }


def test_a3_a_deployment_is_as_needed_and_nothing_is_left(
    environment: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "PROBES", (*tables.PROBES, *machines.PROBES, *PROBES))
    before = leftovers(environment)
    uri = f"s3://{environment.bucket}/probed/"
    options = ["--table", environment.table, "--machine-role", ROLE, "--output", "json"]
    result = CliRunner().invoke(app, ["doctor", "--probe", uri, *options])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    (alarm,) = [each for each in document["probes"] if each["name"] == "alarm"]
    assert {case["seen"] for case in alarm["cases"]} == {"give --alarm"}
    assert set(document["verdicts"]) == {"ok", "not probed"}
    assert document["verdicts"]["not probed"] == len(alarm["cases"])
    (job,) = [each for each in document["probes"] if each["name"] == "job"]
    assert job["cases"][0]["seen"].startswith("COMMITTED (")
    assert document["left"] == []
    assert leftovers(environment) == before


def test_interrupted_after_its_request_the_job_ends_before_its_documents_go(
    environment: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_asked: Any) -> Any:
        raise KeyboardInterrupt

    (job,) = [each for each in PROBES if each.name == "job"]
    monkeypatch.setattr(run, "PROBES", (job,))
    monkeypatch.setattr(s3commit.writer.job, "wait_for_result", interrupted)
    before = leftovers(environment)
    of_others = executions(environment).keys()
    uri = f"s3://{environment.bucket}/probed/"
    arguments = ["doctor", "--probe", uri, "--table", environment.table]

    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == 130, result.output
    assert "left:" not in result.stderr
    assert leftovers(environment) == before
    own = {arn: status for arn, status in executions(environment).items() if arn not in of_others}
    assert list(own.values()) == ["SUCCEEDED"]


def executions(environment: Deployed) -> dict[str, str]:
    steps = environment.client("stepfunctions")
    found = steps.list_executions(stateMachineArn=environment.stateMachine)["executions"]
    return {each["executionArn"]: each["status"] for each in found}


def test_the_probes_map_reads_and_runs_as_the_deployed_one_does() -> None:
    functions = dict.fromkeys(FUNCTIONS, "arn:aws:lambda:eu-central-1:1:function:f")
    deployed = definition(functions, 40)["States"]["CompleteUploads"]
    probed = machines.definition("aws")["States"]["Units"]
    processors = [each["ItemProcessor"]["ProcessorConfig"] for each in (deployed, probed)]
    readers = [each["ItemReader"] for each in (deployed, probed)]
    for reader in readers:
        assert reader.pop("Resource").endswith(":states:::s3:getObject")
    assert readers[0] == readers[1]
    assert processors[0] == processors[1]
    assert deployed["Catch"][0]["ErrorEquals"] == probed["Catch"][0]["ErrorEquals"]
