"""The patches of S3 and DynamoDB that tests/contract, which runs on all of them, does not hold.

That a cancelled transaction leaves everything as it was, test_locks.py has there; the ids of tables
are in tests/aws/test_ledger.py.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import Local, switching_fast


class Upload:
    def __init__(self, local: Local, key: str) -> None:
        self.s3, self.key = local.s3, key
        self.id = self.s3.create_multipart_upload(
            Bucket=local.bucket, Key=key, Metadata={"who": "me"}
        )["UploadId"]
        self.where = {"Bucket": local.bucket, "Key": key, "UploadId": self.id}
        part = self.s3.upload_part(**self.where, PartNumber=1, Body=b"x")
        self.parts = [{"PartNumber": 1, "ETag": part["ETag"]}]

    def complete(self) -> Any:
        parts = {"Parts": self.parts}
        return self.s3.complete_multipart_upload(**self.where, MultipartUpload=parts)


def test_completing_again_is_the_same_answer(local: Local, key: str) -> None:
    upload = Upload(local, key)
    assert upload.complete()["ETag"] == upload.complete()["ETag"]


@pytest.mark.parametrize("service", ["s3", "dynamodb"])
def test_of_many_conditional_writes_at_once_one_wins(local: Local, key: str, service: str) -> None:
    def write(name: str, value: str) -> None:
        if service == "s3":
            local.s3.put_object(Bucket=local.bucket, Key=name, Body=value.encode(), IfNoneMatch="*")
        else:
            local.dynamodb.put_item(
                TableName=local.runtime.table,
                Item=item(name) | {"who": {"N": value}},
                ConditionExpression="attribute_not_exists(pk)",
            )

    def claim(n: int) -> int:
        try:
            write(f"{key}/{n // 8}", str(n))
        except ClientError:
            return 0
        return 1

    with switching_fast(), ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(claim, range(8 * 50))) == 50


def test_no_reader_sees_a_completed_object_without_its_metadata(local: Local, key: str) -> None:
    uploads = [Upload(local, f"{key}/{n}") for n in range(30)]
    seen: list[dict[str, str]] = []

    def watch(upload: Upload) -> None:
        while True:
            try:
                head = local.s3.head_object(Bucket=local.bucket, Key=upload.key)
            except ClientError:
                continue
            seen.append(head["Metadata"])
            return

    with switching_fast(), ThreadPoolExecutor(4) as pool:
        for upload in uploads:
            watching = [pool.submit(watch, upload) for _ in range(3)]
            upload.complete()
            for future in watching:
                future.result()
    assert seen == [{"who": "me"}] * 90


def test_a_bucket_says_that_it_sends_its_events_to_eventbridge(local: Local) -> None:
    bucket = "sends-its-events"
    local.s3.create_bucket(Bucket=bucket)
    asked = local.s3.get_bucket_notification_configuration
    assert "EventBridgeConfiguration" not in asked(Bucket=bucket)
    local.s3.put_bucket_notification_configuration(
        Bucket=bucket, NotificationConfiguration={"EventBridgeConfiguration": {}}
    )
    assert asked(Bucket=bucket)["EventBridgeConfiguration"] == {}


# DynamoDB


def item(key: str) -> dict[str, Any]:
    return {"pk": {"S": key}, "sk": {"S": "x"}}


def transact(local: Local, key: str, token: str, value: str = "1") -> None:
    local.dynamodb.transact_write_items(
        ClientRequestToken=token,
        TransactItems=[
            {
                "Put": {
                    "TableName": local.runtime.table,
                    "Item": item(key) | {"v": {"S": value}},
                    "ConditionExpression": "attribute_not_exists(pk)",
                }
            }
        ],
    )


def test_a_transaction_repeated_with_its_token_succeeds_and_changes_nothing(
    local: Local, key: str
) -> None:
    transact(local, key, "t1" + key[2:30])
    local.dynamodb.update_item(
        TableName=local.runtime.table,
        Key=item(key),
        UpdateExpression="SET v = :v",
        ExpressionAttributeValues={":v": {"S": "2"}},
    )
    transact(local, key, "t1" + key[2:30])
    found = local.dynamodb.get_item(TableName=local.runtime.table, Key=item(key))["Item"]
    assert found["v"] == {"S": "2"}
    with pytest.raises(ClientError) as error:
        transact(local, key, "t2" + key[2:30])
    assert error.value.response["Error"]["Code"] == "TransactionCanceledException"
