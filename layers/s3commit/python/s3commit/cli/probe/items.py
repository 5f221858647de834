"""Items of the run's own in the ledger's table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

DAY = 86400


@dataclass(frozen=True, slots=True)
class Items:
    """The run's items: one partition key, which no item of the ledger has.

    ``expires`` is in seconds since 1970: a run that is killed leaves nothing for longer.
    """

    client: Any
    table: str | None
    partition: str
    expires: int

    def key(self, name: str) -> dict[str, Any]:
        """An item's key."""
        return {"pk": {"S": self.partition}, "sk": {"S": name}}

    def take(self, name: str, racer: int) -> dict[str, Any]:
        """An update that takes the item, if nobody has; as the ledger makes its own."""
        expires = {"N": str(self.expires)}
        return {
            "TableName": self.table,
            "Key": self.key(name),
            "UpdateExpression": "SET taken = :racer, expires_at = :expires",
            "ConditionExpression": "attribute_not_exists(taken)",
            "ExpressionAttributeValues": {":racer": {"N": str(racer)}, ":expires": expires},
        }

    def read(self, name: str) -> str:
        """Who has taken it, by a strongly consistent read."""
        answer = self.client.get_item(TableName=self.table, Key=self.key(name), ConsistentRead=True)
        return str(answer.get("Item", {}).get("taken", {}).get("N", "nobody"))

    def listed(self, name: str) -> bool:
        """Whether a strongly consistent query shows it."""
        return self.key(name) in keys_of(self.client, self.table, self.partition)


def keys_of(client: Any, table: str | None, partition: str) -> list[dict[str, Any]]:
    """The keys of all items with that partition key, by a strongly consistent query."""
    found = client.query(
        TableName=table,
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": {"S": partition}},
        ConsistentRead=True,
    )
    return [{"pk": item["pk"], "sk": item["sk"]} for item in found["Items"]]


def delete_items(client: Any, table: str | None, partition: str) -> None:
    """Delete all items with that partition key."""
    for key in keys_of(client, table, partition):
        client.delete_item(TableName=table, Key=key)
