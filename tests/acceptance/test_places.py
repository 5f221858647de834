"""Where an acceptance run deploys on AWS, and what it removes there."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import boto3
import pytest

from acceptance import places, things
from acceptance.places import ROOT, Aws, BrokenError
from tests.conftest import REGION
from tests.contract.given import make_bucket

NAME = "accept-00003c"  # not that of `test_acceptance`, whose directory would go too


@pytest.fixture
def clients(moto_endpoint: str) -> things.Clients:
    def client(service: str) -> Any:
        made = boto3.client(service, endpoint_url=moto_endpoint, region_name=REGION)  # type: ignore[call-overload]
        made.meta.events.register("before-call", answer)
        return made

    def answer(model: Any, **_: Any) -> Any:
        """What moto lacks."""
        if model.name == "UpdateTerminationProtection":
            return type("Answer", (), {"status_code": 200}), {}
        return None

    return client


STACK = {
    "Resources": {"Queue": {"Type": "AWS::SQS::Queue"}},
    "Outputs": {"Q": {"Value": {"Ref": "Queue"}}},
}


def stacks_of(place: Aws) -> list[str]:
    return [f"{one}-{place.name}" for one in ("S3CommitPipeline", "S3CommitStorage")]


KILLED = """
import os, signal
from acceptance.places import running

with running(["sh", "-c", "sleep 600 & echo $!; wait"], stdout=-1) as process:
    print(process.stdout.readline(), end="", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_programs_of_a_run_that_is_killed_end_with_what_they_have_started() -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    for _ in range(400):
        try:
            os.kill(int(done.stdout), 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("it goes on")


def test_on_aws_the_stacks_go_and_what_they_leave_and_nothing_else(clients: things.Clients) -> None:
    place, other = Aws(NAME, clients), Aws("accept-00002b", clients)
    for one in (place, other):
        for stack in stacks_of(one):
            clients("cloudformation").create_stack(
                StackName=stack,
                TemplateBody=json.dumps(STACK),
                EnableTerminationProtection=stack.startswith("S3CommitStorage"),
            )
        bucket = make_bucket(clients("s3"), f"s3commit-{one.name}-data")
        clients("s3").put_object(Bucket=bucket, Key="t/a", Body=b"a")
        clients("s3").create_multipart_upload(Bucket=bucket, Key="t/b")
        clients("dynamodb").create_table(
            TableName=f"S3CommitStorage-{one.name}-Ledger-X",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
            DeletionProtectionEnabled=True,
        )
    assert len(place.left()) == 4
    assert place.remove() == []
    assert place.left() == []
    assert len(other.left()) == 4
    assert other.remove() == []


MAKE = """#!/bin/sh
echo "$@" >> {calls}
echo "$CDK_CONTEXT_JSON" >> {contexts}
test -z "$MAKEFLAGS" && test ! -e {broken}
"""


def test_on_aws_a_deployment_is_the_cdks_of_the_runs_own_assembly(
    clients: things.Clients, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, moto_endpoint: str
) -> None:
    calls, contexts, broken = (tmp_path / name for name in ("calls", "contexts", "broken"))
    program = tmp_path / "make"
    program.write_text(MAKE.format(calls=calls, contexts=contexts, broken=broken))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("MAKEFLAGS", "j2")
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    monkeypatch.setenv("CDK_CONTEXT_JSON", "{}")
    monkeypatch.setattr(
        places, "_SYNTHESIZE", "import os, sys; os.makedirs(sys.argv[2], exist_ok=True)"
    )
    place = Aws(NAME, clients)
    for stack in stacks_of(place):
        clients("cloudformation").create_stack(StackName=stack, TemplateBody=json.dumps(STACK))
    try:
        outputs = place.create()
        place.update(maxConcurrency=20)
        broken.touch()
        with pytest.raises(BrokenError, match="cdk deploy failed"):
            place.update(maxConcurrency=20)
    finally:
        left = place.remove()
    assert "Q" in outputs
    assert left == []
    assembly = place.home / "assembly"
    assert not assembly.exists()
    lines = calls.read_text().splitlines()
    assert {*lines} == {
        f"--silent deploy ARGS=--app {assembly} --require-approval never --progress events"
    }
    first, *others = map(json.loads, contexts.read_text().splitlines())
    assert first["s3commit:name"] == NAME
    assert first["s3commit:bucketName"] == f"s3commit-{NAME}-data"
    assert others == [{**first, "s3commit:maxConcurrency": 20}] * 2


def test_only_a_runs_name_is_removed(clients: things.Clients) -> None:
    for name in ("", "accept-", "accept-00001", "lake"):
        with pytest.raises(ValueError, match="is not the name of a run"):
            things.remove(clients, name)
