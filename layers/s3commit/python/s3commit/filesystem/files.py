"""The filesystem: reading by S3's rules, writing by the job's."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from s3commit.aws.s3_client import Encryption, make_client
from s3commit.core.formats.layout import parse_destination
from s3commit.core.model.conditions import Conditions
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    NotFoundError,
    PreconditionError,
    S3CommitError,
)
from s3commit.core.model.job import Names
from s3commit.filesystem.reading import Entry, Reader
from s3commit.filesystem.transaction import JobTransaction, joined
from s3commit.version import __version__
from s3commit.writer.config import Config
from s3commit.writer.job import Job, open_job
from s3commit.writer.sizes import UploadSettings

if TYPE_CHECKING:
    from s3commit.writer.stream import PendingUpload

CLIENT: Final = f"s3commit-fsspec/{__version__}"
OF_A_FILE: Final = frozenset({"rows", "content_type", "upload"})
OF_FSSPEC: Final = frozenset(
    {"use_listings_cache", "listings_expiry_time", "max_paths", "asynchronous", "loop"}
)


class S3CommitFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """``s3commit://bucket/prefix/file``: reads what is visible; writes within a transaction.

    A transaction is a job at ``destination``::

        fs = fsspec.filesystem("s3commit", destination="s3://lake/t/", conflict="replace")
        with fs.transaction as job:
            frame.to_parquet("s3commit://lake/t/part.parquet")
        print(job.result.files)

    Opening for writing outside of one is refused, though a job a file would be possible: a library
    that writes a hundred files would then make a hundred jobs of them, and a failure in the middle
    would leave the first fifty visible, which is what this package is there to prevent. Nor is the
    destination guessed from a path: what a job replaces depends on it. A file is written once and
    whole, and is seen when the transaction ends; until then it is neither listed nor found. Its
    name gets the job's id unless ``names="exact"``. Processes do not share a transaction; use
    `s3commit.open_job` and send them its tasks.

    ``block_size`` is how many bytes a read fetches at once; the other options are
    `s3commit.open_job`'s. A file's own, given to `open`: ``upload``,
    ``rows``, ``content_type``. Listings leave out hidden names (``_…``, ``.…``), which can be read
    by their full path. Nothing is ever removed, moved or copied; directories need not be made.
    """

    protocol: ClassVar[str] = "s3commit"
    root_marker = ""
    transaction_type = JobTransaction

    def __init__(
        self,
        destination: str | None = None,
        *,
        conflict: str | None = None,
        scope: str | None = None,
        partition_by: Iterable[str] = (),
        conditions: Conditions | Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        names: str = Names.UNIQUE,
        settings: UploadSettings | None = None,
        encryption: Encryption | None = None,
        commit_timeout: float | None = None,
        config: Config | str | os.PathLike[str] | None = None,
        block_size: int | None = None,
        **of_fsspec: Any,
    ) -> None:
        unknown = sorted(set(of_fsspec) - OF_FSSPEC)
        if unknown:
            raise InvalidInputError(
                f"s3commit:// has no option {unknown[0]!r}; known are destination and those of"
                " s3commit.open_job",
                code="UNKNOWN_OPTION",
            )
        super().__init__(**of_fsspec)
        self.destination = None if destination is None else parse_destination(destination)
        self._block_size = block_size or "default"
        self._readers: dict[int, Reader] = {}
        self._options: dict[str, Any] = {
            "conflict": conflict,
            "scope": scope,
            "partition_by": tuple(partition_by),
            "conditions": conditions,
            "idempotency_key": idempotency_key,
            "names": names,
            "settings": settings,
            "encryption": encryption,
            "commit_timeout": commit_timeout,
            "config": config,
        }

    # --- writing

    def open_job(self) -> Job:
        """The job of a transaction: `s3commit.open_job` with the filesystem's options."""
        if self.destination is None:
            raise InvalidInputError(
                "a transaction is a job at one destination: name it, as in"
                " fsspec.filesystem('s3commit', destination='s3://bucket/table/')",
                code="NO_DESTINATION",
            )
        return open_job(self.destination.uri, client=CLIENT, **self._options)

    def start_transaction(self) -> JobTransaction:
        """Open a job; `end_transaction` commits it. As a ``with`` block, use ``fs.transaction``."""
        transaction = JobTransaction(self)
        transaction.start()
        return transaction

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> VisibleFile | PendingUpload:
        bucket, key = _split(path)
        if mode == "rb":
            return VisibleFile(
                self,
                path,
                mode,
                block_size or self._block_size,
                cache_options=cache_options,
                **options,
            )
        if mode != "wb":
            raise _unsupported(f"opening with mode {mode!r}", "write whole new files with 'wb'")
        unknown = sorted(set(options) - OF_A_FILE)
        if unknown:
            raise InvalidInputError(
                f"s3commit:// files have no option {unknown[0]!r}; known are"
                f" {', '.join(sorted(OF_A_FILE))}",
                code="UNKNOWN_OPTION",
            )
        return self._joined(bucket, key).open(key, **options)

    def _joined(self, bucket: str, key: str) -> JobTransaction:
        found = joined(self._transaction, bucket, key)
        if found is not None:
            return found
        if self._intrans and self.destination is not None:
            raise InvalidInputError(
                f"s3commit://{bucket}/{key} lies outside of the transaction's destination"
                f" {self.destination.uri}: a job has one destination",
                code="BAD_PATH",
            )
        directory = key.rpartition("/")[0] or "table"
        raise InvalidInputError(
            f"s3commit://{bucket}/{key} can be written within a transaction only: with"
            f" fsspec.filesystem('s3commit', destination='s3://{bucket}/{directory}/').transaction:"
            " ...",
            code="NO_TRANSACTION",
        )

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        """Do nothing: S3 has no directories, a file's path is enough."""

    makedirs = mkdir

    def touch(self, path: str, truncate: bool = True, **_: Any) -> NoReturn:
        """Refused: a file is opened, written and closed within a transaction."""
        raise _unsupported("touching files", "open the file for writing within a transaction")

    def rm(self, path: Any, *_: Any, **__: Any) -> NoReturn:
        """Refused: data is removed by a job that replaces it."""
        raise _unsupported("removing files", "a job with conflict='replace' removes what was there")

    rm_file = rmdir = _rm = rm

    def mv(self, path1: Any, path2: Any, *_: Any, **__: Any) -> NoReturn:
        """Refused: a rename is what a job makes needless."""
        raise _unsupported("moving files", "write them where they belong, within a transaction")

    def cp_file(self, path1: str, path2: str, **_: Any) -> NoReturn:
        """Refused: read the one and write the other."""
        raise _unsupported("copying files", "read the one and write the other in a transaction")

    def copy(self, path1: Any, path2: Any, *_: Any, **__: Any) -> NoReturn:
        """Refused; see `cp_file`."""
        self.cp_file(path1, path2)

    # --- reading

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """What is at the path. Raises `FileNotFoundError`, `PermissionError`."""
        bucket, key = _split(self._strip_protocol(path))
        with _plainly(path):
            found = self.reader.head(bucket, key) if key else None
            if found is None and self.reader.is_directory(bucket, _prefix(key)):
                found = Entry(bucket, _prefix(key))
        if found is None:
            raise FileNotFoundError(f"s3commit://{bucket}/{key}")
        return found.info

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """What lies directly in the directory, without hidden names; or the file itself."""
        bucket, key = _split(self._strip_protocol(path))
        with _plainly(path):
            found = [entry.info for entry in self.reader.children(bucket, _prefix(key))]
        if not found:
            info = self.info(path)
            found = [info] if info["type"] == "file" else []
        return found if detail else [info["name"] for info in found]

    def find(
        self,
        path: str,
        maxdepth: int | None = None,
        withdirs: bool = False,
        detail: bool = False,
        **options: Any,
    ) -> Any:
        """Every file below, without hidden names; one request a thousand."""
        if maxdepth is not None or withdirs:
            return super().find(path, maxdepth, withdirs, detail, **options)
        bucket, key = _split(self._strip_protocol(path))
        with _plainly(path):
            entries = self.reader.below(bucket, _prefix(key))
            if not entries and key and (file := self.reader.head(bucket, key)) is not None:
                entries = [file]
        found = {entry.info["name"]: entry.info for entry in entries}
        return found if detail else list(found)

    def modified(self, path: str) -> Any:
        """When the file became visible."""
        return self.info(path)["LastModified"]

    @property
    def reader(self) -> Reader:
        """What reads S3, by the standard AWS configuration; a process's own."""
        process = os.getpid()
        if process not in self._readers:
            self._readers[process] = Reader(make_client())
        return self._readers[process]

    def __reduce__(self) -> Any:
        if self._intrans:
            raise TypeError(
                "a filesystem can not be pickled within its transaction: processes do not share"
                " one; use s3commit.open_job and send its tasks"
            )
        return super().__reduce__()


class VisibleFile(AbstractBufferedFile):  # type: ignore[misc]
    """A visible object, read in blocks; one that is replaced meanwhile is noticed."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        bucket, key = _split(self.path)
        with _plainly(self.path):
            reader: Reader = self.fs.reader
            return reader.read(bucket, key, start, end, etag=self.details["ETag"])


def _split(path: str) -> tuple[str, str]:
    bucket, _, key = path.partition("/")
    if not bucket:
        raise InvalidInputError(
            "s3commit:// needs a bucket: s3commit://bucket/prefix/file", code="BAD_PATH"
        )
    return bucket, key


def _prefix(key: str) -> str:
    return key and key.rstrip("/") + "/"


def _unsupported(what: str, instead: str) -> io.UnsupportedOperation:
    return io.UnsupportedOperation(f"s3commit:// does not support {what}: {instead}")


@contextmanager
def _plainly(path: str) -> Iterator[None]:
    """Raise errors of reading as the OSErrors that libraries look for."""
    try:
        yield
    except NotFoundError as error:
        raise FileNotFoundError(f"{path}: {error.message}") from error
    except AccessError as error:
        raise PermissionError(f"{path}: {error.message}") from error
    except PreconditionError as error:
        raise OSError(f"{path} was replaced while it was read: open it again") from error
    except S3CommitError as error:
        raise OSError(f"{path}: {error.message}") from error
