"""The patches of Step Functions, S3 and DynamoDB, and the Map that is deployed."""

import json
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.contract.deployed_map import OUTCOMES, machine_of, outcome
from tests.local.conftest import Local, switching_fast


def test_a_machine_catches_an_error_by_the_class_of_the_exception(local: Local) -> None:
    ended = local.ended(local.start({"do": "raise", "message": "caught"}))
    assert ended["status"] == "SUCCEEDED"
    assert json.loads(ended["output"]) == {"caught": True}


@pytest.mark.parametrize("number", [0, 2200])
def test_a_map_has_any_number_of_items(local: Local, key: str, number: int) -> None:
    items = [{"n": n} for n in range(number)]
    local.s3.put_object(Bucket=local.bucket, Key=key, Body=json.dumps(items))
    ended = local.ended(local.start({"do": "map", "bucket": local.bucket, "key": key}))
    assert ended["status"] == "SUCCEEDED"
    assert len(json.loads(ended["output"])["done"]) == number


def test_a_name_is_started_once(local: Local) -> None:
    name = uuid.uuid4().hex
    waiting = {"do": "wait", "seconds": 1}
    start = partial(local.start, name=name)
    with switching_fast(), ThreadPoolExecutor(8) as pool:
        arns = set(pool.map(start, [waiting] * 16))
    assert len(arns) == 1
    with pytest.raises(ClientError, match=r"\(ExecutionAlreadyExists\)"):
        start({"do": "call"})
    local.ended(arns.pop())
    with pytest.raises(ClientError, match=r"\(ExecutionAlreadyExists\)"):
        start(waiting)
    listed = local.machines.list_executions(stateMachineArn=local.runtime.state_machine_arn)
    assert [e["name"] for e in listed["executions"]].count(name) == 1


def test_an_execution_can_be_stopped_at_once(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    from moto.stepfunctions.parser.backend.execution_worker import ExecutionWorker

    parsed = threading.Event()
    original = ExecutionWorker._get_evaluation_entrypoint

    def slowly(self: ExecutionWorker) -> Any:
        assert parsed.wait(20)
        return original(self)

    monkeypatch.setattr(ExecutionWorker, "_get_evaluation_entrypoint", slowly)
    arn = local.start({"do": "wait", "seconds": 20})
    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(local.machines.stop_execution, executionArn=arn)
        wait([stopping], timeout=0.3)
        parsed.set()
        stopping.result()
    assert local.ended(arn)["status"] == "ABORTED"


def test_i2_the_deployed_map_fails_with_its_unit_or_leads_on(local: Local, key: str) -> None:
    """With standard children; with express ones `make contract` runs it: test_executions.py."""
    made = local.machines.create_state_machine(
        name=f"map-{uuid.uuid4().hex}",
        definition=machine_of("aws", kind="STANDARD"),
        roleArn="arn:aws:iam::123456789012:role/machines",
    )
    found = {
        what: outcome(
            local.machines, made["stateMachineArn"], local.s3, local.bucket, f"{key}/", what
        )
        for what in OUTCOMES
    }
    assert found == OUTCOMES


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


def transact(local: Local, key: str, token: str) -> None:
    put = {
        "TableName": local.runtime.table,
        "Item": item(key) | {"v": {"S": "1"}},
        "ConditionExpression": "attribute_not_exists(pk)",
    }
    local.dynamodb.transact_write_items(ClientRequestToken=token, TransactItems=[{"Put": put}])


def test_a_transaction_repeated_with_its_token_is_one(local: Local, key: str) -> None:
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
    with pytest.raises(ClientError, match=r"\(TransactionCanceledException\)"):
        transact(local, key, "t2" + key[2:30])


def test_a_cancelled_transaction_changes_nothing_and_copies_what_it_writes(
    local: Local, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from moto.dynamodb.models.dynamo_type import Item

    table, others = local.runtime.table, [item(f"{key}-{number}") for number in range(30)]
    for other in [item(key), *others]:
        local.dynamodb.put_item(
            TableName=table, Item=other | {"v": {"M": {"deep": {"L": [{"S": "old"}]}}}}
        )
    before = local.dynamodb.scan(TableName=table)["Items"]
    copies, original = [], Item.__deepcopy__

    def copied(self: Item, memo: Any) -> Any:
        copies.append(self)
        return original(self, memo)

    monkeypatch.setattr(Item, "__deepcopy__", copied)
    update = {
        "UpdateExpression": "SET v.deep[0] = :new, w = :new",
        "ExpressionAttributeValues": {":new": {"S": "new"}},
    }
    failing = {"ConditionExpression": "attribute_not_exists(pk)"}
    changes: list[Any] = [
        {"Update": {"TableName": table, "Key": item(key), **update}},
        {"Put": {"TableName": table, "Item": others[0]}},
        {"Put": {"TableName": table, "Item": item(f"{key}-new")}},
        {"Delete": {"TableName": table, "Key": others[1]}},
    ]
    last = {"ConditionCheck": {"TableName": table, "Key": others[2], **failing}}
    with pytest.raises(ClientError, match=r"\(TransactionCanceledException\)"):
        local.dynamodb.transact_write_items(TransactItems=[*changes, last])
    assert len(copies) <= 30  # of each item about two for each of five writes
    assert local.dynamodb.scan(TableName=table)["Items"] == before
    local.dynamodb.transact_write_items(TransactItems=changes)
    found = local.dynamodb.get_item(TableName=table, Key=item(key))["Item"]
    assert (found["v"], found["w"]) == ({"M": {"deep": {"L": [{"S": "new"}]}}}, {"S": "new"})
    assert "Item" not in local.dynamodb.get_item(TableName=table, Key=others[1])
