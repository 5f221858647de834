"""``_s3commit/_owner.json``: whose bucket it is. A bucket has one pipeline (docs/adr/0044).

A deployment is known by the ARN of its ledger's table: its name may occur in other regions and
accounts. Only who may write below ``_s3commit/`` can put, change or delete the object (A6).
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Final

from s3commit.core.formats.codec import VERSION, Codec
from s3commit.core.formats.layout import PIPELINE
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    NeedsOperatorError,
    NotFoundError,
    PreconditionError,
    TransientError,
)
from s3commit.core.model.fields import Text
from s3commit.core.ports.objects import ObjectReader, ObjectStore

OWNER: Final = f"{PIPELINE}_owner.json"
MAX_OWNER_BYTES: Final = 16 * 1024
OTHER_OWNER: Final = "OTHER_OWNER"
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Owner:
    """The bucket, and the ARN of its owner's ledger."""

    bucket: Annotated[str, Text(64)]
    ledger: Annotated[str, Text(2048, least=1)]


_OWNER: Final = Codec(Owner, "owner of a bucket", VERSION, max_bytes=MAX_OWNER_BYTES)


def read_owner(reader: ObjectReader, bucket: str) -> tuple[Owner | None, str | None]:
    """The owner, None where no one is, and the object's etag if there is one.

    A copy of another bucket's object names no owner here. Raises `NeedsOperatorError`
    (``PAGE_CHANGED``) for one that can't be read, and as `ObjectReader.get`.
    """
    try:
        stored = reader.get(bucket, OWNER, max_bytes=MAX_OWNER_BYTES)
        owner = _OWNER.decode(stored.body)
    except NotFoundError:
        return None, None
    except InvalidInputError as error:
        raise NeedsOperatorError(
            f"s3://{bucket}/{OWNER}, which names the bucket's owner, was changed: {error.message}."
            " Delete it: the next sweep of the bucket's deployment puts it again",
            code="PAGE_CHANGED",
        ) from error
    except AccessError as error:
        raise AccessError(
            f"{error.message}. If the KMS key of s3://{bucket}/{OWNER} was deleted, delete it: the"
            " next sweep of the bucket's deployment puts it again",
            code=error.code,
        ) from error
    return owner if owner.bucket == bucket else None, stored.facts.etag


def check_owner(store: ObjectStore, mine: Owner, *, claims: bool) -> bool:
    """True if the bucket is this deployment's, False if nobody's.

    Where there is no owner, one that ``claims`` becomes its owner. Of two that do so at the
    same time S3 admits one. Raises `NeedsOperatorError` (``OTHER_OWNER``) if it is another
    deployment's, and as `read_owner`.
    """
    for _ in range(_TRIES):
        found, etag = read_owner(store, mine.bucket)
        if found == mine or (found is None and not claims):
            return found == mine
        if found is not None:
            raise NeedsOperatorError(
                f"bucket {mine.bucket} belongs to the deployment with the ledger {found.ledger}:"
                f" this one, with {mine.ledger}, did nothing. Remove one of them, or hand the"
                " bucket over (docs/operations.md, Hand a bucket over)",
                code=OTHER_OWNER,
            )
        with suppress(PreconditionError):  # another was faster
            body = _OWNER.encode(mine)
            store.put(mine.bucket, OWNER, body, if_absent=etag is None, if_match=etag)
            return True
    raise TransientError(f"s3://{mine.bucket}/{OWNER} is changed again and again")
