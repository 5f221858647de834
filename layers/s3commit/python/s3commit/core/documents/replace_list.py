"""The replace list: the files, markers and summaries that a job removes, in pages."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from s3commit.core.documents.pages import LINE, in_groups, read_list, write_list
from s3commit.core.formats.codec import Codec
from s3commit.core.formats.layout import SUCCESS, JobDirectory, goes_with_an_overwrite
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.limits import DELETE_AT_ONCE
from s3commit.core.model.record import ReplacedFacts
from s3commit.core.ports.bundle import S3Ports
from s3commit.core.ports.objects import ListedObject

_REPLACED: Final = Codec(ListedObject, "replaced file", unwritten={"modified": ""}, **LINE)


def write_replaced(
    ports: S3Ports, directory: JobDirectory, files: Iterable[ListedObject]
) -> ReplacedFacts:
    """Put the replace list, of which a page is one DeleteObjects call. Raises as `write_list`.

    The markers in it are not counted.
    """
    count = size = 0

    def counted() -> Iterator[ListedObject]:
        nonlocal count, size
        for one in files:
            _refuse_no_data(one, directory)  # as it could not be carried out after the decision
            if not one.key.endswith(f"/{SUCCESS}"):
                count += 1
                size += one.length
            yield one

    pages = ([unit] for unit in in_groups(counted(), DELETE_AT_ONCE))
    sha256, _ = write_list(ports, directory.of_replaced, pages, _REPLACED.encode)
    return ReplacedFacts(sha256, count, size)


def replaced_files(
    ports: S3Ports, directory: JobDirectory, facts: ReplacedFacts | None
) -> Iterator[ListedObject]:
    """The files and markers of the list, if it has files.

    Raises as `read_index`, and as `decode_replaced`.
    """
    decode = partial(decode_replaced, directory=directory)
    if not facts or not facts.files:
        return iter(())
    return read_list(ports, directory.of_replaced, facts.sha256, decode)


def decode_replaced(line: bytes, directory: JobDirectory) -> ListedObject:
    """Read a line of the replace list. Raises `InvalidInputError` for a key without data (I7)."""
    listed = _REPLACED.decode(line)
    _refuse_no_data(listed, directory)
    return listed


def _refuse_no_data(listed: ListedObject, directory: JobDirectory) -> None:
    relative = listed.key[len(directory.destination.prefix) :]
    is_inside = listed.key.startswith(directory.destination.prefix)
    if not is_inside or not goes_with_an_overwrite(relative):
        raise InvalidInputError(
            f"the replace list names {listed.key[:200]!r}, which is not a data file of"
            f" {directory.destination.uri}",
            code="NOT_CONTAINED",
        )
