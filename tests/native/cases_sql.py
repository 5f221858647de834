"""What SQL and catalogs write."""

from tests.native.case import Case, Same
from tests.native.conftest import VERSION

T = "CREATE TABLE t (id BIGINT, dt STRING) USING parquet PARTITIONED BY (dt);\n"
TWO = "CREATE TABLE t (id INT, a INT, b INT) USING parquet PARTITIONED BY (a, b);\n"
DYNAMIC = {"spark.sql.sources.partitionOverwriteMode": "dynamic"}
S = "INSERT INTO t SELECT * FROM s;\n"


INSERTS = [
    Case(
        "append, and overwrite a static partition that is there or new",
        S + "INSERT INTO t PARTITION (dt = 'static') SELECT id FROM s;\n"
        "INSERT OVERWRITE t PARTITION (dt = 'd1') SELECT 10;\n"
        "INSERT OVERWRITE t PARTITION (dt = 'new') SELECT 11;\n"
        "INSERT OVERWRITE t PARTITION (dt = 'a b/c=d') SELECT 12",
        before=T,
        by_s3=True,
    ),
    Case(
        "overwrite a table", S + "INSERT OVERWRITE t SELECT id, 'x' FROM s WHERE id < 2", before=T
    ),
    Case(
        "overwrite a table with no rows",
        S + "INSERT OVERWRITE t SELECT * FROM s WHERE false",
        before=T,
    ),
    Case(
        "static and mixed partitions, two levels",
        "INSERT OVERWRITE t PARTITION (a = 1, b) VALUES (9, 3);\n"
        "INSERT OVERWRITE t PARTITION (a = 2, b = 2) SELECT 1 WHERE false;\n"
        "INSERT OVERWRITE t PARTITION (a = 3, b = 1) VALUES (5)",
        before=TWO + "INSERT INTO t VALUES (1, 1, 1), (2, 1, 2), (3, 2, 1), (4, 2, 2)",
    ),
    Case(
        "a dynamic overwrite, all and mixed",
        "INSERT OVERWRITE t PARTITION (a, b) VALUES (7, 2, 1), (8, 2, 2);\n"
        "INSERT OVERWRITE t PARTITION (a = 1, b) VALUES (9, 3)",
        before=TWO + "INSERT INTO t VALUES (1, 1, 1), (2, 1, 2), (3, 2, 1)",
        settings=DYNAMIC,
        by_s3=True,
    ),
    Case(
        "a common table expression, and EXECUTE IMMEDIATE",
        "INSERT OVERWRITE t PARTITION (dt = 'd1')"
        " WITH few AS (SELECT id FROM s WHERE id > 3) SELECT * FROM few"
        + (
            ";\nEXECUTE IMMEDIATE 'INSERT OVERWRITE t PARTITION (dt = \"d2\") SELECT 1'"
            if VERSION >= (4, 0)
            else ""
        ),
        before=T + S,
    ),
    Case(
        "a table of Spark's without partitions in its catalog",
        "INSERT OVERWRITE t SELECT id FROM s;\nINSERT INTO t SELECT 9",
        before="CREATE TABLE t (id BIGINT) USING orc LOCATION '{apart}'",
        form="orc",
    ),
    Case(
        "Hive's Parquet tables, which Spark writes",
        "INSERT OVERWRITE TABLE t PARTITION (dt) SELECT id, dt FROM s;\n"
        "INSERT INTO t PARTITION (dt = 'last') SELECT max(id) FROM s;\n"
        "INSERT OVERWRITE TABLE t PARTITION (dt = 'd1') SELECT 7",
        before="CREATE TABLE t (id BIGINT) PARTITIONED BY (dt STRING) STORED AS PARQUET",
    ),
    Case(
        "no sort, so several files of a task are open side by side",
        S,
        before=T,
        settings={"spark.sql.maxConcurrentOutputFileWriters": "20"},
    ),
    Case("TRUNCATE, then append", "TRUNCATE TABLE t;\n" + S, before=T + S),
    Case(
        "a partition of Hive's that is dropped, added and filled again",
        "ALTER TABLE t DROP PARTITION (dt = 'd1');\nALTER TABLE t ADD PARTITION (dt = 'd1');\n"
        "INSERT INTO t PARTITION (dt = 'd1') SELECT id FROM s;\nMSCK REPAIR TABLE t",
        before="CREATE TABLE t (id BIGINT) PARTITIONED BY (dt STRING) STORED AS PARQUET;\n" + S,
    ),
    Case(
        "a table that dbt merges with its own rows, by way of another one",
        "CREATE TABLE m USING parquet AS SELECT * FROM t UNION ALL SELECT id + 10, dt FROM s;\n"
        "INSERT OVERWRITE TABLE t PARTITION (dt) SELECT * FROM m WHERE dt <> 'd0'",
        before=T + S,
        settings=DYNAMIC,
    ),
]

NEW_TABLES = [
    Case(
        "CREATE TABLE AS SELECT, by every format, and DROP, and again",
        "".join(
            f"CREATE TABLE {form} USING {form} PARTITIONED BY (dt) AS SELECT * FROM s;\n"
            f"DROP TABLE {form};\n"
            f"CREATE TABLE {form} USING {form} AS SELECT * FROM s WHERE id > 1;\n"
            for form in ("parquet", "orc", "json")
        )
        + "!CREATE TABLE json USING json AS SELECT * FROM s;\n"
        "CREATE TABLE IF NOT EXISTS json USING json AS SELECT 1 AS id;\n"
        "!CREATE OR REPLACE TABLE json USING json AS SELECT * FROM s",
    ),
    Case(
        "CREATE TABLE AS SELECT, Hive's",
        "CREATE TABLE t STORED AS PARQUET AS SELECT * FROM s;\n"
        "CREATE TABLE u PARTITIONED BY (dt) STORED AS PARQUET AS SELECT * FROM s",
    ),
    Case(
        "CREATE TABLE AS SELECT at a location, and a second one at the same",
        "CREATE TABLE t USING parquet LOCATION '{apart}' AS SELECT * FROM s;\n"
        "!CREATE TABLE u USING parquet LOCATION '{apart}' AS SELECT * FROM s",
        by_s3=True,
    ),
    Case(
        "buckets, sorted",
        "CREATE TABLE t USING parquet CLUSTERED BY (id) SORTED BY (dt) INTO 3 BUCKETS"
        " AS SELECT id, dt FROM s;\nINSERT INTO t SELECT id + 10, dt FROM s;\n"
        "INSERT OVERWRITE t SELECT id + 20, dt FROM s",
    ),
    Case(
        "tables of Hive's own writers",
        "INSERT INTO t SELECT dt FROM s;\nINSERT OVERWRITE TABLE t SELECT dt FROM s WHERE id > 2",
        Same(jobs=False, says="tables of Hive's own writers"),
        before="CREATE TABLE t (dt STRING) STORED AS TEXTFILE",
    ),
]

DIRECTORIES = [
    Case(
        "INSERT OVERWRITE DIRECTORY USING",
        "INSERT OVERWRITE DIRECTORY '{path}' USING parquet SELECT * FROM s;\n"
        "INSERT OVERWRITE DIRECTORY '{path}' USING parquet SELECT * FROM s WHERE id > 3",
    ),
    Case(
        "INSERT OVERWRITE DIRECTORY STORED AS what Spark writes",
        "INSERT OVERWRITE DIRECTORY '{path}' STORED AS PARQUET SELECT * FROM s",
    ),
    Case(
        "INSERT OVERWRITE DIRECTORY STORED AS what Hive writes",
        "INSERT OVERWRITE DIRECTORY '{path}' STORED AS TEXTFILE SELECT dt FROM s",
        Same(jobs=False, says="STORED AS TEXTFILE"),
        form="text",
    ),
]

SQL = [*INSERTS, *NEW_TABLES, *DIRECTORIES]
