"""What the parts of the ledger share: the table, its clock, and how a write is made."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

from pynamodb.exceptions import TransactWriteError
from pynamodb.transactions import TransactWrite

from s3commit.aws.ledger_items import Items
from s3commit.core.model.errors import PreconditionError
from s3commit.core.ports.clock import Clock


class LedgerTable:
    """One table and the means to write to it; ``page`` bounds a page of a query."""

    def __init__(self, items: Items, clock: Clock, page: int | None) -> None:
        self._items = items
        self._clock = clock
        self._page = page

    def _transaction(self) -> TransactWrite:
        """A transaction of its own: a repetition by botocore of one that succeeded succeeds."""
        connection = self._items.job._get_connection().connection
        return TransactWrite(connection=connection, client_request_token=new_token())

    def _expiry(self, days: int) -> int:
        """The time to live of what is written now."""
        return days_after(self._clock.now(), days)


def refused_items(error: PreconditionError) -> list[bool]:
    """For each item of a cancelled transaction: whether its own condition refused it."""
    cancelled: Any = error.__cause__
    if not isinstance(cancelled, TransactWriteError):
        raise error
    return [
        reason is not None and reason.code == "ConditionalCheckFailed"
        for reason in cancelled.cancellation_reasons
    ]


def new_token() -> str:
    """What no other call writes."""
    return uuid.uuid4().hex


def days_after(moment: str, days: int) -> int:
    """A time to live, in seconds since 1970; ``moment`` is RFC 3339."""
    return int((datetime.fromisoformat(moment) + timedelta(days=days)).timestamp())
