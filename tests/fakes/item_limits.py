"""Which records of the ledger DynamoDB refuses by the size of their items.

Sizes are estimates, a little above what DynamoDB counts; tests/aws compares them with the items
that `s3commit.aws.ledger_items` makes. Sources:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html (items, keys),
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html (how
sizes are counted).
"""

from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.locks import Item, ItemKind, destination_node
from s3commit.core.model.record import AttemptRecord, JobRecord

MAX_ITEM_BYTES = 400 * 1024
MAX_SORT_KEY_BYTES = 1024
BESIDE_FIELDS = 3 * 1024  # keys, the job's directory, its place in the index, a token


def estimate(record: JobRecord | AttemptRecord) -> int:
    """How many bytes the record's item has at most."""
    return len(repr(record).encode(errors="surrogatepass")) + BESIDE_FIELDS


def check_record(record: JobRecord | AttemptRecord) -> None:
    """Raise `InvalidInputError` for an item or a key larger than DynamoDB takes.

    DynamoDB calls both a ValidationException.
    """
    if estimate(record) > MAX_ITEM_BYTES:
        raise InvalidInputError(f"{record.ref}: the item has more than {MAX_ITEM_BYTES} bytes")
    if isinstance(record, AttemptRecord):
        _check_sort_key(record, f"{record.task_id}#{record.attempt_id}")


def check_beside(record: JobRecord, one: Item) -> None:
    """The same for an item that stands beside the record."""
    _check_sort_key(record, beside_key(record, one))


def beside_key(record: JobRecord, one: Item) -> str:
    """Its sort key."""
    if one.kind in {ItemKind.APPEND, ItemKind.ENDED}:
        return f"{destination_node(record.destination)}/{record.ref}"
    if one.kind in {ItemKind.ASKED, ItemKind.DONE}:
        return f"{record.requested_at}#{record.ref}"
    return one.name


def _check_sort_key(record: JobRecord | AttemptRecord, key: str) -> None:
    if len(key.encode()) > MAX_SORT_KEY_BYTES:
        raise InvalidInputError(f"{record.ref}: a key has more than {MAX_SORT_KEY_BYTES} bytes")
