"""What a forgotten parameter would change stops a deployment, unless it is named."""

import contextlib
import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any
from unittest import mock

import boto3.session
import botocore.loaders
import botocore.session
import pytest
from click.testing import CliRunner

import app
from s3commit.aws import env
from s3commit.aws.ledger import DynamoLedger
from s3commit.cli.app import app as cli
from s3commit.core.documents.job_json import JobSpec
from s3commit.core.jobs.record import new_record
from s3commit.core.model.states import ENDED, TRANSITIONS, JobState
from stacks.changes import UNFINISHED, UnknownError, refuse_changes, refuse_to_destroy
from stacks.config import GUARDED, ConfigError, DeployConfig
from stacks.layers import ROOT
from stacks.pipeline import cdk_json
from tests.conftest import REGION
from tests.contract.conftest import create_table
from tests.core.world import job_directory
from tests.servers import ran
from tests.stacks.synthesized import KEY_ARN, Assembly
from tests.stacks.test_config import GOOD, WITH

ACCOUNT = "123456789012"
MAKEFILE = (ROOT / "Makefile").read_text()
DEPLOYED = {"importBucket": "lake", "kmsKeyArn": KEY_ARN, "alarmEmail": "a@b.example"}
# Not where other tests are: what is late in removing a stack may find it there.
_REGIONS = cycle(
    sorted({*boto3.session.Session().get_available_regions("cloudformation")} - {REGION})
)
_LOADER = botocore.loaders.create_loader()  # it reads the model of each service once


def by_this_process(
    command: list[str], env: dict[str, str], **_: Any
) -> subprocess.CompletedProcess[str]:
    """`s3commit status`; the one process is that of the test of `make destroy`."""
    with mock.patch.dict(os.environ, env, clear=True):
        done = CliRunner().invoke(cli, command[3:])
    if done.exit_code:
        raise subprocess.CalledProcessError(done.exit_code, command, stderr=done.stderr)
    return subprocess.CompletedProcess(command, 0, done.stdout)


RUN = subprocess.run


class Deployer:
    """A region of its own, with or without a deployment."""

    def __init__(self, endpoint: str, patch: pytest.MonkeyPatch) -> None:
        patch.setenv("AWS_ENDPOINT_URL", endpoint)
        patch.setattr(subprocess, "run", by_this_process)
        session = botocore.session.Session()
        session.register_component("data_loader", _LOADER)
        self.session = boto3.session.Session(botocore_session=session, region_name=next(_REGIONS))

    def deploy(self, *, table: str = "", **parameters: Any) -> None:
        config = self.config(**parameters)
        arn = f"arn:aws:s3:::{config.import_bucket or 'generated'}"
        outputs: dict[str, dict[str, Any]] = {
            **({env.TABLE_OUTPUT: {"Value": table}} if table else {}),
            env.PARAMETERS_OUTPUT: {"Value": json.dumps(config.given)},
            "Arn": {"Value": arn, "Export": {"Name": config.stack_name(env.BUCKET_EXPORT)}},
        }
        template = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}, "Outputs": outputs}
        stacks = self.session.client("cloudformation")
        # Nothing is in this region yet: a stack that exists is our own, whose answer was lost.
        with contextlib.suppress(stacks.exceptions.AlreadyExistsException):
            stacks.create_stack(
                StackName=config.stack_name(env.STORAGE_STACK), TemplateBody=json.dumps(template)
            )

    def config(self, **parameters: Any) -> DeployConfig:
        return DeployConfig.from_context({f"s3commit:{key}": parameters[key] for key in parameters})

    def again(self, account: str = ACCOUNT, **parameters: Any) -> None:
        refuse_changes(self.config(**parameters), self.session, account)


@pytest.fixture
def deployer(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployer]:
    made = Deployer(moto_endpoint, monkeypatch)
    _remove_all(made)  # other tests share the server
    yield made
    _remove_all(made)


def _remove_all(deployer: Deployer) -> None:
    stacks = deployer.session.client("cloudformation")
    for stack in stacks.describe_stacks()["Stacks"]:
        stacks.delete_stack(StackName=stack["StackName"])


def test_the_first_deployment_and_the_same_again_are_let_through(deployer: Deployer) -> None:
    deployer.again(**DEPLOYED)
    deployer.deploy(**DEPLOYED)
    deployer.again(**DEPLOYED, sweepMinutes=30)


@pytest.mark.parametrize("forgotten", sorted({*GOOD} - {"name", "change"}))
def test_a_forgotten_parameter_stops_until_it_is_named(deployer: Deployer, forgotten: str) -> None:
    """Any: each may be what protects, and whoever forgets one means no change."""
    deployer.deploy(**WITH.get(forgotten, {}), **{forgotten: GOOD[forgotten][0]})
    with pytest.raises(ConfigError, match=f"{forgotten} was .*, now is not") as stopped:
        deployer.again()
    named = ",".join(sorted({forgotten, *WITH.get(forgotten, {})}))
    assert str(stopped.value).endswith(f"-c s3commit:change={named}")
    deployer.again(change=named)


def test_another_revisions_parameter(deployer: Deployer, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(DeployConfig, "given", {"ofAnother": "value"})
        deployer.deploy()
    deployer.again()


def test_another_value_stops_it_and_each_has_to_be_named(deployer: Deployer) -> None:
    deployer.deploy(bucketName="one")
    told = "alarmEmail was not given, .*; bucketName was one, now two"
    with pytest.raises(ConfigError, match=told):
        deployer.again(bucketName="two", alarmEmail="a@b.example")
    with pytest.raises(ConfigError, match=r"change .*: alarmEmail was not given, now a@b\.example"):
        deployer.again(bucketName="two", alarmEmail="a@b.example", change="bucketName")


def test_a_forgotten_name_makes_no_second_deployment(deployer: Deployer) -> None:
    deployer.deploy(name="dev")
    with pytest.raises(ConfigError, match="no S3CommitStorage here, but S3CommitStorage-dev"):
        deployer.again()
    deployer.again(change="name")
    deployer.again(name="dev")


def test_a_bucket_has_one_deployment_whatever_may_change(deployer: Deployer) -> None:
    deployer.deploy(name="dev", importBucket="lake")
    deployer.deploy(name="other", importBucket="lake-two")
    for name in ("new", "other"):
        for given in ({"importBucket": "lake"}, {"bucketName": "lake"}):
            with pytest.raises(ConfigError, match="bucket lake is that of S3CommitStorage-dev,"):
                deployer.again(name=name, change="name,importBucket,bucketName", **given)
    deployer.again(name="new", importBucket="lake-three", change="name")
    deployer.again(name="dev", importBucket="lake")


class Dev:
    """The deployment "dev", and a job in its ledger."""

    def __init__(self, deployer: Deployer, endpoint: str, patch: pytest.MonkeyPatch) -> None:
        region, table = deployer.session.region_name, f"ledger-{uuid.uuid4().hex}"
        create_table(table, endpoint, region)
        deployer.deploy(table=table, name="dev")
        patch.setenv("AWS_REGION", region)
        self.ledger = DynamoLedger(table)

    def add(self, state: JobState) -> str:
        directory = job_directory(str(uuid.uuid4()))
        record = new_record(
            JobSpec(directory.job_id, directory.destination), directory, "2026-11-25T12:00:00.000Z"
        )
        self.ledger.open_job(replace(record, state=state))
        return directory.job_id


@pytest.fixture
def dev(deployer: Deployer, moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Dev:
    return Dev(deployer, moto_endpoint, monkeypatch)


@pytest.mark.parametrize("state", UNFINISHED)
def test_i2_the_pipeline_stays_while_a_job_is_decided_or_may_be(
    deployer: Deployer, dev: Dev, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setenv(env.TABLE, "of-another")
    told = rf"nothing is removed: of job {dev.add(JobState(state))} \({state}\).*`s3commit pause`"
    with pytest.raises(ConfigError, match=told):
        refuse_to_destroy(deployer.config(name="dev"), deployer.session, ACCOUNT)


def test_it_is_removed_while_none_is(deployer: Deployer, dev: Dev) -> None:
    following = TRANSITIONS[JobState.COMMITTING]
    may_be = {state for state in JobState if JobState.COMMITTING in TRANSITIONS[state]}
    assert {JobState.COMMITTING, *following, *may_be} - ENDED == set(UNFINISHED)
    for state in set(JobState) - set(UNFINISHED):
        dev.add(state)
    refuse_to_destroy(deployer.config(name="dev"), deployer.session, ACCOUNT)


@pytest.mark.parametrize("state", [JobState.OPEN, JobState.SEALED, JobState.PUBLISHING])
def test_i2_prefixes_are_not_narrowed_while_a_decided_job_needs_them(
    deployer: Deployer, dev: Dev, state: JobState
) -> None:
    job_id = dev.add(state)
    with pytest.raises(ConfigError, match=r"prefixes was not given, now \['orders/'\]"):
        deployer.again(name="dev", prefixes="orders/")
    deployer.again(name="dev", prefixes="orders/,sales/", change="prefixes")
    if state in UNFINISHED:
        told = rf"are not changed: job {job_id} \({state}\) at s3://lake/sales/ .*`s3commit pause`"
        with pytest.raises(ConfigError, match=told):
            deployer.again(name="dev", prefixes="orders/,sales/eu/", change="prefixes")
    else:
        deployer.again(name="dev", prefixes="orders/", change="prefixes")


def test_make_destroy_asks_before_it_removes(
    deployer: Deployer, dev: Dev, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", RUN)
    job_id = dev.add(JobState.COMMITTING)
    [named] = re.findall(r"^destroy:.*\n\t@export (\w+)=1; \$\(CDK\) destroy ", MAKEFILE, re.M)
    region = deployer.session.region_name
    aws = {"CDK_DEFAULT_ACCOUNT": ACCOUNT, "CDK_DEFAULT_REGION": region}
    given = {named: "1", "CDK_CONTEXT_JSON": '{"s3commit:name": "dev"}', **aws}
    done = ran(sys.executable, ROOT / "app.py", env={**os.environ, **given})
    assert done.returncode == 1
    told = f"s3commit: nothing is removed: of job {job_id} (COMMITTING)"
    assert done.stderr.splitlines()[-1].startswith(told)


def test_of_another_account_nothing_is_compared_or_removed(deployer: Deployer) -> None:
    with pytest.raises(ConfigError, match="no stack S3CommitStorage-nobody in"):
        refuse_to_destroy(deployer.config(name="nobody"), deployer.session, ACCOUNT)
    with pytest.raises(ConfigError, match=f"credentials of {ACCOUNT}, not of 111122223333"):
        refuse_to_destroy(deployer.config(), deployer.session, "111122223333")
    with pytest.raises(UnknownError, match=f"credentials of {ACCOUNT}, not of 111122223333"):
        deployer.again("111122223333")


def test_app_py_stops_if_an_account_is_given(
    deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployer.deploy(**DEPLOYED)
    built = mock.Mock()
    built.node.get_all_context.return_value = {}
    monkeypatch.setattr(app, "build", lambda: built)
    monkeypatch.setenv("CDK_DEFAULT_ACCOUNT", ACCOUNT)
    monkeypatch.setenv("CDK_DEFAULT_REGION", deployer.session.region_name)
    with pytest.raises(ConfigError, match="this would change S3CommitStorage"):
        app.main()
    built.synth.assert_not_called()
    monkeypatch.setenv(env.LOCAL, "1")
    app.main()
    built.synth.assert_called_once()


def test_the_pipeline_imports_one_name(assembly: Assembly, imported: Assembly) -> None:
    """So CloudFormation, too, refuses another bucket while there is a pipeline."""
    for one, name in ((assembly, env.BUCKET_EXPORT), (imported, f"{env.BUCKET_EXPORT}-dev")):
        assert {"Fn::ImportValue": name} in list(_values(one.pipeline))
        exported = [output.get("Export") for output in one.storage["Outputs"].values()]
        assert {"Name": name} in exported
        assert ":s3:::" not in json.dumps(one.pipeline), "the bucket, past the import"


def test_cdk_jsons_parameters_are_of_aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded runtime has no imported bucket."""
    context = {"s3commit:importBucket": "lake", "@aws-cdk/core:x": True}
    (tmp_path / "cdk.json").write_text(json.dumps({"context": context}))
    assert cdk_json(tmp_path) == context
    monkeypatch.setenv(env.LOCAL, "1")
    assert cdk_json(tmp_path) == {"@aws-cdk/core:x": True}


def test_the_parameters_stand_in_an_output(imported: Assembly) -> None:
    told = json.loads(imported.storage["Outputs"][env.PARAMETERS_OUTPUT]["Value"])
    assert told["importBucket"] == "lake"
    assert set(GUARDED) & set(told) == {"importBucket", "kmsKeyArn"}


def _values(node: Any) -> Any:
    yield node
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _values(each)
