"""Stops a deployment that would change what a forgotten parameter changes.

Parameters are given each time. Without those of the last time CloudFormation would give the
pipeline another bucket, take its rights to a key, drop who gets the alarms, or make a second
deployment; and it asks nobody where nobody can answer.
"""

from __future__ import annotations

import json
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from s3commit.aws import env
from stacks.config import GUARDED, PREFIX, ConfigError, DeployConfig


class UnknownError(Exception):
    """What is deployed can't be read, so nothing was compared."""


def refuse_changes(config: DeployConfig, session: Any, account: str) -> None:
    """Raise `ConfigError` for a change that the parameter ``change`` does not name.

    ``session`` is boto3's, for the deployment's region. Raises `UnknownError` if it may not read
    the stacks, or leads to another account than ``account``.
    """
    try:
        found = session.client("sts").get_caller_identity()["Account"]
        if found != account:
            raise UnknownError(f"the environment has credentials of {found}, not of {account}")
        client = session.client("cloudformation")
        deployed = _deployed(client, config)
        others = _others(client) if deployed is None else []
    except (BotoCoreError, ClientError) as error:
        raise UnknownError(str(error)) from error
    if deployed is None:
        if others and "name" not in config.change:
            raise ConfigError(
                f"there is no {config.stack_name(env.STORAGE_STACK)} here, but"
                f" {', '.join(others)}: give -c {PREFIX}name=… of the one that you mean, or"
                f" -c {PREFIX}change=name for a new one beside it"
            )
        return
    differ = [
        name
        for name in GUARDED
        if config.given.get(name) != deployed.get(name) and name not in config.change
    ]
    if differ:
        differences = "; ".join(
            f"{name} was {deployed.get(name, 'not given')}, now {config.given.get(name, 'is not')}"
            for name in differ
        )
        raise ConfigError(
            f"this would change {config.stack_name(env.STORAGE_STACK)}: {differences}. Give what"
            f" was given (cdk.json remembers it), or -c {PREFIX}change={','.join(differ)}"
        )


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
