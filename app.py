"""The app that `cdk` and `python app.py` run: the stacks, by the parameters in the CDK context."""

import os
import sys

import boto3.session

from s3commit.aws import env
from stacks.changes import DESTROYING, UnknownError, refuse_changes, refuse_to_destroy
from stacks.config import ConfigError, DeployConfig
from stacks.layers import LayerBuildError
from stacks.pipeline import build


def main() -> None:
    """Synthesize, unless the deployment would change what no parameter names.

    The CDK command names account and region to the app if it has credentials for them:
    https://docs.aws.amazon.com/cdk/v2/guide/environments.html The embedded runtime changes nothing
    there, though a shell may have the variables still.
    """
    app = build()
    account, region = (os.environ.get(f"CDK_DEFAULT_{name}") for name in ("ACCOUNT", "REGION"))
    if account and not os.environ.get(env.LOCAL):
        config = DeployConfig.from_context(app.node.get_all_context())
        session = boto3.session.Session(region_name=region)
        if os.environ.get(DESTROYING):
            refuse_to_destroy(config, session, account)
        try:
            refuse_changes(config, session, account)
        except UnknownError as error:
            print(f"s3commit: not compared with the deployed stacks: {error}", file=sys.stderr)  # noqa: T201
    app.synth()


if __name__ == "__main__":
    try:
        main()
    except (ConfigError, LayerBuildError) as error:
        sys.exit(f"s3commit: {error}")
    except RuntimeError as error:
        if "ValidationFailed" not in str(error):
            raise
        sys.exit("s3commit: cdk-nag has findings (above); fix each or acknowledge it")
