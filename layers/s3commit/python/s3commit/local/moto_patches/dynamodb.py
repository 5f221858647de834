"""DynamoDB: conditional writes that are atomic, idempotent transactions, ids of tables."""

import threading
import uuid
from typing import Any

from moto.core.serialize import BaseJSONSerializer
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
def dynamodb_fast_listing(patcher: Patcher) -> None:
    """A query costs what it returns.

    AWS: a query reads the items of one partition key (https://docs.aws.amazon.com/amazondynamodb/
    latest/developerguide/Query.html). moto: each sorts all items of the table first, and converts
    both keys of each comparison; 12 ms of 15 were that, of a query among 300 items. The order here
    is the same.
    """

    def all_items(_original: Any, self: Any) -> list[Any]:
        held = self.items.values()
        items = [one for some in held for one in some.values()] if self.range_key_attr else [*held]
        return sorted(items, key=_keys)

    patcher.wrap(Table, "all_items", all_items)


@patch
def dynamodb_fast_answers(patcher: Patcher) -> None:
    """A text, a number and a flag are written as they are stored.

    AWS: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_AttributeValue.html.
    moto: looks for each of ten types under each of its possible names, half of the time of a query
    that finds jobs. The answer here is the same.
    """

    def write(original: Any, self: Any, serialized: Any, value: Any, *named: Any) -> None:
        shape, key = named
        plain = value.to_json() if isinstance(value, DynamoType) else value
        is_scalar = shape.name == "AttributeValue" and key and len(plain) == 1
        if is_scalar and not {"S", "N", "BOOL"}.isdisjoint(plain):
            serialized[key] = plain
        else:
            original(self, serialized, value, *named)

    patcher.wrap(BaseJSONSerializer, "_serialize_type_structure", write)


def _keys(item: Any) -> tuple[Any, ...]:
    return tuple(key.cast_value for key in (item.hash_key, item.range_key) if key)


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
