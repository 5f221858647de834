"""The patches of DynamoDB that the suite in tests/contract does not hold.

That a cancelled transaction leaves everything as it was, test_locks.py has there; the ids of tables
are in tests/aws/test_ledger.py.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import Local
from tests.local.stress import switching_fast


def item(key: str) -> dict[str, Any]:
    return {"pk": {"S": key}, "sk": {"S": "x"}}


def test_one_conditional_put_of_many_wins(local: Local, key: str) -> None:
    def claim(n: int) -> int:
        try:
            local.dynamodb.put_item(
                TableName=local.runtime.table,
                Item=item(f"{key}/{n // 8}") | {"who": {"N": str(n)}},
                ConditionExpression="attribute_not_exists(pk)",
            )
        except ClientError:
            return 0
        return 1

    with switching_fast(), ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(claim, range(8 * 50))) == 50


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
