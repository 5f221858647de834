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
        answer = self.client.query(
            TableName=self.table,
            KeyConditionExpression="pk = :pk AND sk = :sk",
            ExpressionAttributeValues={":pk": {"S": self.partition}, ":sk": {"S": name}},
            ConsistentRead=True,
        )
        return bool(answer["Items"])


def delete_items(client: Any, table: str | None, partition: str) -> None:
    """Delete all items with that partition key."""
    found = client.query(
        TableName=table,
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": {"S": partition}},
        ConsistentRead=True,
    )
    for item in found["Items"]:
        client.delete_item(TableName=table, Key={"pk": item["pk"], "sk": item["sk"]})
