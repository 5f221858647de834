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
        others = _others(client) if deployed is None else []
    except (BotoCoreError, ClientError) as error:
        raise UnknownError(str(error)) from error
    if deployed is None:
        if others and "name" not in config.change:
            raise ConfigError(
                f"there is no {config.stack_name(env.STORAGE_STACK)} here, but"
                f" {', '.join(others)}: name yours with -c {PREFIX}name=…, or create a new one"
                f" with -c {PREFIX}change=name"
            )
        return
    known = {parameter_name(each.name) for each in fields(config)}  # to this revision
    changed = [one for one in GUARDED if config.given.get(one) != deployed.get(one)]
    missing = known & deployed.keys() - config.given.keys()
    differ = sorted({*changed, *missing} - {*config.change})
    if differ:
        differences = "; ".join(
            f"{name} was {deployed.get(name, 'not given')}, now {config.given.get(name, 'is not')}"
            for name in differ
        )
        raise ConfigError(
            f"this would change {config.stack_name(env.STORAGE_STACK)}: {differences}. Give what"
            f" was given (cdk.json remembers it), or -c {PREFIX}change={','.join(differ)}"
        )


def refuse_to_destroy(config: DeployConfig, session: Any, account: str) -> None:
    """Raise `ConfigError` while a job is decided and has not ended, or if that can't be seen.

    The ledger is asked by the command.
    """
    states = [f"--state={state}" for state in UNFINISHED]
    command = [sys.executable, "-m", "s3commit", "status", "--output=json", *states]
    given = {**os.environ, "AWS_REGION": session.region_name}
    given.pop(env.TABLE, None)  # of another deployment, it may be
    try:
        _check_account(session, account)
        done = subprocess.run(  # noqa: S603
            [*command, *([f"--name={config.name}"] if config.name else [])],
            env=given,
            capture_output=True,
            text=True,
            check=True,
        )
        jobs = json.loads(done.stdout)["jobs"]
    except (UnknownError, BotoCoreError, ClientError, subprocess.CalledProcessError) as error:
        why = getattr(error, "stderr", None) or error
        raise ConfigError(f"nothing is removed, because its jobs can't be listed: {why}") from error
    if jobs:
        raise ConfigError(
            f"nothing is removed: of job {jobs[0]['jobId']} ({jobs[0]['state']}), one of"
            f" {len(jobs)}, only some files would stay visible, until it is deployed again. Run"
            f" `s3commit pause`, wait until `s3commit status` lists no job in"
            f" {', '.join(UNFINISHED)}, then repeat"
        )


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


def _others(client: Any) -> list[str]:
    """The storage stacks of this account and region, by what they export."""
    return sorted(
        each["Name"].replace(env.BUCKET_EXPORT, env.STORAGE_STACK, 1)
        for page in client.get_paginator("list_exports").paginate()
        for each in page["Exports"]
        if each["Name"].startswith(env.BUCKET_EXPORT)
    )
