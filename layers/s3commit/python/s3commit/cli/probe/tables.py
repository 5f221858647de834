"""DynamoDB: A3, a conditional update is atomic; on items of the run's own in the ledger's table."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from s3commit.cli.probe.items import Items
from s3commit.cli.probe.model import Answers, Cost, needs, probe, sees
from s3commit.cli.probe.place import Place, answer_of, asked
from s3commit.cli.probe.rounds import RACERS, RACES, Told, at_once, race_of, rounds
from s3commit.cli.probe.world import World

GUIDE = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
UPDATES = GUIDE + "WorkingWithItems.html#WorkingWithItems.ConditionalUpdate"
READS = GUIDE + "HowItWorks.ReadConsistency.html"
TRANSACTIONS = GUIDE + "transaction-apis.html"

REFUSED = "400 ConditionalCheckFailedException"
CANCELLED = "400 TransactionCanceledException"


@probe(
    "update-race",
    "of conditional updates at once, one wins",
    "A3, ADR 18",
    UPDATES,
    each_round=Cost(writes=RACERS + 1),
    lacks=needs("table"),
)
@sees("winners of each race", "1")
@sees("what the others are told", REFUSED)
@sees("the item is the winner's", "yes")
@rounds(RACES)
def _updates(world: World, place: Place, number: int) -> Iterator[Told]:
    items, name = world.items, f"update-{number}"
    updates = [items.take(name, racer) for racer in range(RACERS)]
    calls = [partial(answer_of, items.client.update_item, **update) for update in updates]
    return race_of(calls, partial(items.read, name))


@probe(
    "consistent-reads",
    "strongly consistent reads and queries of the table",
    "A1",
    READS,
    each_round=Cost(writes=4),
    lacks=needs("table"),
)
@sees("read after an update", "always")
@sees("listed after an update", "always")
@rounds()
def _reads(world: World, place: Place, number: int) -> Iterator[Told]:
    items, name = world.items, f"read-{number}"
    items.client.update_item(**items.take(name, number))
    yield items.read(name) == str(number)
    yield items.listed(name)


@probe(
    "transactions",
    "of transactions at once, all or none of each",
    "A3, aws/ledger_notes.py",
    TRANSACTIONS,
    Cost(writes=20),
    each_round=Cost(writes=RACERS * 4 + 4),
    lacks=needs("table"),
)
# S3's queue delivers again what was cancelled by a conflict: none at all may win
@sees("winners of each race", "0", "1")
@sees("why the others are cancelled", "ConditionalCheckFailed", "TransactionConflict", "None")
@sees("both items are of one", "yes")
@sees("a transaction", "200")
@sees("the same token again", "200")
@sees("one of two items is taken", CANCELLED)
@sees("the reasons of that, item by item", "ConditionalCheckFailed and None")
@sees("the other item", "nobody")
def _transactions(world: World, place: Place) -> Answers:
    """Two items that several write at once, each all or none, as attempts are noted."""
    yield from _transactions_at_once(world, place)
    items = world.items
    token = {"ClientRequestToken": f"again-{items.partition[-20:]}"}
    for _ in range(2):
        yield _write(items, ["again-1", "again-2"], 0, **token)[0]
    told, reasons = _write(items, ["again-1", "new"], 1)
    yield told
    yield " and ".join(reasons)
    yield items.read("new")


@rounds(RACES)
def _transactions_at_once(world: World, place: Place, number: int) -> Iterator[Told]:
    items, names = world.items, [f"both-{number}-{half}" for half in (1, 2)]
    outcomes = at_once([partial(_write, items, names, racer) for racer in range(RACERS)])
    yield str(sum(told == "200" for told, _ in outcomes))
    yield [reason for _, reasons in outcomes for reason in reasons]
    yield "yes" if items.read(names[0]) == items.read(names[1]) else "no"


def _write(items: Items, names: list[str], racer: int, **token: str) -> tuple[str, list[str]]:
    """Take all of the items or none: the answer, and the reasons if it was cancelled."""
    writes = [{"Update": items.take(name, racer)} for name in names]
    told, answer = asked(items.client.transact_write_items, TransactItems=writes, **token)
    return told, [reason.get("Code", "?") for reason in answer.get("CancellationReasons", ())]


PROBES = (_updates, _reads, _transactions)
