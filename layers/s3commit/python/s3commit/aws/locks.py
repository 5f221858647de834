"""The claims of jobs on DynamoDB: an item for each node and job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from s3commit.aws.ledger_items import ClaimItem, claim_key, translated
from s3commit.aws.ledger_records import claim_item, claim_record
from s3commit.aws.ledger_table import LedgerTable
from s3commit.core.model.errors import PreconditionError
from s3commit.core.model.locks import Claim, Claimed

# A claim is deleted when its job has ended. What a late try puts after that harms nobody and goes
# by itself; no job that is decided stays so for a year.
CLAIM_DAYS = 365


class DynamoLocks(LedgerTable):
    """The claims of `s3commit.core.ports.objects.Ledger`; thread-safe."""

    def put_claim(self, claim: Claimed) -> None:
        """See `Ledger.put_claim`."""
        item = claim_item(self._items.claim, claim, self._expiry(CLAIM_DAYS))
        is_its_own = ClaimItem.epoch == claim.epoch
        is_none_of_a_later_epoch = ClaimItem.epoch.does_not_exist() | (
            ClaimItem.epoch <= claim.epoch
        )
        with (
            suppress(PreconditionError),
            translated(f"claiming {claim.claim.node} for job {claim.ref}"),
        ):
            item.save(is_its_own if claim.waits else is_none_of_a_later_epoch)

    def drop_claim(self, ref: str, claim: Claim) -> None:
        """See `Ledger.drop_claim`."""
        with translated(f"giving back {claim.node} of job {ref}"):
            self._items.claim(*claim_key(ref, claim)).delete()

    def claims(self, claim: Claim, *, below: bool, asked: str = "") -> Iterator[Claimed]:
        """See `Ledger.claims`.

        A filter saves no read units, and leaves out what would have to be sent and held here:
        https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.FilterExpression.html
        """
        pk, own = claim_key("", claim)
        under = ClaimItem.sk.startswith(claim.node if below else own)
        came_before = ClaimItem.asked.does_not_exist() | (ClaimItem.asked <= asked)
        with translated(f"reading the claims of {claim.node}"):
            for item in self._items.claim.query(
                pk,
                under,
                came_before if asked else None,
                consistent_read=True,
                page_size=self._page,
            ):
                yield claim_record(claim.mode, item)
