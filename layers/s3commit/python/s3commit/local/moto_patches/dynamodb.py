"""DynamoDB: conditional writes that are atomic, idempotent transactions, ids of tables."""

# ruff: noqa: PLC0415 - moto takes half a second: who only reads this module does not pay
from __future__ import annotations

import copy
import json
import threading
import time
import uuid
from typing import Any

from s3commit.local.moto_patches.registry import Patcher, one_at_a_time, patch

_TOKEN_SECONDS = 600


@patch
def dynamodb_one_at_a_time(patcher: Patcher) -> None:
    """A conditional write tests and writes as one step.

    AWS: "conditional writes ... each write checks its condition against the most recently updated
    version of the item" (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/
    WorkingWithItems.html#WorkingWithItems.ConditionalUpdate). moto: threads run between the check
    and the write; up to four winners of one claim were measured.
    """
    from moto.dynamodb.responses import DynamoHandler

    patcher.wrap(DynamoHandler, "call_action", one_at_a_time(threading.RLock()))


@patch
def dynamodb_transaction_token(patcher: Patcher) -> None:
    """A transaction that is repeated with its token within 10 minutes changes nothing and succeeds.

    AWS: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
    (ClientRequestToken; other parameters with the same token are IdempotentParameterMismatch).
    moto: evaluates the second call anew, so that a repeated decision would be cancelled.
    """
    from moto.dynamodb.exceptions import DynamodbException
    from moto.dynamodb.responses import DynamoHandler

    def transact_write_items(original: Any, self: Any) -> Any:
        token = self.body.get("ClientRequestToken")
        if token is None:
            return original(self)
        done: dict[str, tuple[float, str, Any]]
        done = self.dynamodb_backend.__dict__.setdefault("_s3c_done", {})
        now = time.monotonic()
        for old in [key for key, (at, _, _) in done.items() if now - at > _TOKEN_SECONDS]:
            del done[old]
        request = json.dumps(self.body["TransactItems"], sort_keys=True, default=str)
        if token not in done:
            done[token] = (now, request, original(self))
        _, before, result = done[token]
        if before != request:
            raise DynamodbException(
                "com.amazonaws.dynamodb.v20120810#IdempotentParameterMismatchException",
                "Another request was made with this ClientRequestToken",
            )
        return result

    patcher.wrap(DynamoHandler, "transact_write_items", transact_write_items)


@patch
def dynamodb_transaction_snapshot(patcher: Patcher) -> None:
    """A transaction takes a time that depends on its items, not on the table's.

    AWS: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html (two
    reads or writes of every item in it). moto: copies whole tables to be able to go back, a second
    for some thousand attempts; here it copies the items that the transaction names.
    """
    from moto.dynamodb.models import DynamoDBBackend
    from moto.dynamodb.models.dynamo_type import DynamoType
    from moto.dynamodb.models.table import Table

    state = threading.local()

    def transact_write_items(
        original: Any, self: Any, transact_items: list[dict[str, Any]]
    ) -> None:
        operations = [operation for item in transact_items for operation in item.values()]
        state.named = {
            (operation["TableName"], DynamoType(value))
            for operation in operations
            if (value := _hash_key(self, operation)) is not None
        }
        try:
            original(self, transact_items)
        finally:
            state.named = None

    def deepcopy(self: Any, memo: dict[int, Any]) -> Any:
        copied = object.__new__(type(self))
        memo[id(self)] = copied
        named = getattr(state, "named", None)
        if named is None:
            copied.__dict__.update(copy.deepcopy(self.__dict__, memo))
            return copied
        copied.__dict__.update(self.__dict__)
        copied.items = copy.copy(self.items)
        for table, key in named:
            if table == self.name and key in self.items:
                copied.items[key] = copy.deepcopy(self.items[key], memo)
        return copied

    patcher.wrap(DynamoDBBackend, "transact_write_items", transact_write_items)
    patcher.add(Table, "__deepcopy__", deepcopy)


def _hash_key(backend: Any, operation: dict[str, Any]) -> Any:
    table = backend.tables.get(operation.get("TableName"))
    source = operation.get("Key") or operation.get("Item") or {}
    return source.get(table.hash_key_attr) if table else None


@patch
def dynamodb_table_id(patcher: Patcher) -> None:
    """A table has an id of its own, and so has one that is restored from it.

    AWS: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TableDescription.html
    (TableId). moto: describes a table without it.
    """
    from moto.dynamodb.models.table import Table

    def describe(original: Any, self: Any, base_key: str = "TableDescription") -> Any:
        described = original(self, base_key=base_key)
        own = self.__dict__.setdefault("_s3c_id", str(uuid.uuid4()))
        described[base_key]["TableId"] = own
        return described

    patcher.wrap(Table, "describe", describe)
