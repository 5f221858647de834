"""Composes the stacks; `app.py` and the tests build the same application here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk

from s3commit.aws import env
from stacks.checks import add_checks
from stacks.config import DeployConfig
from stacks.dependencies import ROOT
from stacks.pipeline import S3CommitPipeline
from stacks.storage import S3CommitStorage


def build(parameters: Mapping[str, Any] | None = None, outdir: str | None = None) -> cdk.App:
    """The application, not yet synthesized. Raises `stacks.config.ConfigError`.

    ``parameters`` are context keys such as ``s3commit:name``; the command line goes before them.
    The context of `cdk.json` is read here too, because the CDK command alone would read it, and
    `python app.py` has to give the same templates.
    """
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    app = cdk.App(context={**context, **(parameters or {})}, outdir=outdir)
    config = DeployConfig.from_context(app.node.get_all_context())
    storage = S3CommitStorage(app, env.STORAGE_STACK, config=config)
    S3CommitPipeline(app, env.PIPELINE_STACK, config=config, storage=storage)
    cdk.Tags.of(app).add("application", "s3commit")
    add_checks(app)
    return app
