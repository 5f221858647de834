"""Keys, conditions and settings: who may give them, and what is refused."""

from tests.native.case import Case, Differs, Program, Refused, Same
from tests.native.cases_frames import KEY, days, save
from tests.native.cases_sql import S, T
from tests.native.conftest import VERSION
from tests.native.sides import Side
from tests.spark.tiny import BUCKET

VIEW = (
    "INSERT OVERWRITE DIRECTORY '{{path}}' USING parquet SELECT * FROM s;\n"
    "CREATE OR REPLACE TEMPORARY VIEW v (id BIGINT, dt STRING)"
    " USING parquet OPTIONS (path '{{path}}'{});\n"
)
SETTINGS_ALONE = "takes the settings alone"


def table(how: str) -> str:
    return f"CREATE TABLE t (id BIGINT, dt STRING) USING parquet {how};\n"


def saved_as(**options: str) -> Program:
    return lambda side: side.frame().write.mode("append").options(**options).saveAsTable("t")


def twice(**options: str) -> Program:
    """The same rows two times."""

    def program(side: Side) -> None:
        for _ in range(2):
            save(side, **options)

    return program


OF_TABLES = [
    Case("a key in the session, for a table, on three days", days(), Same(says=SETTINGS_ALONE)),
    Case(
        "a key in the session, for insertInto, on three days",
        days(insert=True),
        Same(says=SETTINGS_ALONE),
        before=T,
    ),
    Case(
        "a key where a table is created",
        saved_as(idempotencyKey="k"),
        Refused("BAD_OPTIONS", "leave it out", says="where a table is created"),
    ),
    Case(
        "a key among a table's options",
        S,
        Refused("BAD_OPTIONS", "SET SERDEPROPERTIES", says="SET SERDEPROPERTIES"),
        before=table("OPTIONS ('idempotencyKey' = 'k')"),
    ),
    Case(
        "a key among a table's properties",
        saved_as(),
        Refused("BAD_OPTIONS", "UNSET TBLPROPERTIES", says="UNSET TBLPROPERTIES"),
        before=table("TBLPROPERTIES ('IDEMPOTENCYKEY' = 'k')"),
    ),
    Case(
        "a key that was among a table's options",
        S + S,
        before=table("OPTIONS ('idempotencyKey' = 'k')")
        + "ALTER TABLE t SET SERDEPROPERTIES ('idempotencyKey' = '');\nREFRESH TABLE t",
    ),
    Case(
        "a key that Spark drops",
        lambda side: side.frame().write.option("idempotencyKey", "k").insertInto("t"),
        Same(says="The jar can't see options that Spark drops"),
        before=table(""),
    ),
    Case(
        "a key among a view's options",
        "INSERT INTO v SELECT * FROM s",
        Refused("BAD_OPTIONS", "does not accept this option", says="a temporary view of files"),
        before=VIEW.format(", 'idempotencyKey' 'k'"),
    ),
    Case(
        "a temporary view of files",
        "INSERT INTO v SELECT * FROM s;\nINSERT INTO v SELECT * FROM s",
        before=VIEW.format(""),
    ),
    Case(
        "two inserts of one statement under one key",
        "FROM s INSERT INTO t SELECT * INSERT INTO t SELECT *",
        # Spark 3.5 runs one after the other, and under one key the second one adds nothing.
        Refused("SEVERAL_INSERTS", "under the key k", says="or under an idempotency key")
        if VERSION >= (4, 0)
        else Differs(6, 12, "the second one adds nothing"),
        before=table(""),
        settings={KEY: "k"},
    ),
    Case(
        "a note and labels, and a table's own properties of those names",
        S,
        Same(says="for people: a text, and names with values"),
        before=table("TBLPROPERTIES ('note' = 'the table\\'s', 'labels' = 'none')"),
        settings={"spark.s3commit.note": "ticket 7", "spark.s3commit.labels": "dag=sales,run=7"},
    ),
    Case(
        "a setting that is not Spark's",
        S + S,
        before=table(""),
        settings={"idempotencyKey": "k", "conditions.minFiles": "99"},
    ),
]

OF_PATHS = [
    Case(
        "a key in a write's options",
        twice(IDEMPOTENCYKEY="k"),
        Differs(6, 12, "Option names are case-insensitive"),
    ),
    Case(
        "a partition column whose directories readers skip",
        lambda side: (
            side.frame().selectExpr("id", "dt AS `.p`").write.partitionBy(".p").parquet(side.path)
        ),
        Refused("HIDDEN_PARTITION", "rename it", says="whose name starts with a dot"),
    ),
]

OF_PREFIXES = [
    Case(
        "a prefix that begins with s3://",
        twice(),
        Same(says="are one spelling"),
        settings={"spark.s3commit.prefixes": f"s3://{BUCKET}/"},
        by_s3=True,
    ),
    Case(
        "another class for what is not ours",
        twice(),
        Same(says="spark.s3commit.otherwise"),
        settings={
            "spark.s3commit.otherwise": (
                "org.apache.spark.internal.io.HadoopMapReduceCommitProtocol"
            )
        },
    ),
]

SUMMARY = Case(
    "summary files of Parquet's",
    twice(),
    Refused(
        "BAD_SETTING",
        "summary.metadata.level=NONE",
        says="Parquet's summary files (`parquet.summary.metadata.level`)",
    ),
    settings={"parquet.summary.metadata.level": "COMMON_ONLY"},
)

OPTIONS = [*OF_TABLES, *OF_PATHS, *OF_PREFIXES, SUMMARY]
