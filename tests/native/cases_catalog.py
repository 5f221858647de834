"""What a catalog knows and a path does not: partitions elsewhere, statements of several inserts."""

from tests.native.case import Case, Refused, Same
from tests.native.cases_sql import DYNAMIC, S, T
from tests.native.conftest import VERSION


def ctas_fails_once(form: str) -> str:
    fails = "SELECT id, CAST(raise_error('no') AS STRING) AS dt FROM range(0, 9, 1, 1)"
    return (
        f"!CREATE TABLE t {form} AS {fails};\nDROP TABLE IF EXISTS t;\n"
        f"CREATE TABLE t {form} AS SELECT * FROM s"
    )


# Spark 3.5 runs one after the other.
SEVERAL = Refused("SEVERAL_INSERTS", "", says="Several inserts in one statement")
SEVERAL_INSERTS = [
    Case(
        f"several inserts in one statement: {name}",
        f"FROM s {first} {second}",
        SEVERAL if "OVERWRITE" in second and VERSION >= (4, 0) else Same(),
        before=T + S,
    )
    for name, first, second in (
        (
            "the second overwrites a new partition",
            "INSERT OVERWRITE t PARTITION (dt = 'd0') SELECT id WHERE id = 0",
            "INSERT OVERWRITE t PARTITION (dt = 'e') SELECT id WHERE id = 1",
        ),
        (
            "two appends",
            "INSERT INTO t PARTITION (dt = 'd0') SELECT id WHERE id = 0",
            "INSERT INTO t PARTITION (dt = 'd0') SELECT id WHERE id = 1",
        ),
    )
]

RENAMED = (
    "ALTER TABLE t ADD PARTITION (dt = 'd1') LOCATION '{apart}/2026/11/21';\n"
    "ALTER TABLE t ADD PARTITION (dt = 'd2') LOCATION '{apart}/2026/11/22';\n"
    "INSERT INTO t PARTITION (dt = 'd0') SELECT 100"
)
EXTERNAL = T.replace(";", " LOCATION '{apart}';")
# In the table's bucket, beside its directory.
OUTSIDE = "ALTER TABLE t ADD PARTITION (dt = 'd1') LOCATION '{apart}';\n"

PLACES = [
    *(
        Case(
            f"partitions in the table's directory under another name: {name}",
            write,
            before=EXTERNAL + RENAMED,
            settings=settings,
        )
        for name, write, settings in (
            ("append", S + S, {}),
            ("overwrite all", S + "INSERT OVERWRITE t SELECT id + 10, dt FROM s", {}),
            ("overwrite one", S + "INSERT OVERWRITE t PARTITION (dt = 'd1') SELECT 11", {}),
            (
                "dynamic",
                S + "INSERT OVERWRITE t SELECT id + 10, dt FROM s WHERE dt <> 'd0'",
                DYNAMIC,
            ),
        )
    ),
    Case(
        "a partition outside",
        "INSERT OVERWRITE t PARTITION (dt = 'd1') SELECT 11",
        Refused("PARTITION_ELSEWHERE", "outside", says="Partitions outside the table's directory"),
        before=T + OUTSIDE,
    ),
    Case(
        "a partition outside, and a write to another one",
        "INSERT OVERWRITE t PARTITION (dt = 'd2') SELECT 11;\n"
        "INSERT INTO t PARTITION (dt = 'd2') SELECT 12",
        before=T + OUTSIDE,
    ),
]

FAILED = [
    Case(f"CREATE TABLE {form} AS SELECT fails, and again", ctas_fails_once(form))
    for form in (
        "USING parquet",
        "USING parquet LOCATION '{apart}'",
        "USING orc PARTITIONED BY (dt)",
        "STORED AS PARQUET",  # Hive's
    )
]
CATALOG = [*SEVERAL_INSERTS, *PLACES, *FAILED]
