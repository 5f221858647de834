"""A job was committed below a table's prefix: notify the Glue Data Catalog of its partitions."""

import json
from typing import Any

from s3commit.aws.catalog import tell
from s3commit.aws.clients import make_session
from s3commit.aws.s3 import S3ObjectStore
from s3commit.aws.settings import catalogs, own_encryption
from s3commit.aws.telemetry import logger
from s3commit.core.formats.layout import parse_directory

store = S3ObjectStore(encryption=own_encryption())
glue = make_session().create_client("glue")
tables = catalogs()


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: object) -> None:
    """Take the event of a committed job, one a call; it comes again if the call fails."""
    for record in event["Records"]:  # none where `s3commit redrive` tries the function
        detail = json.loads(record["body"])["detail"]
        directory = parse_directory(detail["bucket"], detail["directory"])
        logger.append_keys(job_id=directory.job_id)
        for table in tables:
            if directory.prefix.startswith(table.prefix):
                count = tell(store, glue, table, directory)
                logger.info("catalog notified", table=table.table, partitions=count)
