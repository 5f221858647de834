"""Prints what docs/guide/refused_writes.md says of Parquet's settings: what `write` makes of each.

A test compares all of them with the names that the running Spark has; the page leaves out the
harmless ones.
"""

import sys
from typing import Final

from s3commit.spark.settings import FIELD_IDS, RULES

# Of `RULES`, in their order.
REFUSED: Final = (
    "refused: files would not be encrypted as Parquet's modular encryption does",
    "`true` is refused: files have no Bloom filters",
    "`false` is refused: all but some floats have statistics",
    "`true` is refused: files have the standard's lists and decimals",
    "files have `TIMESTAMP_MICROS`; another value is refused where a column holds timestamps",
    "files have `CORRECTED`; `LEGACY` is refused where a column holds dates or timestamps",
    "the same, where a column holds timestamps",
    "a value other than `NONE` is refused: no summary files are written",
    "`true` is refused: no summary files are written",
    "harmless if the class only commits, as Parquet's, Hadoop's, Spark's and EMR's own do;"
    " another is refused: it would not be called",
)
# The first row with a name holds: what is refused, then what is obeyed or harmless.
TABLE: Final = (
    *((rule.names, words) for rule, words in zip(RULES, REFUSED, strict=True)),
    (
        (
            "spark.sql.parquet.compression.codec",
            "spark.sql.files.maxRecordsPerFile",
            "spark.sql.sources.partitionOverwriteMode",
        ),
        "obeyed, unless a keyword says otherwise",
    ),
    ((FIELD_IDS,), "obeyed"),
    (
        (
            "spark.sql.session.timeZone",
            "spark.sql.ansi.enabled",
            "spark.sql.legacy.charVarcharAsString",
        ),
        "obeyed: Spark itself casts the values of partitions",
    ),
    (
        (
            "parquet.block.*",
            "parquet.page.size*",
            "parquet.page.row.count.limit",
            "parquet.page.value.count.threshold",
            "parquet.page.write-checksum.enabled",
            "parquet.dictionary.page.size*",
            "parquet.enable.dictionary*",
            "parquet.enable.bytestreamsplit*",
            "parquet.bloom.filter.*",
            "parquet.columnindex.truncate.length",
            "parquet.statistics.truncate.length",
            "parquet.size.statistics.enabled*",
            "parquet.memory.*",
            "parquet.writer.*",
            "spark.sql.parquet.variant.*",
            "spark.sql.variant.*",
        ),
        "harmless: how a file is laid out inside; any reader gets the same rows. Row groups have 64"
        " MB of Arrow data, pages are of version 1, a column has a dictionary where it saves space",
    ),
    (
        (
            "parquet.compression*",
            "parquet.write.support.class",
            "parquet.validation",
            "spark.sql.sources.commitProtocolClass",
            "spark.sql.sources.outputCommitterClass",
        ),
        "harmless: Spark sets them itself, or they are of commits, which `write` does itself",
    ),
    (
        (
            "spark.sql.optimizer.plannedWrite.enabled",
            "spark.sql.maxConcurrentOutputFileWriters",
            "spark.sql.legacy.allowEmptySchemaWrite",
            "spark.sql.legacy.dataFrameWriterV2IgnorePathOption",
            "spark.sql.streaming.disabledV2Writers",
        ),
        "harmless: of Spark's own plans for writes",
    ),
    (
        (
            "parquet.read.*",
            "parquet.filter.*",
            "parquet.private.*",
            "parquet.page.verify-checksum.enabled",
            "parquet.strict.typing",
            "parquet.split.files",
            "parquet.task.side.metadata",
            "parquet.hadoop.vectored.io.enabled",
            "parquet.decrypt.off-heap.buffer.enabled",
            "spark.sql.parquet.aggregatePushdown",
            "spark.sql.parquet.binaryAsString",
            "spark.sql.parquet.columnarReaderBatchSize",
            "spark.sql.parquet.enable*VectorizedReader",
            "spark.sql.parquet.fieldId.read.*",
            "spark.sql.parquet.filterPushdown*",
            "spark.sql.parquet.ignoreVariantAnnotation",
            "spark.sql.parquet.inferTimestampNTZ.enabled",
            "spark.sql.parquet.int96AsTimestamp",
            "spark.sql.parquet.int96TimestampConversion",
            "spark.sql.parquet.mergeSchema",
            "spark.sql.parquet.pushdown.*",
            "spark.sql.parquet.reader.*",
            "spark.sql.parquet.recordLevelFilter.enabled",
            "spark.sql.parquet.respectSummaryFiles",
            "spark.sql.parquet.*InRead",
            "spark.sql.legacy.parquet.*InRead",
            "spark.sql.legacy.parquet.nanosAsLong",
            "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing",
        ),
        "harmless: of readers",
    ),
    (
        ("spark.sql.avro.*", "spark.sql.orc.*", "spark.sql.json*", "spark.sql.legacy.avro.*"),
        "harmless: of other formats",
    ),
)


def rows() -> str:
    """The page's table, in the order of `TABLE`."""
    return "".join(
        f"| {', '.join(f'`{name}`' for name in names)} | {words} |\n"
        for names, words in TABLE
        if not words.startswith("harmless:")
    )


if __name__ == "__main__":
    sys.stdout.write(rows())
