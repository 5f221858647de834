"""What `doctor` checks of the tables of the Glue Data Catalog that are told of commits."""

from __future__ import annotations

from collections.abc import Iterator

from s3commit.aws import env
from s3commit.aws.catalog import read_table
from s3commit.aws.env import Catalog
from s3commit.aws.s3 import S3ObjectStore
from s3commit.cli.surroundings import Finding, Surroundings, ok, to_do
from s3commit.core.model.amounts import many
from s3commit.core.model.errors import InvalidInputError, NotFoundError


def catalogs(around: Surroundings) -> Finding:
    """Each table lies where the parameter says, with the columns of the paths; it may be told."""
    told = [Catalog(*one) for one in (around.parameters or {}).get("catalogs", ())]
    if not told:
        return ok("no catalog is told of commits (the parameter catalogs names no table)")
    wrong = [f"{one.table}: {each}" for one in told for each in _wrong_with(around, one)]
    if wrong:
        return to_do("; ".join(wrong))
    return ok(f"{many(len(told), 'table')} of the Glue Data Catalog can be told of commits")


def _wrong_with(around: Surroundings, catalog: Catalog) -> Iterator[str]:
    try:
        table = read_table(around.connect("glue"), catalog, around.data_bucket)
    except NotFoundError as error:
        where = f"s3://{around.data_bucket}/{catalog.prefix}"
        yield f"{error.message}: create it at {where}, or mend the parameter catalogs"
        return
    except InvalidInputError as error:
        yield error.message
        return
    if path := _first_partition(around, catalog, len(table.keys)):
        try:
            table.values(path)
        except InvalidInputError as error:
            yield f"{error.message}: write with the table's partition columns, or create it anew"
    yield from _lacking(around, catalog)


def _first_partition(around: Surroundings, catalog: Catalog, depth: int) -> str:
    """The first partition's directory below the table, as deep as there are columns, or deeper."""
    store, path = S3ObjectStore(around.connect("s3")), ""
    for _ in range(depth + 1):
        names = store.names(around.data_bucket, catalog.prefix + path)
        path += next((name for name in names if "=" in name and name.endswith("/")), "")
    return path


def _lacking(around: Surroundings, catalog: Catalog) -> Iterator[str]:
    """What the function's role lacks by its own policies; those of the catalog are not asked."""
    role = around.pipeline.get(env.CATALOG_ROLE_OUTPUT)
    if role is None:
        yield "no function tells it: deploy again"
        return
    _, partition, _, _, account, *_ = role.split(":")
    resources = catalog.resources(partition, around.region or "", account)
    if lacking := around.lacking(role, catalog.actions, resources):
        yield f"{role} lacks {', '.join(lacking)}: deploy again, or see what denies it"
