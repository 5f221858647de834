"""`s3commit doctor` and `s3commit show` of a catalog that is told of commits."""

import json

import pytest

from s3commit.aws import env
from s3commit.aws.env import Catalog
from s3commit.core.formats.catalog import NOTE, CatalogNote
from tests.cli.account import Account
from tests.cli.support import JOB, TABLE, Desk
from tests.core.world import BUCKET

ROLE = "arn:aws:iam::123456789012:role/S3CommitPipeline/catalog"


@pytest.mark.parametrize(
    ("location", "path", "lacking", "told"),
    [
        ("s3://{}/sales", "dt=2026-11-26/hour=7/part-0", "", ""),
        ("s3a://{}/sales/", "notes/part-0", "", ""),
        ("s3://{}/other/", "", "", "lies at s3://{}/other/, and the parameter catalogs says"),
        (None, "", "", "(EntityNotFoundException): create it at s3://{}/sales/, or mend the par"),
        ("s3://{}/sales/", "dt=2026-11-26/part-0", "", "partition columns dt, and the table dt, h"),
        ("s3://{}/sales/", "dt=2026-11-26/hour=7/a=1/part-0", "", "columns dt, hour, a, and the t"),
        ("s3://{}/sales/", "dt=2026-11-26/hour=x/part-0", "", "hour is int in the table, and not"),
        ("s3://{}/sales/", "", "glue:GetPartitions", f"{ROLE} lacks glue:GetPartitions: deploy"),
        ("s3://{}/sales/", "", "everything", "no function tells it: deploy again"),
    ],
)
def test_a_table_is_compared_with_the_parameter_the_paths_and_the_rights(
    account: Account, location: str | None, path: str, lacking: str, told: str
) -> None:
    bucket, glue = account.make_bucket(), account.client("glue")
    catalog = Catalog("sales/", f"{bucket}.sales", drops_empty=True)
    account.lacking = {lacking}
    parameters = json.dumps({"catalogs": [catalog]})
    account.deploy(env.STORAGE_STACK, BucketName=bucket, Parameters=parameters)
    role = {env.CATALOG_ROLE_OUTPUT: ROLE} if lacking != "everything" else {"Version": "1"}
    account.deploy(env.PIPELINE_STACK, **role)
    glue.create_database(DatabaseInput={"Name": bucket})
    if location:
        keys = [{"Name": "dt", "Type": "date"}, {"Name": "hour", "Type": "int"}]
        storage = {"Location": location.format(bucket)}
        table = {"Name": "sales", "PartitionKeys": keys, "StorageDescriptor": storage}
        glue.create_table(DatabaseName=bucket, TableInput=table)
    account.client("s3").put_object(Bucket=bucket, Key=f"sales/{path or 'x'}", Body=b"1")
    verdict, text = account.ask()["catalogs"]
    assert (verdict, told.format(bucket) in text) == ("do" if told else "ok", True), text
    assert "\n" not in text


def test_a_note_that_others_have_changed_is_said_to_be_unreadable(desk: Desk) -> None:
    directory = desk.committed_job(JOB)
    note = NOTE.encode(CatalogNote(JOB, "lake.sales", "2026-11-26T05:00:00.000Z"))
    for body, said in ((note, "or died"), (b"{}", "_catalog.json can not be read")):
        desk.world.store.put(BUCKET, directory.catalog, body)
        (problem,) = desk.json("show", JOB, "--table", TABLE)["problems"]
        assert said in problem
