"""The options of `write`, parsed once into one frozen value, and the policy that they make.

As Spark's own, names are compared without case, and shown in the spelling of the documentation.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from s3commit.aws.session import Encryption
from s3commit.core.formats.layout import parse_destination
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import (
    MAX_KEY_CHARACTERS,
    Conditions,
    Conflict,
    Destination,
    Scope,
    decode_conditions,
)
from s3commit.spark.parquet import CODECS
from s3commit.writer.job import DEFAULT_COMMIT_TIMEOUT
from s3commit.writer.transfer import (
    MAX_PART_BYTES,
    MAX_THREADS,
    MIN_PART_BYTES,
    PartSizes,
    UploadSettings,
)

MB: Final = 1024 * 1024
SESSION_SCOPE: Final = "spark.sql.sources.partitionOverwriteMode"
ALGORITHMS: Final = ("AES256", "aws:kms", "aws:kms:dsse")
KNOWN: Final = (
    "partitionBy",
    "compression",
    "conflict",
    "partitionOverwriteMode",
    "conditions.minRows",
    "conditions.maxRows",
    "conditions.minFiles",
    "idempotencyKey",
    "maxRecordsPerFile",
    "partSize",
    "threads",
    "encryption",
    "encryptionKeyId",
    "bucketKey",
    "commitTimeout",
)
_SPELLING: Final = {name.lower(): name for name in KNOWN}
_CONDITIONS: Final = "conditions."

_SIZE = re.compile(r"(\d{1,18})\s*([kmgt]?)i?b?", re.IGNORECASE | re.ASCII)
_SIZE_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*(s|sec|m|min|h|d)?", re.IGNORECASE | re.ASCII)
_DURATION_SECONDS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_SCOPES: Final = {"static": Scope.DIRECTORY, "dynamic": Scope.PARTITION}

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for. Sizes are in bytes, times in seconds; None means no limit.

    ``compression`` and ``max_records_per_file`` are None where the session may say
    (`s3commit.spark.session`); 0 records mean no limit, whatever it says. ``conflict`` and
    ``scope`` are None if the program gives none; `policy_of` decides.
    """

    destination: Destination
    compression: str | None = None
    partition_by: tuple[str, ...] = ()
    conflict: Conflict | None = None
    scope: Scope | None = None
    max_records_per_file: int | None = None
    commit_timeout: float = DEFAULT_COMMIT_TIMEOUT
    idempotency_key: str | None = None
    conditions: Conditions = field(default_factory=Conditions)
    uploads: UploadSettings = field(default_factory=UploadSettings)
    encryption: Encryption | None = None

    @property
    def codec(self) -> str:
        """The compression that is asked for, else Spark's own default."""
        return self.compression or next(iter(CODECS))


def parse_options(path: str, raw: Mapping[str, object]) -> Options:
    """The options of one write to ``path``; None stands for an option that is not given.

    Raises `InvalidInputError` for an option that is not known (with the nearest known name), for
    a value out of its range, and for a bad path.
    """
    said = {name.lower(): _text_of(value) for name, value in raw.items() if value is not None}
    for name in said:
        if name not in _SPELLING:
            raise InvalidInputError(_unknown(name), code="UNKNOWN_OPTION")

    def given(name: str, parse: Callable[[str, str], _T]) -> _T | None:
        text = said.get(name.lower())
        return None if text is None else parse(name, text)

    conflict = given("conflict", one_of(tuple(Conflict)))
    return Options(
        destination=parse_destination(path),
        compression=given("compression", codec_of),
        partition_by=given("partitionBy", _columns) or (),
        conflict=None if conflict is None else Conflict(conflict),
        scope=given("partitionOverwriteMode", parse_scope),
        max_records_per_file=given("maxRecordsPerFile", limit_of),
        commit_timeout=given("commitTimeout", parse_duration) or DEFAULT_COMMIT_TIMEOUT,
        idempotency_key=given("idempotencyKey", _key),
        conditions=_conditions(said),
        uploads=UploadSettings(
            parts=given("partSize", _parts) or PartSizes(),
            threads=given("threads", _threads) or UploadSettings().threads,
        ),
        encryption=_encryption(said),
    )


@dataclass(frozen=True, slots=True)
class Policy:
    """What the job does about files that are there, and in which directories."""

    conflict: Conflict
    scope: Scope


def policy_of(options: Options, *, overwrite: bool, session_scope: str | None = None) -> Policy:
    """What the write does about files that are there: the mode decides, then the options.

    ``session_scope`` is the session's setting, for who gives no option. Raises
    `InvalidInputError` (``BAD_OPTIONS``) for options that contradict each other or the mode, in
    one line that names the way out.
    """
    for line, wrong in _contradictions(options, overwrite).items():
        if wrong:
            raise InvalidInputError(f"{line}. Nothing was written.", code="BAD_OPTIONS")
    conflict = Conflict.REPLACE if overwrite else options.conflict or Conflict.APPEND
    if not options.partition_by or conflict is Conflict.APPEND:
        return Policy(conflict, Scope.DIRECTORY)
    scope = options.scope
    if scope is None:  # Spark's own default is static
        scope = parse_scope(SESSION_SCOPE, session_scope) if session_scope else Scope.DIRECTORY
    return Policy(conflict, scope)


def _contradictions(options: Options, overwrite: bool) -> dict[str, bool]:
    said = options.conflict
    return {
        f"option conflict={said!s} contradicts mode 'overwrite', which replaces: leave the option"
        " out, or use mode 'append'": overwrite and said in {Conflict.APPEND, Conflict.FAIL},
        "option conflict=replace contradicts mode 'append': use mode='overwrite'": (
            not overwrite and said is Conflict.REPLACE
        ),
        "option partitionOverwriteMode=dynamic needs the partitions' columns: give partition_by,"
        " such as partition_by='dt'": (
            options.scope is Scope.PARTITION and not options.partition_by
        ),
    }


# The values of single options; each raises `InvalidInputError` (``BAD_OPTION``).


def parse_size(name: str, text: str) -> int:
    """``134217728``, ``128MB``, ``1g``: bytes, in powers of 1024."""
    found = _SIZE.fullmatch(text)
    if not found:
        raise _bad(name, text, "a size such as 134217728, 128MB or 1g")
    return int(found[1]) * int(1024 ** _SIZE_POWERS[found[2].lower()])


def parse_duration(name: str, text: str) -> float:
    """``600``, ``90s``, ``10m``, ``1h``: seconds, more than none."""
    found = _DURATION.fullmatch(text)
    seconds = float(found[1]) * _DURATION_SECONDS[(found[2] or "s").lower()] if found else 0.0
    if seconds <= 0:
        raise _bad(name, text, "a time such as 600 (seconds), 90s, 10m or 1h")
    return seconds


def parse_scope(name: str, text: str) -> Scope:
    """``static`` or ``dynamic``, Spark's words."""
    return _SCOPES[one_of(tuple(_SCOPES))(name, text)]


def codec_of(name: str, text: str) -> str:
    """A codec of parquet."""
    return one_of(tuple(CODECS))(name, "none" if text.lower() == "uncompressed" else text)


def limit_of(name: str, text: str) -> int:
    """A number of records, or 0 for no limit: Spark takes a negative number for that too."""
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise _bad(name, text, "a whole number")
    return max(0, int(text))


def one_of(allowed: tuple[str, ...]) -> Callable[[str, str], str]:
    """What parses one of these words, in capitals or not, and returns it as it is spelled here."""
    spelling = {word.lower(): word for word in allowed}

    def parse(name: str, text: str) -> str:
        if text.lower() not in spelling:
            raise _bad(name, text, "one of " + ", ".join(allowed))
        return spelling[text.lower()]

    return parse


def _columns(name: str, text: str) -> tuple[str, ...]:
    columns = tuple(column.strip() for column in text.split(",")) if text else ()
    if "" in columns:
        raise _bad(name, text, "column names with a comma between them, such as dt,hour")
    return columns


def _parts(name: str, text: str) -> PartSizes:
    size = parse_size(name, text)
    if not MIN_PART_BYTES <= size <= MAX_PART_BYTES:
        raise _bad(name, text, "5MB to 5GB, as S3 wants of a part")
    return PartSizes(first=size)


def _threads(name: str, text: str) -> int:
    return _number(name, text, 1, MAX_THREADS)


def _number(name: str, text: str, least: int, most: int) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or not least <= int(text) <= most:
        raise _bad(name, text, f"a whole number from {least} to {most}")
    return int(text)


def _key(name: str, text: str) -> str:
    if not 1 <= len(text) <= MAX_KEY_CHARACTERS:
        raise _bad(name, text, f"1 to {MAX_KEY_CHARACTERS} characters")
    return text


def _conditions(said: Mapping[str, str]) -> Conditions:
    counts: dict[str, Any] = {
        name.removeprefix(_CONDITIONS): _number(name, said[key], 0, 10**18 - 1)
        for key, name in _SPELLING.items()
        if key in said and name.startswith(_CONDITIONS)
    }
    return decode_conditions(counts)


def _encryption(said: Mapping[str, str]) -> Encryption | None:
    """How objects are encrypted; None means the bucket's own way."""
    algorithm, key_id = said.get("encryption"), said.get("encryptionkeyid")
    if algorithm is not None:
        algorithm = one_of(ALGORITHMS)("encryption", algorithm)
    bucket_key = said.get("bucketkey")
    if bucket_key is not None:
        bucket_key = one_of(("true", "false"))("bucketKey", bucket_key)
    if (key_id is not None or bucket_key is not None) and algorithm in {None, ALGORITHMS[0]}:
        raise InvalidInputError(
            "encryptionKeyId and bucketKey are KMS's: give encryption='aws:kms' beside them",
            code="BAD_OPTION",
        )
    if algorithm is None:
        return None
    return Encryption(algorithm, key_id, None if bucket_key is None else bucket_key == "true")


def _text_of(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(name, list(_SPELLING), n=1, cutoff=0.6)
    hint = f" Did you mean {_SPELLING[close[0]]!r}?" if close else ""
    return f"s3commit has no option {name!r}.{hint} Known options: {', '.join(KNOWN)}"


def _bad(name: str, text: str, wanted: str) -> InvalidInputError:
    return InvalidInputError(f"option {name}={text[:80]!r}: give {wanted}", code="BAD_OPTION")
