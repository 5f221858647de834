"""``_SUCCESS``: the marker that readers of Hadoop's wait for."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from s3commit.core.documents.commit_manifest import header_of
from s3commit.core.documents.pendingset import HADOOPS
from s3commit.core.formats.codec import Codec
from s3commit.core.formats.strict_json import dump
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.fields import Text
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.objects import ObjectReader

SUCCESS_NAME = "org.apache.hadoop.fs.s3a.commit.files.SuccessData/1"
MAX_SUCCESS_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Marker:
    """The fields read of a ``_SUCCESS``: Hadoop's is of 0 bytes, or of a job of its own."""

    job_id: Annotated[str, Text(200)] = ""


_MARKER: Final = Codec(_Marker, "_SUCCESS", max_bytes=MAX_SUCCESS_BYTES)


def encode_success(record: JobRecord, keys: Iterable[str], now: str) -> bytes:
    """``_SUCCESS``: Hadoop's SuccessData, put at ``now`` (RFC 3339), with the first keys."""
    header = header_of(record)
    return dump(
        {
            "name": SUCCESS_NAME,
            "success": True,
            "timestamp": round(datetime.fromisoformat(now).timestamp() * 1000),
            "date": header.decided_at,
            "hostname": "s3commit",
            "committer": "s3commit",
            "description": f"{header.files} files, {header.bytes} bytes",
            "jobId": header.job_id,
            "jobIdSource": "s3commit",
            "metrics": {"files": header.files, "bytes": header.bytes},
            "diagnostics": {},
            "filenames": [f"/{key}" for key in keys],
            "iostatistics": {
                **HADOOPS["iostatistics"],
                "counters": {
                    "committer_files_committed": header.files,
                    "committer_bytes_committed": header.bytes,
                },
            },
            "state": None,
            "stage": None,
        }
    )


def read_success(reader: ObjectReader, bucket: str, key: str) -> tuple[str, str]:
    """The etag of the marker, and its job as by `success_job_id`.

    Raises `NotFoundError`, `InvalidInputError` (``TOO_LARGE``) and `AccessError`.
    """
    stored = reader.get(bucket, key, max_bytes=MAX_SUCCESS_BYTES)
    return stored.facts.etag, success_job_id(stored.body)


def success_job_id(body: bytes) -> str:
    """The job whose marker this is; empty for a marker of another kind (Hadoop's is 0 bytes)."""
    try:
        return _MARKER.decode(body).job_id
    except InvalidInputError:
        return ""
