"""DynamoDB: A3, a conditional update is atomic; on items of the run's own in the ledger's table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from s3commit.cli.probe.model import Case, Cost, Probe, Seen
from s3commit.cli.probe.place import answer_of
from s3commit.cli.probe.world import World, at_once, count_of, distinct, option

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

    def __init__(self, world: World) -> None:
        self.client = world.client("dynamodb")
        self.table = world.given.table
        self.partition = f"PROBE#{world.name}"
        # a run that is killed leaves nothing for longer
        self.expires = {"N": str(int(world.environment.epoch()) + DAY)}
        self._used: set[str] = set()
        world.undo.callback(self._delete)

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


def _updates(world: World) -> Iterator[Seen]:
    items, won, lost, whose = Items(world), [], [], []
    for number in range(world.rounds):
        name = f"update-{number}"
        answers = at_once(
            [
                partial(answer_of, items.client.update_item, **items.take(name, racer))
                for racer in range(RACERS)
            ]
        )
        winners = [str(racer) for racer, answer in enumerate(answers) if answer == "200"]
        won.append(str(len(winners)))
        lost += [answer for answer in answers if answer != "200"]
        whose.append("yes" if items.read(name) in winners else "no")
    yield Seen("winners of each race", distinct(won), f"{world.rounds} races of {RACERS}")
    yield Seen("what the others are told", distinct(lost))
    yield Seen("the item is the winner's", distinct(whose))


_UPDATES = {
    "winners of each race": Case(("1",)),
    "what the others are told": Case((REFUSED,)),
    "the item is the winner's": Case(("yes",)),
}


def _reads(world: World) -> Iterator[Seen]:
    items, read, listed = Items(world), [], []
    for number in range(world.rounds):
        name = f"read-{number}"
        items.client.update_item(**items.take(name, number))
        listed.append(items.listed(name))
        read.append(items.read(name) == str(number))
    yield Seen("read after an update", (count_of(sum(read), len(read)),))
    yield Seen("listed after an update", (count_of(sum(listed), len(listed)),))


_READS = {
    "read after an update": Case(("always",)),
    "listed after an update": Case(("always",)),
}


def _transactions(world: World) -> Iterator[Seen]:
    """Two items that several write at once, each all or none, as attempts are noted."""
    items, won, lost, halves = Items(world), [], [], []
    for number in range(world.rounds):
        names = [f"both-{number}-{half}" for half in (1, 2)]
        outcomes = at_once([_writing(items, names, racer) for racer in range(RACERS)])
        won.append(str(sum(told == "200" for told, _ in outcomes)))
        lost += [reason for _, reasons in outcomes for reason in reasons]
        halves.append("yes" if items.read(names[0]) == items.read(names[1]) else "no")
    yield Seen("winners of each race", distinct(won), f"{world.rounds} races of {RACERS}")
    yield Seen("why the others are cancelled", distinct(lost))
    yield Seen("both items are of one", distinct(halves))
    first = _writing(items, ["again-1", "again-2"], 0, again="again")()
    yield Seen("a transaction", (first[0],))
    told, _ = _writing(items, ["again-1", "again-2"], 0, again="again")()
    yield Seen("the same token again", (told,))
    told, reasons = _writing(items, ["again-1", "new"], 1)()
    yield Seen("one of two items is taken", (told,))
    yield Seen("the reasons of that, item by item", (" and ".join(reasons),))
    yield Seen("the other item", (items.read("new"),))


def _writing(
    items: Items, names: list[str], racer: int, again: str = ""
) -> Callable[[], tuple[str, list[str]]]:
    """The answer, and the reasons if it was cancelled."""
    named: Any = {"ClientRequestToken": f"{again}-{items.partition[-20:]}"} if again else {}
    writes = [{"Update": items.take(name, racer)} for name in names]

    def write() -> tuple[str, list[str]]:
        from botocore.exceptions import ClientError  # noqa: PLC0415 - as in `World`

        reasons: list[str] = []

        def asked() -> Any:
            try:
                return items.client.transact_write_items(TransactItems=writes, **named)
            except ClientError as error:
                found: Any = error.response.get("CancellationReasons", ())
                reasons.extend(reason.get("Code", "?") for reason in found)
                raise

        return answer_of(asked), reasons

    return write


_TRANSACTIONS = {
    # S3's queue delivers again what was cancelled by a conflict: none at all may win
    "winners of each race": Case(("0", "1")),
    "why the others are cancelled": Case(("ConditionalCheckFailed", "TransactionConflict", "None")),
    "both items are of one": Case(("yes",)),
    "a transaction": Case(("200",)),
    "the same token again": Case(("200",)),
    "one of two items is taken": Case((CANCELLED,)),
    "the reasons of that, item by item": Case(("ConditionalCheckFailed and None",)),
    "the other item": Case(("nobody",)),
}

PROBES: tuple[Probe[World], ...] = (
    Probe(
        "update-race",
        "of conditional updates at once, one wins",
        ("A3", "ADR 18"),
        UPDATES,
        _UPDATES,
        _updates,
        each_round=Cost(writes=RACERS + 1),
        lacks=option("table"),
    ),
    Probe(
        "consistent-reads",
        "strongly consistent reads and queries of the table",
        ("A1",),
        READS,
        _READS,
        _reads,
        each_round=Cost(writes=4),
        lacks=option("table"),
    ),
    Probe(
        "transactions",
        "of transactions at once, all or none of each",
        ("A3", "aws/ledger_notes.py"),
        TRANSACTIONS,
        _TRANSACTIONS,
        _transactions,
        Cost(writes=20),
        Cost(writes=RACERS * 4 + 4),
        lacks=option("table"),
    ),
)
