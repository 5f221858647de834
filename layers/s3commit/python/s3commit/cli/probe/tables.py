"""DynamoDB: A3, a conditional update is atomic; on items of the run's own in the ledger's table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from s3commit.cli.probe.model import Case, Cost, Seen, at_once, in_rounds, needs, probe, race
from s3commit.cli.probe.s3_prefix import answer_of, asked
from s3commit.cli.probe.target import Target

GUIDE = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
UPDATES = GUIDE + "WorkingWithItems.html#WorkingWithItems.ConditionalUpdate"
READS = GUIDE + "HowItWorks.ReadConsistency.html"
TRANSACTIONS = GUIDE + "transaction-apis.html"

RACERS = 4
REFUSED = "400 ConditionalCheckFailedException"
CANCELLED = "400 TransactionCanceledException"
DAY = 86400


class Items:
    """The run's items: one partition key, which no item of the ledger has."""

    def __init__(self, target: Target) -> None:
        self.client = target.client("dynamodb")
        self.table = target.given.table
        self.partition = f"PROBE#{target.name}"
        # a run that is killed leaves nothing for longer
        self.expires = {"N": str(int(target.environment.epoch()) + DAY)}
        self._used: set[str] = set()
        target.undo.callback(self._delete)

    def key(self, name: str) -> dict[str, Any]:
        """An item's key."""
        self._used.add(name)
        return {"pk": {"S": self.partition}, "sk": {"S": name}}

    def take(self, name: str, racer: int) -> dict[str, Any]:
        """An update that takes the item, if nobody has; as the ledger makes its own."""
        return {
            "TableName": self.table,
            "Key": self.key(name),
            "UpdateExpression": "SET taken = :racer, expires_at = :expires",
            "ConditionExpression": "attribute_not_exists(taken)",
            "ExpressionAttributeValues": {":racer": {"N": str(racer)}, ":expires": self.expires},
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

    def _delete(self) -> None:
        for name in sorted(self._used):
            self.client.delete_item(TableName=self.table, Key=self.key(name))


@probe(
    relies=("A3", "ADR 18"),
    source=UPDATES,
    each_round=Cost(writes=RACERS + 1),
    lacks=needs("table"),
    cases={
        "winners of each race": Case(("1",)),
        "what the others are told": Case((REFUSED,)),
        "the item is the winner's": Case(("yes",)),
    },
)
@in_rounds(f"{{rounds}} races of {RACERS}")
def update_race(target: Target, number: int) -> Iterator[Seen]:
    """Of conditional updates at once, one wins."""
    items, name = Items(target), f"update-{number}"
    updates = [items.take(name, racer) for racer in range(RACERS)]
    calls = [partial(answer_of, items.client.update_item, **update) for update in updates]
    return race(calls, partial(items.read, name), "the item is the winner's")


@probe(
    relies=("A1",),
    source=READS,
    each_round=Cost(writes=4),
    lacks=needs("table"),
    cases={
        "read after an update": Case(("always",)),
        "listed after an update": Case(("always",)),
    },
)
@in_rounds("{rounds} times")
def consistent_reads(target: Target, number: int) -> Iterator[Seen]:
    """Strongly consistent reads and queries of the table."""
    items, name = Items(target), f"read-{number}"
    items.client.update_item(**items.take(name, number))
    yield Seen("listed after an update", items.listed(name))
    yield Seen("read after an update", items.read(name) == str(number))


def _transactions_at_once(target: Target, number: int) -> Iterator[Seen]:
    """Two items that several write at once, each all or none, as attempts are noted."""
    items, names = Items(target), [f"both-{number}-{half}" for half in (1, 2)]
    outcomes = at_once(*[_writing(items, names, racer) for racer in range(RACERS)])
    yield Seen("winners of each race", str(sum(told == "200" for told, _ in outcomes)))
    reasons = tuple(reason for _, reasons in outcomes for reason in reasons)
    yield Seen("why the others are cancelled", reasons)
    halves = items.read(names[0]) == items.read(names[1])
    yield Seen("both items are of one", "yes" if halves else "no")


@probe(
    relies=("A3", "aws/ledger_notes.py"),
    source=TRANSACTIONS,
    cost=Cost(writes=20),
    each_round=Cost(writes=RACERS * 4 + 4),
    lacks=needs("table"),
    cases={
        # S3's queue delivers again what was cancelled by a conflict: none at all may win
        "winners of each race": Case(("0", "1")),
        "why the others are cancelled": Case(
            ("ConditionalCheckFailed", "TransactionConflict", "None")
        ),
        "both items are of one": Case(("yes",)),
        "a transaction": Case(("200",)),
        "the same token again": Case(("200",)),
        "one of two items is taken": Case((CANCELLED,)),
        "the reasons of that, item by item": Case(("ConditionalCheckFailed and None",)),
        "the other item": Case(("nobody",)),
    },
)
def transactions(target: Target) -> Iterator[Seen]:
    """Of transactions at once, all or none of each."""
    yield from in_rounds(f"{{rounds}} races of {RACERS}")(_transactions_at_once)(target)
    items = Items(target)
    write = _writing(
        items, ["again-1", "again-2"], 0, ClientRequestToken=f"again-{items.partition[-20:]}"
    )
    yield Seen("a transaction", write()[0])
    yield Seen("the same token again", write()[0])
    told, reasons = _writing(items, ["again-1", "new"], 1)()
    yield Seen("one of two items is taken", told)
    yield Seen("the reasons of that, item by item", " and ".join(reasons))
    yield Seen("the other item", items.read("new"))


def _writing(
    items: Items, names: list[str], racer: int, **named: str
) -> Callable[[], tuple[str, list[str]]]:
    """What is told to a transaction, and the reasons if it was cancelled."""
    writes = [{"Update": items.take(name, racer)} for name in names]

    def write() -> tuple[str, list[str]]:
        answer = asked(items.client.transact_write_items, TransactItems=writes, **named)
        reasons = answer.response.get("CancellationReasons", ())
        return answer.told, [reason.get("Code", "?") for reason in reasons]

    return write


PROBES: Final = (update_race, consistent_reads, transactions)
