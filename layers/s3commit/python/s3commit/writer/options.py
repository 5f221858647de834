"""The options of a write that a configuration may hold: their names, and what each may say.

Names and values are those of the Spark format (camelCase, text), so that one file serves every
way in. What belongs to one job alone (``idempotencyKey``, ``partitionBy``) is not among them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from s3commit.aws.s3_client import Encryption
from s3commit.core.model.conditions import Conditions, decode_conditions
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Conflict, Scope
from s3commit.core.model.limits import MAX_WAIT_SECONDS
from s3commit.writer.sizes import (
    MAX_PART_BYTES,
    MAX_THREADS,
    MIB,
    MIN_PART_BYTES,
    PartSizes,
    Upload,
    UploadSettings,
)

# Seconds: as long as a job may wait for its locks, and what it then takes at most.
DEFAULT_COMMIT_TIMEOUT: Final = MAX_WAIT_SECONDS + 900.0
LEAST_MEMORY_BUDGET: Final = 16 * MIB
ALGORITHMS: Final = ("AES256", "aws:kms", "aws:kms:dsse")
OF_ENCRYPTION: Final = frozenset({"encryption", "encryptionKeyId", "bucketKey"})
NULL_FRACTION: Final = "conditions.maxNullFraction."

_SIZE = re.compile(r"(\d{1,18})\s*([kmgt]?)i?b?", re.IGNORECASE | re.ASCII)
_SIZE_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*(s|sec|m|min|h|d)?", re.IGNORECASE | re.ASCII)
_DURATION_SECONDS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_FRACTION = re.compile(r"\d(?:\.\d{1,18})?(?:e-\d{1,2})?", re.IGNORECASE | re.ASCII)
_SCOPES: Final = {"static": Scope.DIRECTORY, "dynamic": Scope.PARTITION}


def parse_size(name: str, text: str) -> int:
    """``134217728``, ``128MB``, ``1g``: bytes, in powers of 1024. Raises `InvalidInputError`."""
    found = _SIZE.fullmatch(text)
    if not found:
        raise bad_option(name, text, "a size such as 134217728, 128MB or 1g")
    return int(found[1]) * int(1024 ** _SIZE_POWERS[found[2].lower()])


def parse_duration(name: str, text: str) -> float:
    """``600``, ``90s``, ``10m``, ``1h``: seconds, more than none. Raises `InvalidInputError`."""
    found = _DURATION.fullmatch(text)
    seconds = float(found[1]) * _DURATION_SECONDS[(found[2] or "s").lower()] if found else 0.0
    if seconds <= 0:
        raise bad_option(name, text, "a time such as 600 (seconds), 90s, 10m or 1h")
    return seconds


def parse_scope(name: str, text: str) -> Scope:
    """``static`` or ``dynamic``, Spark's words. Raises `InvalidInputError`."""
    return _SCOPES[one_of(tuple(_SCOPES))(name, text)]


def bad_option(name: str, text: str, wanted: str) -> InvalidInputError:
    """The one line about a value that an option can not have."""
    return InvalidInputError(f"option {name}={text[:80]!r}: give {wanted}", code="BAD_OPTION")


def check_option(name: str, text: str) -> str:
    """The value of an option, a word in its own spelling.

    Raises `InvalidInputError` (``UNKNOWN_OPTION``, ``BAD_OPTION``).
    """
    check = _fraction if name.startswith(NULL_FRACTION) else _CHECKS.get(name)
    if check is None or name == NULL_FRACTION:
        raise InvalidInputError(
            f"no option {name[:80]!r}; known options: {', '.join(KNOWN)}", code="UNKNOWN_OPTION"
        )
    word = check(name, text)
    return word if isinstance(word, str) else text


def upload_settings(options: Mapping[str, str]) -> UploadSettings:
    """How a task uploads, by ``upload``, ``partSize``, ``threads``, ``memoryBudget``, ….

    Of a memory budget two thirds are for bytes that wait, one third for those on their way. Raises
    `InvalidInputError`.
    """
    chosen: dict[str, object] = {}
    if "upload" in options:
        chosen["upload"] = Upload(one_of(tuple(Upload))("upload", options["upload"]))
    if "partSize" in options:
        chosen["parts"] = PartSizes(first=parse_size("partSize", options["partSize"]))
    if "threads" in options:
        chosen["threads"] = int(options["threads"])
    if "memoryBudget" in options:
        budget = parse_size("memoryBudget", options["memoryBudget"])
        chosen |= {"memory_bytes": budget * 2 // 3, "in_flight_bytes": budget // 3}
    if "spoolDirectory" in options:
        chosen["spool_directory"] = options["spoolDirectory"]
    return UploadSettings(**chosen)  # type: ignore[arg-type]


def conditions_of(options: Mapping[str, str]) -> Conditions:
    """What the job's data must be, by the ``conditions.`` options. Raises `InvalidInputError`."""
    counts: dict[str, Any] = {
        name.partition(".")[2]: int(text)
        for name, text in options.items()
        if name in _CHECKS and name.startswith("conditions.")
    }
    shares = {
        name.removeprefix(NULL_FRACTION): float(text)
        for name, text in options.items()
        if name.startswith(NULL_FRACTION)
    }
    return decode_conditions({**counts, "maxNullFraction": shares})


def encryption_of(options: Mapping[str, str]) -> Encryption | None:
    """How objects are encrypted, by ``encryption``, ``encryptionKeyId`` and ``bucketKey``.

    None means the bucket's own way. Raises `InvalidInputError` for a key without KMS.
    """
    algorithm, key_id = options.get("encryption"), options.get("encryptionKeyId")
    if algorithm is not None:
        algorithm = one_of(ALGORITHMS)("encryption", algorithm)
    bucket_key = {"true": True, "false": False}.get(options.get("bucketKey", "").lower())
    if (key_id is not None or bucket_key is not None) and algorithm in {None, ALGORITHMS[0]}:
        raise InvalidInputError(
            "encryptionKeyId and bucketKey are KMS's: give encryption='aws:kms' beside them",
            code="BAD_OPTION",
        )
    return Encryption(algorithm, key_id, bucket_key) if algorithm is not None else None


def one_of(allowed: tuple[str, ...]) -> Callable[[str, str], str]:
    """What parses one of these words, in capitals or not, and returns it as it is spelled here."""
    spelling = {word.lower(): word for word in allowed}

    def parse(name: str, text: str) -> str:
        if text.lower() not in spelling:
            raise bad_option(name, text, "one of " + ", ".join(allowed))
        return spelling[text.lower()]

    return parse


def _part_size(name: str, text: str) -> None:
    if not MIN_PART_BYTES <= parse_size(name, text) <= MAX_PART_BYTES:
        raise bad_option(name, text, "5MB to 5GB, as S3 wants of a part")


def _memory(name: str, text: str) -> None:
    if parse_size(name, text) < LEAST_MEMORY_BUDGET:
        raise bad_option(name, text, "at least 16MB")


def _number(least: int, most: int) -> Callable[[str, str], None]:
    def check(name: str, text: str) -> None:
        if not re.fullmatch(r"[0-9]{1,18}", text) or not least <= int(text) <= most:
            raise bad_option(name, text, f"a whole number from {least} to {most}")

    return check


def _fraction(name: str, text: str) -> None:
    if not _FRACTION.fullmatch(text) or float(text) > 1:
        raise bad_option(name, text, "a share from 0 to 1")


def _text(name: str, text: str) -> None:
    if not text.strip() or not text.isprintable() or len(text) > 2048:
        raise bad_option(name, text, "1 to 2048 printable characters")


_COUNT = _number(0, 10**18 - 1)
_CHECKS: Final[dict[str, Callable[[str, str], object]]] = {
    "upload": one_of(tuple(Upload)),
    "partSize": _part_size,
    "threads": _number(1, MAX_THREADS),
    "memoryBudget": _memory,
    "spoolDirectory": _text,
    "conflict": one_of(tuple(Conflict)),
    "partitionOverwriteMode": one_of(tuple(_SCOPES)),
    "commitTimeout": parse_duration,
    "encryption": one_of(ALGORITHMS),
    "encryptionKeyId": _text,
    "bucketKey": one_of(("true", "false")),
    "conditions.minRows": _COUNT,
    "conditions.maxRows": _COUNT,
    "conditions.minFiles": _COUNT,
}
KNOWN: Final = (*_CHECKS, f"{NULL_FRACTION}<column>")
