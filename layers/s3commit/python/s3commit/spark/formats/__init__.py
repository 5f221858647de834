"""The file formats that a task can write, and the codecs of each; names as Spark has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class FileFormat:
    """``suffixes``: what file names end in, by codec, as Spark's own writer ends them.

    ``default`` is the codec that Spark takes when none is asked for.
    """

    suffixes: Mapping[str, str]
    default: str

    @property
    def codecs(self) -> tuple[str, ...]:
        """The names that the option ``compression`` takes."""
        return tuple(self.suffixes)


# Not here: what Arrow can't write (orc lzo), or writes in a form of its own (lz4 and snappy text
# are Hadoop's), and zstd text, which Spark reads with Hadoop's native library alone.
FORMATS: Final[Mapping[str, FileFormat]] = {
    "parquet": FileFormat(
        {
            "snappy": ".snappy.parquet",
            "zstd": ".zstd.parquet",
            "gzip": ".gz.parquet",
            "lz4": ".lz4raw.parquet",
            "none": ".parquet",
        },
        default="snappy",
    ),
    "orc": FileFormat(
        {
            "zstd": ".zstd.orc",
            "snappy": ".snappy.orc",
            "zlib": ".zlib.orc",
            "lz4": ".lz4.orc",
            "none": ".orc",
        },
        default="zstd",
    ),
    "csv": FileFormat({"none": ".csv", "gzip": ".csv.gz", "bzip2": ".csv.bz2"}, default="none"),
    "json": FileFormat({"none": ".json", "gzip": ".json.gz", "bzip2": ".json.bz2"}, default="none"),
}
