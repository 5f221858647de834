"""The note that a table of the catalog does not know a committed job yet."""

from dataclasses import dataclass
from typing import Annotated, Final

from s3commit.core.formats.codec import VERSION, Codec
from s3commit.core.model.fields import Text

LONGEST_ERROR: Final = 16_384  # characters


@dataclass(frozen=True, slots=True)
class CatalogNote:
    """The table's name, and the last error; no error while it is being notified."""

    table: Annotated[str, Text(600)]
    error: Annotated[str | None, Text(LONGEST_ERROR)] = None


CATALOG_NOTE: Final = Codec(CatalogNote, "note of a catalog", VERSION, max_bytes=2**17)
