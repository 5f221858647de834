"""The checks by `doctor` of the tables of the Glue Data Catalog that are notified of commits."""

from __future__ import annotations

from collections.abc import Iterator

from s3commit.aws import env
from s3commit.aws.catalog import GlueTable, full
from s3commit.aws.env import Catalog
from s3commit.aws.s3 import S3ObjectStore
from s3commit.cli.deployment import Deployment, Finding, ok, to_do
from s3commit.core.model.amounts import many
from s3commit.core.model.errors import InvalidInputError, NotFoundError


def catalogs(around: Deployment) -> Finding:
    """Each table is where the parameter says, has the paths' columns, and can be notified."""
    told = [Catalog.of(one) for one in (around.parameters or {}).get("catalogs", ())]
    if wrong := [each for one in told for each in _wrong_with(around, one)]:
        return to_do("; ".join(wrong))
    return ok(f"{many(len(told), 'table')} of the Glue Data Catalog can be notified of commits")


def _wrong_with(around: Deployment, catalog: Catalog) -> Iterator[str]:
    try:
        table = GlueTable(around.connect("glue"), catalog, around.data_bucket)
        there = full(S3ObjectStore(around.connect("s3")), around.data_bucket, catalog, "")
        if path := next((one for one in there if "=" in one), ""):
            table.values(path)
    except NotFoundError as error:
        yield f"{error.message}: create it, or correct the parameter catalogs"
    except InvalidInputError as error:
        yield error.message
    role = around.pipeline.get(env.CATALOG_ROLE_OUTPUT)
    if role is None:
        yield f"no function notifies table {catalog.table}: deploy again"
        return
    _, partition, _, _, account, *_ = role.split(":")
    rights = catalog.rights(f"arn:{partition}:glue:{around.region}:{account}")
    if lacking := around.lacking(role, *rights):
        yield f"{role} lacks {', '.join(lacking)}: deploy again, or find the policy that denies it"
