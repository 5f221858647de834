"""`s3commit doctor` and `s3commit show` of a catalog that is told of commits."""

import json

import pytest

from s3commit.aws import env
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
        (None, "", "", "(EntityNotFoundException): create it, or mend the parameter"),
        ("s3://{}/sales/", "dt=2026-11-26/part-0", "", "is no partition of table {}.sales, whose"),
        ("s3://{}/sales/", "dt=1/hour=7/a=1/part-0", "", "partition columns are dt, hour: write"),
        ("s3://{}/sales/", "", "glue:GetPartitions", f"{ROLE} lacks glue:GetPartitions: deploy"),
        ("s3://{}/sales/", "", "everything", "no function tells table {}.sales: deploy"),
    ],
)
def test_a_table_is_compared_with_the_parameter_the_paths_and_the_rights(
    account: Account, location: str | None, path: str, lacking: str, told: str
) -> None:
    bucket, glue = account.make_bucket(), account.client("glue")
    account.lacking = {lacking}
    parameters = json.dumps({"catalogs": [f"sales/={bucket}.sales dropEmpty"]})
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


def test_a_note_is_shown_on_one_line_without_control_characters(desk: Desk) -> None:
    note = b"not told: \x1b[31m\n\xff"
    desk.world.store.put(BUCKET, desk.committed_job(JOB).catalog, note)
    shown = desk.run("show", JOB, "--table", TABLE).stdout
    assert "not told: \\x1b[31m\\n\ufffd. It is tried again; after five tries redrive" in shown
