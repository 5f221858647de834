"""The note of an idempotency key: the pipeline's own, and the hint for clients."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from s3commit.core.formats.codec import VERSION, Codec
from s3commit.core.formats.layout import check_job_id
from s3commit.core.model.errors import NOT_READABLE, NotFoundError, PreconditionError
from s3commit.core.model.locks import KeyHolder
from s3commit.core.ports.objects import ObjectReader, ObjectStore

MAX_NOTE_BYTES: Final = 16 * 1024

_NOTE: Final = Codec(KeyHolder, "note of a key", VERSION, max_bytes=MAX_NOTE_BYTES)


def read_note(reader: ObjectReader, bucket: str, key: str) -> KeyHolder | None:
    """The note; None where none is. Raises `InvalidInputError`, and as `ObjectReader.get`."""
    try:
        note = _NOTE.decode(reader.get(bucket, key, max_bytes=MAX_NOTE_BYTES).body)
    except NotFoundError:
        return None
    check_job_id(note.job_id)
    return note


def put_note(
    store: ObjectStore,
    bucket: str,
    key: str,
    note: KeyHolder,
    may_replace: Callable[[KeyHolder | None], bool],
) -> None:
    """Put the note where none is, or in place of one that it may replace; None: can't be read."""
    body = _NOTE.encode(note)
    with suppress(PreconditionError):
        store.put(bucket, key, body, if_absent=True)
        return
    condition, found = None, None
    with suppress(*NOT_READABLE):
        stored = store.get(bucket, key, max_bytes=MAX_NOTE_BYTES)
        condition = stored.facts.etag
        found = _NOTE.decode(stored.body)
    if found != note and may_replace(found):
        with suppress(PreconditionError):  # another call was faster
            store.put(bucket, key, body, if_match=condition)
