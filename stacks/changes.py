"""Stops a deployment that would change what a forgotten parameter changes, and a removal too early.

Parameters are given each time. Without those of the last time CloudFormation would give the
pipeline another bucket, take its rights to a key, drop who gets the alarms or what protects the
bucket, or make a second deployment; and it asks no one where no one can answer.

A state machine that is deleted ends its executions at their next step, and a decided job stays half
visible until another deployment resumes it: https://docs.aws.amazon.com/step-functions/latest/apireference/API_DeleteStateMachine.html
"""

import json
import os
import subprocess
import sys
from dataclasses import fields
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from s3commit.aws import env
from stacks.config import GUARDED, PREFIX, ConfigError, DeployConfig, parameter_name

# Set by `make destroy`.
DESTROYING = "S3COMMIT_DESTROYING"
# The states of decided jobs, and of those that may be decided at any moment.
UNFINISHED = ("SEALED", "COMMITTING", "PUBLISHING", "ROLLING_BACK")
_WAIT = (
    "Run `s3commit pause`, wait until `s3commit status` lists no job in"
    f" {', '.join(UNFINISHED)}, then repeat"
)


class UnknownError(Exception):
    """The deployed stacks can't be read, so nothing was compared."""


def refuse_changes(config: DeployConfig, session: Any, account: str) -> None:
    """Raise `ConfigError` for a change that the parameter ``change`` does not name.

    ``session`` is boto3's, for the deployment's region. Raises `UnknownError` if it has no right to
    read the stacks, or is of another account than ``account``.
    """
    try:
        _check_account(session, account)
        client = session.client("cloudformation")
        deployed = _deployed(client, config)
        exported = _exported(client)
    except (BotoCoreError, ClientError) as error:
        raise UnknownError(str(error)) from error
    _refuse_taken(config, exported)
    if deployed is None:
        others = sorted(exported)
        if others and "name" not in config.change:
            raise ConfigError(
                f"there is no {config.stack_name(env.STORAGE_STACK)} here, but"
                f" {', '.join(others)}: name yours with -c {PREFIX}name=…, or create a new one"
                f" with -c {PREFIX}change=name"
            )
        return
    given = json.loads(json.dumps(config.given))
    known = {parameter_name(each.name) for each in fields(config)}  # to this revision
    changed = [one for one in GUARDED if given.get(one) != deployed.get(one)]
    missing = known & deployed.keys() - given.keys()
    differ = {*changed, *missing}
    if unnamed := sorted(differ - {*config.change}):
        differences = "; ".join(
            f"{name} was {deployed.get(name, 'not given')}, now {given.get(name, 'is not')}"
            for name in unnamed
        )
        raise ConfigError(
            f"this would change {config.stack_name(env.STORAGE_STACK)}: {differences}. Give what"
            f" was given (cdk.json remembers it), or -c {PREFIX}change={','.join(unnamed)}"
        )
    if "prefixes" in differ and config.served != ("",):
        _refuse_to_leave(config, session)


def _refuse_to_leave(config: DeployConfig, session: Any) -> None:
    """Raise `ConfigError` while a decided job needs rights that the new prefixes do not give."""
    refused = "the prefixes are not changed"
    for job in _unfinished(config, session, refused):
        _, _, _, prefix = job["destination"].split("/", 3)
        if not prefix.startswith(config.served):
            raise ConfigError(
                f"{refused}: job {job['jobId']} ({job['state']}) at {job['destination']} is under"
                f" way, and could not end. {_WAIT}"
            )


def refuse_to_destroy(config: DeployConfig, session: Any, account: str) -> None:
    """Raise `ConfigError` while a job is decided and has not ended, or if that can't be seen.

    The ledger is asked by the command.
    """
    refused = "nothing is removed"
    try:
        _check_account(session, account)
    except (UnknownError, BotoCoreError, ClientError) as error:
        raise ConfigError(f"{refused}, because its jobs can't be listed: {error}") from error
    if jobs := _unfinished(config, session, refused):
        raise ConfigError(
            f"{refused}: of job {jobs[0]['jobId']} ({jobs[0]['state']}), one of {len(jobs)}, only"
            f" some files would stay visible, until it is deployed again. {_WAIT}"
        )


def _unfinished(config: DeployConfig, session: Any, refused: str) -> list[dict[str, Any]]:
    """The jobs that are decided, or may be, as `s3commit status` says. Raises `ConfigError`."""
    states = [f"--state={state}" for state in UNFINISHED]
    command = [sys.executable, "-m", "s3commit", "status", "--output=json", "--limit=10000"]
    given = {**os.environ, "AWS_REGION": session.region_name}
    given.pop(env.TABLE, None)  # of another deployment, it may be
    try:
        done = subprocess.run(  # noqa: S603
            [*command, *states, *([f"--name={config.name}"] if config.name else [])],
            env=given,
            capture_output=True,
            text=True,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        why = f"{refused}, because its jobs can't be listed: {error.stderr}"
        raise ConfigError(why) from error
    jobs: list[dict[str, Any]] = json.loads(done.stdout)["jobs"]
    return jobs


def _check_account(session: Any, account: str) -> None:
    found = session.client("sts").get_caller_identity()["Account"]
    if found != account:
        raise UnknownError(f"the environment has credentials of {found}, not of {account}")


def _deployed(client: Any, config: DeployConfig) -> dict[str, Any] | None:
    """The parameters of the deployment of this name; None if there is none."""
    name = config.stack_name(env.STORAGE_STACK)
    try:
        (stack,) = client.describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        if "does not exist" in error.response["Error"]["Message"]:
            return None
        raise
    outputs = {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", [])}
    if env.PARAMETERS_OUTPUT not in outputs:  # its creation failed, or is not over
        return None
    found: dict[str, Any] = json.loads(outputs[env.PARAMETERS_OUTPUT])
    return found


def _exported(client: Any) -> dict[str, str]:
    """The bucket's ARN of each storage stack of this account and region, by what they export."""
    return {
        each["Name"].replace(env.BUCKET_EXPORT, env.STORAGE_STACK, 1): each["Value"]
        for page in client.get_paginator("list_exports").paginate()
        for each in page["Exports"]
        if each["Name"].startswith(env.BUCKET_EXPORT)
    }


def _refuse_taken(config: DeployConfig, exported: dict[str, str]) -> None:
    """Raise `ConfigError` if the bucket is another deployment's: it has one, whoever else knows."""
    bucket = config.import_bucket or config.bucket_name
    for stack, arn in exported.items():
        own = stack == config.stack_name(env.STORAGE_STACK)
        if bucket and not own and arn.endswith(f":::{bucket}"):
            raise ConfigError(
                f"bucket {bucket} is that of {stack}, and a bucket has one deployment: deploy that"
                " one, or hand the bucket over (docs/operations.md, Hand a bucket over)"
            )
