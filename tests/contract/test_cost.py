"""What a request costs the embedded runtime's DynamoDB, whose answers stay moto's."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from boto3 import Session
from moto import mock_aws
from moto.core.serialize import AttributePicker
from moto.dynamodb.models.dynamo_type import DynamoType

from tests.conftest import REGION
from tests.contract.conftest import create_table
from tests.servers import patch_moto

ITEMS = 40
VALUES: list[dict[str, Any]] = [
    *({"S": "é"}, {"S": ""}, {"N": "-1.5"}, {"BOOL": False}, {"NULL": True}, {"B": b"\0\xff"}),
    *({"SS": ["a", "b"]}, {"NS": ["1", "2"]}, {"BS": [b"a"]}),
    *({"L": [{"S": "x"}, {"M": {"n": {"N": "7"}}}]}, {"M": {"S": {"S": "y"}, "l": {"L": []}}}),
]


def counted(owner: type, name: str, work: Callable[[], Any]) -> tuple[Any, int]:
    """The answer, and how often the method was called for it."""
    calls, original = [0], vars(owner)[name]

    def count(*arguments: Any) -> Any:
        calls[0] += 1
        return original(*arguments)

    with patch.object(owner, name, count):
        return work(), calls[0]


@pytest.mark.parametrize(
    ("costs", "name", "most"), [(DynamoType, "__lt__", 0), (AttributePicker, "__call__", 100)]
)
def test_a_query_costs_what_it_finds_and_answers_the_same(
    monkeypatch: pytest.MonkeyPatch, costs: type, name: str, most: int
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)  # moto answers in this process
    with mock_aws():
        dynamodb: Any = Session().client("dynamodb", REGION)
        create_table("t", None)
        values = {f"v{n}": one for n, one in enumerate(VALUES)}
        for number in range(ITEMS):
            key = {"pk": {"S": f"{number * 7 % ITEMS:02}"}, "sk": {"S": "x"}}
            dynamodb.put_item(TableName="t", Item=key | values)
        asked = {"TableName": "t", "KeyConditionExpression": "pk = :p"}

        def work() -> Any:
            named = {":p": {"S": "07"}}
            return dynamodb.query(**asked, ExpressionAttributeValues=named)["Items"]

        def scan() -> Any:
            return dynamodb.scan(TableName="t")["Items"]

        (slow, before), scanned = counted(costs, name, work), scan()
        patcher = patch_moto("dynamodb_fast")
        try:
            (fast, after), again = counted(costs, name, work), scan()
        finally:
            patcher.undo()
    assert (fast, again) == (slow, scanned)
    assert (len(again), fast[0]["v5"]) == (ITEMS, {"B": b"\0\xff"})
    assert after <= most < before, (before, after)
