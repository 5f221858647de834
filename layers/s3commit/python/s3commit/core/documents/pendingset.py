"""The pendingset: Hadoop's `PendingSet` 3 of `SinglePendingCommit` 2, read and written.

The formats are those of Hadoop's `org.apache.hadoop.fs.s3a.commit.files`; our own fields
(``attemptId``, ``rows``) are beside them, and Hadoop ignores what it does not know. Etags are
written as Hadoop 3.5 has them, objects, and read as texts too, as it had them before.

A manifest is untrusted input to a process with wide rights. This module is the one place where it
is judged (I7), whole and on first sight: what `decode_pendingset` returns acts inside the
destination of the manifest's job directory, and nowhere else.
"""

import hashlib
from dataclasses import dataclass
from typing import Annotated, Any, Final, NoReturn

from s3commit.core.formats.codec import Codec, Form, RefusedError, each, read_text
from s3commit.core.formats.layout import (
    MAX_KEY_BYTES,
    UNSPEAKABLE,
    JobDirectory,
    bad_element,
    is_hidden,
    owner_of,
    parse_manifest_key,
)
from s3commit.core.formats.strict_json import bounded, dump
from s3commit.core.model.checks import MAX_CHECKS, Figures
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.fields import SPARSE, Name, Several, Text, Whole

FILE_VERSION = 2
SET_VERSION = 3
MAX_MANIFEST_BYTES = 32 * 1024 * 1024
MAX_MANIFEST_VALUES = 1_000_000
# Manifests up to here, of about 700 files, are read side by side, 32 of them: 24 MB each at worst.
# Larger ones are read one at a time.
SMALL_MANIFEST_BYTES = 512 * 1024

MAX_PARTS: Final = 10_000  # https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html
MAX_OBJECT_BYTES: Final = 50 * 1024**4  # S3's own limit of an object, same page
MAX_ETAG: Final = 256  # characters; S3's have 34; a file of 10,000 parts is held while it completes

# Rows of one file. The sum of a job's million files has to be a number that every reader takes:
# below 2**63 (`s3commit.core.model.fields.Whole`).
MAX_ROWS: Final = 10**12

# Limits of one task attempt. A worker reads the manifest whole for each of its units, so more
# files would take longer to read than to complete. Of one part each they are 720,000 values and,
# with keys of 250 characters, 22 MiB. The worst of this size takes 600 MB to read.
MAX_FILES: Final = 20_000
Etag = Annotated[str, Text(MAX_ETAG, least=1)]
NonEmpty = Annotated[str, Text(least=1)]


@dataclass(frozen=True, slots=True)
class PendingFile:
    """One pending upload: Hadoop's SinglePendingCommit, version 2.

    ``etags[i]`` is the etag of part i+1, as S3 returned it. ``length`` is in bytes. ``rows`` is
    None where the writer did not count. ``origin`` is the key of the file of which an undo brings
    back a copy.
    """

    bucket: NonEmpty
    key: Annotated[NonEmpty, Name("destinationKey")]
    upload_id: NonEmpty
    etags: Annotated[tuple[Etag, ...], Several(MAX_PARTS, least=1)]
    length: Annotated[int, Whole(most=MAX_OBJECT_BYTES)]
    job_id: str = ""
    task_id: str = ""
    attempt_id: str = ""
    rows: Annotated[int | None, Whole(most=MAX_ROWS)] = None
    origin: Annotated[str, SPARSE] = ""


@dataclass(frozen=True, slots=True)
class PendingSet:
    """The manifest of one task attempt: Hadoop's PendingSet, version 3.

    ``task_count`` is how many tasks of the job have files; None if the writer did not know.
    ``checked`` says what all files together have in the columns that the job checks.
    """

    job_id: str
    files: Annotated[tuple[PendingFile, ...], Name("commits"), Several(MAX_FILES)]
    task_id: str = ""
    attempt_id: str = ""
    task_count: Annotated[int | None, SPARSE] = None
    checked: Annotated[tuple[Figures, ...], Several(MAX_CHECKS), SPARSE] = ()

    @property
    def bytes(self) -> int:
        """The bytes of all files together."""
        return sum(file.length for file in self.files)

    @property
    def rows(self) -> int | None:
        """The rows of all files together, or None if one of them was not counted."""
        counts = [file.rows for file in self.files]
        return None if None in counts else sum(count for count in counts if count is not None)


_STATISTICS = ("counters", "gauges", "minimums", "maximums", "meanstatistics")
HADOOPS: Final[dict[str, Any]] = {"iostatistics": {name: {} for name in _STATISTICS}}
_TIMES: Final = {"created": 0, "saved": 0}  # read by no one
_ETAG: Final = Text(MAX_ETAG, least=1)


def _etag(part: Any) -> Any:
    """An object with an ``etag`` (from Hadoop 3.5 on), or a text."""
    if type(part) is not dict:
        return read_text(_ETAG, part)
    if part.get("checksum") is not None or part.get("checksumAlgorithm") is not None:
        raise RefusedError(
            "has a checksum: s3commit cannot complete an upload that has part checksums; unset"
            " fs.s3a.create.checksum.algorithm",
            "UNSUPPORTED_CHECKSUM",
        )
    return read_text(_ETAG, part.get("etag"))


_FILE: Final = Codec(
    PendingFile,
    version=FILE_VERSION,
    constants={"filename": None, "date": None, "text": "", "extraData": {}, **_TIMES, **HADOOPS},
    forms={"etags": each(Form(_etag, lambda etag: {"etag": etag}), Several(MAX_PARTS, least=1))},
)


def _file_json(file: PendingFile) -> dict[str, Any]:
    found = _FILE.write(file)
    found["uri"] = f"s3a://{file.bucket}/{file.key}"
    found["partCount"] = len(file.etags)
    return found


_LIMITS: Final[Any] = {
    "what": "pendingset",
    "max_bytes": MAX_MANIFEST_BYTES,
    "most": MAX_MANIFEST_VALUES,
}
_SET: Final = Codec(
    PendingSet,
    version=SET_VERSION,
    **_LIMITS,
    constants=HADOOPS,
    forms={"files": each(Form(_FILE.member, _file_json), Several(MAX_FILES))},
)


def expected_etag(file: PendingFile) -> str:
    """The etag that S3 gives the completed object, unless it is encrypted with KMS or SSE-C.

    ``md5(md5(part 1) + md5(part 2) + …)-N``, in quotes. Empty if the parts' etags are not MD5s.
    """
    try:
        parts = b"".join(bytes.fromhex(etag.strip('"')) for etag in file.etags)
    except ValueError:
        return ""
    return f'"{hashlib.md5(parts, usedforsecurity=False).hexdigest()}-{len(file.etags)}"'


def encode_pendingset(pending: PendingSet) -> bytes:
    """The manifest's bytes. Raises `InvalidInputError` for what a reader would refuse."""
    document = _SET.write(pending)
    _check_keys(_SET.read(document))
    return bounded(dump(document), **_LIMITS)


def decode_pendingset(body: bytes, directory: JobDirectory, name: str) -> PendingSet:
    """Read a manifest of ``directory`` and refuse it whole if anything is wrong.

    ``name`` is its key below that, which says whose it is. Raises `InvalidInputError`; its code is
    ``BAD_JSON``, ``TOO_LARGE``, ``BAD_VERSION``, ``BAD_FIELD``, ``DUPLICATE_KEY``, ``WRONG_JOB``,
    ``NOT_CONTAINED``, ``NAME_NOT_UNIQUE`` or ``UNSUPPORTED_CHECKSUM``.
    """
    pending = _SET.decode(body)
    _check_keys(pending)
    _, *own = parse_manifest_key(directory.bucket, directory.prefix + name)
    ones: tuple[PendingSet | PendingFile, ...] = (pending, *pending.files)
    for one in ones:
        said = {"job": one.job_id, "task": one.task_id, "attempt": one.attempt_id}
        for (kind, id_), known in zip(said.items(), (directory.job_id, *own), strict=True):
            if id_ not in {"", known}:
                _refuse("WRONG_JOB", f"manifest of {kind} {known} names {kind} {id_[:80]!r}")
    for file in pending.files:
        if file.bucket != directory.bucket:
            message = f"file {file.key[:200]!r} is in bucket {file.bucket[:80]!r}"
            _refuse("NOT_CONTAINED", message)
        check_contained(file.key, directory)
    return pending


def _check_keys(pending: PendingSet) -> None:
    seen: set[str] = set()
    for file in pending.files:
        if file.key in seen:
            _refuse("DUPLICATE_KEY", f"key {file.key[:200]!r} is written twice by one task")
        seen.add(file.key)


def check_contained(key: str, directory: JobDirectory) -> None:
    """I7: the file is in the destination, as data, under a name that only this job uses.

    Raises `InvalidInputError`; ``NOT_CONTAINED``, or ``NAME_NOT_UNIQUE``.
    """
    where = f"file {key[:200]!r}"
    if not key.startswith(directory.destination.prefix):
        _refuse("NOT_CONTAINED", f"{where} is outside {directory.destination.uri}")
    if len(key.encode("utf-8")) > MAX_KEY_BYTES:
        _refuse("NOT_CONTAINED", f"{where} is longer than S3's {MAX_KEY_BYTES} bytes")
    relative = key[len(directory.destination.prefix) :]
    bad = bad_element(relative)
    if bad is not None:
        _refuse("NOT_CONTAINED", f"{where} has the element {bad[:200]!r}, which is not allowed")
    if UNSPEAKABLE.search(relative):
        _refuse("NOT_CONTAINED", f"{where} has a control character, which S3's answers can't carry")
    if is_hidden(relative):
        _refuse("NOT_CONTAINED", f"{where} has a hidden name, which readers skip")
    if owner_of(key) != directory.job_id:
        _refuse("NAME_NOT_UNIQUE", f"{where} does not end with the job id before the first dot")


def _refuse(code: str, message: str) -> NoReturn:
    raise InvalidInputError(message, code=code)
