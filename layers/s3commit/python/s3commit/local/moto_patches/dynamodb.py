"""DynamoDB: conditional writes that are atomic, idempotent transactions, ids of tables."""

import base64
import copy
import threading
import uuid
from typing import Any
from unittest import mock

from moto.core.serialize import BaseJSONSerializer
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.table import Table
from moto.dynamodb.responses import DynamoHandler

from s3commit.local.moto_patches.registry import Patcher, one_at_a_time, patch


@patch
def dynamodb_one_at_a_time(patcher: Patcher) -> None:
    """A conditional write tests and writes as one step.

    AWS: "conditional writes ... each write checks its condition against the most recently updated
    version of the item" (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/
    WorkingWithItems.html#WorkingWithItems.ConditionalUpdate). moto: threads run between the check
    and the write; up to four winners of one claim were measured.
    """
    patcher.wrap(DynamoHandler, "call_action", one_at_a_time(threading.RLock()))


@patch
def dynamodb_transaction_token(patcher: Patcher) -> None:
    """A transaction that is repeated with its token changes nothing and succeeds.

    AWS: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
    (ClientRequestToken; for 10 minutes). moto: evaluates the second call again, so that a repeated
    decision would be cancelled.
    """

    def transact_write_items(original: Any, self: Any) -> Any:
        done = self.dynamodb_backend.__dict__.setdefault("_s3c_done", {})
        token = self.body.get("ClientRequestToken") or str(uuid.uuid4())
        if token not in done:
            done[token] = original(self)
        return done[token]

    patcher.wrap(DynamoHandler, "transact_write_items", transact_write_items)


@patch
def dynamodb_fast(patcher: Patcher) -> None:
    """A query costs what it returns.

    AWS: it reads the items of one partition key (https://docs.aws.amazon.com/amazondynamodb/latest/
    developerguide/Query.html). moto: sorts all items of the table first, converts both keys of each
    comparison, and looks for ten types of each value under all possible names: most of the time of
    a query. The answers here are the same.
    """

    def all_items(_original: Any, self: Any) -> list[Any]:
        held = self.items.values()
        items = [one for some in held for one in some.values()] if self.range_key_attr else [*held]
        return sorted(
            items, key=lambda one: [key.cast_value for key in (one.hash_key, one.range_key) if key]
        )

    def query(original: Any, self: Any, hash_key: Any, *how: Any, **conditions: Any) -> Any:
        if not self.range_key_attr:
            return original(self, hash_key, *how, **conditions)
        keys, partition = dict(conditions["hash_key_conditions"] or ()), copy.copy(self)
        if not keys or self.hash_key_attr in keys:
            partition.items = {hash_key: self.items.get(hash_key, {})}
        else:
            name, key = next(iter(keys.items()))
            partition.items = {
                (pk, sk): {sk: one}
                for pk, some in self.items.items()
                for sk, one in some.items()
                if name in one.attrs and one.attrs[name].value == key.value
            }
        return original(partition, hash_key, *how, **conditions)

    def plain(value: Any) -> Any:
        if isinstance(value, DynamoType):
            return plain(value.to_json())
        if isinstance(value, dict):
            return {name: plain(one) for name, one in value.items()}
        if isinstance(value, list):
            return [*map(plain, value)]
        return base64.b64encode(value).decode() if isinstance(value, bytes) else value

    def write(original: Any, self: Any, serialized: Any, value: Any, *named: Any) -> None:
        shape, key = named
        if shape.value.name == "AttributeValue":
            serialized[key] = plain(value)
        else:
            original(self, serialized, value, *named)

    patcher.wrap(Table, "all_items", all_items)
    patcher.wrap(Table, "query", query)
    patcher.wrap(BaseJSONSerializer, "_serialize_type_map", write)


@patch
def dynamodb_transaction_cost(patcher: Patcher) -> None:
    """A transaction costs what it writes.

    AWS: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html.
    moto: copies the table for each write, to put it back. Here only the partitions are copied.
    """

    def transact_write_items(original: Any, self: Any, changes: list[dict[str, Any]]) -> Any:
        def copied(table: Any, memo: Any) -> Any:
            kept = copy.copy(table)
            kept.items = copy.copy(table.items)
            for change in (one for written in changes for one in written.values()):
                written = (change.get("Key") or change["Item"]).get(table.hash_key_attr)
                if written and (key := DynamoType(written)) in kept.items:
                    kept.items[key] = copy.deepcopy(table.items[key], memo)
            return kept

        with mock.patch.object(Table, "__deepcopy__", copied, create=True):
            return original(self, changes)

    patcher.wrap(DynamoDBBackend, "transact_write_items", transact_write_items)


@patch
def dynamodb_table_id(patcher: Patcher) -> None:
    """A table has an id of its own, and so has one that is restored from it.

    AWS: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TableDescription.html
    (TableId). moto: describes a table without it.
    """

    def describe(original: Any, self: Any, base_key: str = "TableDescription") -> Any:
        described = original(self, base_key=base_key)
        own = self.__dict__.setdefault("_s3c_id", str(uuid.uuid4()))
        described[base_key]["TableId"] = own
        return described

    patcher.wrap(Table, "describe", describe)
