"""The deployment, if there is one: does it fit this package, and does its bucket notify it."""

from __future__ import annotations

from s3commit.aws import env
from s3commit.cli.doctor.finding import Finding, ok, skipped, to_do
from s3commit.cli.doctor.surroundings import Surroundings
from s3commit.core.model.errors import NotFoundError
from s3commit.version import __version__
from s3commit.writer.bucket import MANIFEST_SUFFIX, REQUEST_SUFFIX


def pipeline(around: Surroundings) -> Finding:
    """Whether pipeline and package are of one version: a newer document is refused by the older."""
    name = around.stack(env.PIPELINE_STACK)
    outputs = around.outputs(env.PIPELINE_STACK)
    if outputs is None:
        return skipped(f"no stack {name} in {around.region}: not deployed, or name it with --name")
    deployed = outputs.get(env.VERSION_OUTPUT)
    if deployed is None:
        return to_do(f"{name} does not say its version: deploy it again from this checkout")
    if deployed != __version__:
        return to_do(
            f"{name} is {deployed} and this package {__version__}: install {deployed} here, or"
            f" deploy {__version__}"
        )
    return ok(f"{name} is {deployed}, as this package")


def notifications(around: Surroundings) -> Finding:
    """Whether the bucket tells the pipeline of requests and manifests."""
    bucket = around.data_bucket()
    try:
        found = around.notified()
    except NotFoundError:
        return to_do(f"bucket {bucket} does not exist: correct --bucket, or deploy")
    lacking = [each for each in (REQUEST_SUFFIX, MANIFEST_SUFFIX) if not found.get(each)]
    if lacking:
        return to_do(
            f"bucket {bucket} notifies no queue of keys that end in {' and '.join(lacking)}: deploy"
            " again with this bucket; until then no job there is committed"
        )
    return ok(f"bucket {bucket} notifies of requests and manifests")
