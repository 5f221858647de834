"""What Hadoop's documents have that ours share: names, and the shapes of etags.

Source: ``org.apache.hadoop.fs.s3a.commit`` of Hadoop 3.3.4 and 3.5.0.
"""

from __future__ import annotations

from s3commit.core.formats.strict_json import Fields
from s3commit.core.model.errors import InvalidInputError

MAGIC = "__magic"  # of all jobs together, before Hadoop 3.4
MAGIC_PREFIX = "__magic_job-"
PENDINGSET_SUFFIX = ".pendingset"


def etags(fields: Fields, *, most: int, longest: int) -> tuple[str, ...]:
    """The etags of a pending commit: texts, or objects with an ``etag`` (from Hadoop 3.5 on).

    At most ``most`` of at most ``longest`` characters.

    Raises `InvalidInputError`, with ``UNSUPPORTED_CHECKSUM`` for parts with checksums of their
    own: S3 wants those again when the upload is completed.
    """
    value = fields.value.get("etags")
    if not (isinstance(value, list) and value and isinstance(value[0], dict)):
        return fields.texts("etags", most=most, longest=longest)
    return tuple(_etag(part, longest) for part in fields.objects("etags", most=most))


def _etag(part: Fields, longest: int) -> str:
    if part.has("checksum") or part.has("checksumAlgorithm"):
        raise InvalidInputError(
            f"{part.path} has a checksum: an upload with checksums of its parts can not be"
            " completed by s3commit; unset fs.s3a.create.checksum.algorithm",
            code="UNSUPPORTED_CHECKSUM",
        )
    return part.text("etag", longest=longest)
