"""Worlds that break one promise each on which the protocol stands (docs/proof.md)."""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from s3commit.core.model.locks import Item
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.ledger import Change
from tests.fakes.bucket import Bucket
from tests.fakes.memory import MemoryLedger, MemoryObjectStore

STALE = 0.15  # the share of reads that are answered from the past
PAST = 12  # changes that a stale read may not know of


class StaleStore(MemoryObjectStore):
    """Reads may show the bucket as it was some changes ago, as S3's did before December 2020."""

    def __init__(self, *buckets: str, **options: Any) -> None:
        super().__init__(*buckets, **options)
        self._random = random.Random(len(buckets))
        self._past: list[tuple[dict[str, Any], dict[str, Any]]] = []
        for verb in ("get", "head", "list", "list_uploads"):
            setattr(self, verb, partial(self._read, getattr(self, verb)))

    def _read(self, read: Callable[..., Any], bucket: str, *args: str, **how: Any) -> Any:
        """From the past, now and then."""
        holder = self.bucket(bucket)
        present = holder.objects, holder.uploads
        self._past = [*self._past[-PAST:], (dict(holder.objects), dict(holder.uploads))]
        if self._random.random() < STALE:
            holder.objects, holder.uploads = self._random.choice(self._past)
        try:
            return read(bucket, *args, **how)
        finally:
            holder.objects, holder.uploads = present


class HeedlessStore(MemoryObjectStore):
    """Conditions of puts, completions and deletes are ignored, as by many a store beside S3."""

    @staticmethod
    def _check_condition(
        holder: Bucket, bucket: str, key: str, if_absent: bool, if_match: str | None
    ) -> None:
        return


class HeedlessLedger(MemoryLedger):
    """Writes come through whatever the state, the generation or the locks of others are."""

    def update(self, change: Change) -> JobRecord:
        found = self._jobs.get(change.before.ref)
        if found is None:
            raise change.lost(found)
        overwritten = {"generation": change.before.generation, **change.fields}
        return super().update(Change(found, replace(found, **overwritten)))

    def _is_free(self, record: JobRecord, one: Item) -> bool:
        return True


WITHOUT: dict[str, dict[str, Any]] = {
    "strong reads": {"store": StaleStore},
    "conditional put": {"store": HeedlessStore},
    "conditional update": {"ledger": HeedlessLedger},
}
