package io.s3commit.spark;

import static io.s3commit.spark.Statements.PATH;
import static io.s3commit.spark.Statements.TABLE;
import static io.s3commit.spark.Statements.of;
import static io.s3commit.spark.Statements.with;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What the job of each kind of write is to do, by the commands that Spark makes of it. */
class TargetTest {
  private static final String MODE = "spark.sql.sources.partitionOverwriteMode";
  private static final String KEY = "spark.s3commit.idempotencyKey";
  private static final Path DAY = new Path(TABLE, "dt=d1");

  @BeforeEach
  void tables() {
    Statements.begin(
        "CREATE TABLE t (id BIGINT, dt STRING) USING parquet PARTITIONED BY (dt)",
        "CREATE TABLE plain (id BIGINT, dt STRING) USING orc",
        "CREATE TABLE two (id INT, a INT, b INT) USING parquet PARTITIONED BY (a, b)");
  }

  private static void assertIs(Path destination, Job.Replaces replaces, Target target) {
    assertEquals(destination, target.destination());
    assertEquals(replaces, target.replaces());
  }

  private static void assertRefused(String code, String words, Statements.Write write) {
    Asserts.refused(code, words, () -> of(write));
  }

  private static void assertRefused(String code, String words, String statement) {
    Asserts.refused(code, words, () -> of(statement));
  }

  private static Dataset<Row> rows(SparkSession session) {
    return session.table("s");
  }

  @Test
  void writesToAPath() throws CommitException {
    String path = PATH + "/new";
    for (Map.Entry<String, Job.Replaces> mode :
        Map.of(
                "append", Job.Replaces.NOTHING,
                "error", Job.Replaces.NONE_MAY_BE,
                "ignore", Job.Replaces.IGNORED_IF_ANY,
                "overwrite", Job.Replaces.DIRECTORY)
            .entrySet()) {
      Target target = of(s -> rows(s).write().mode(mode.getKey()).save(path));
      assertIs(new Path(path), mode.getValue(), target);
      assertEquals("", target.catalog());
    }
    Statements.Write dynamic =
        s ->
            rows(s).write().mode("overwrite").partitionBy("dt")
                .option("partitionOverwriteMode", "dynamic").save(path);
    assertIs(new Path(path), Job.Replaces.PARTITIONS, of(dynamic));
    assertIs(
        new Path(path), Job.Replaces.PARTITIONS,
        with("spark.sql.sources.useV1SourceList", "", dynamic));
  }

  @Test
  void anOverwriteOfAPathThatExistsReplacesIt() throws CommitException {
    Statements.put(PATH, "part-0");
    assertIs(PATH, Job.Replaces.DIRECTORY,
        of(s -> rows(s).write().mode("overwrite").parquet(PATH.toString())));
    assertIs(PATH, Job.Replaces.DIRECTORY,
        of("INSERT OVERWRITE DIRECTORY '" + PATH + "' USING parquet SELECT * FROM s"));
  }

  @Test
  void writesToATable() throws CommitException {
    assertIs(TABLE, Job.Replaces.NOTHING, of("INSERT INTO t SELECT * FROM s"));
    assertIs(TABLE, Job.Replaces.NOTHING, of("INSERT INTO t PARTITION (dt = 'd1') SELECT 1"));
    assertIs(TABLE, Job.Replaces.DIRECTORY, of("INSERT OVERWRITE t SELECT * FROM s"));
    assertIs(
        TABLE, Job.Replaces.PARTITIONS,
        with(MODE, "dynamic", "INSERT OVERWRITE t SELECT * FROM s"));
    Statements.Write append =
        s -> rows(s).write().mode("append").partitionBy("dt").saveAsTable("t");
    assertIs(TABLE, Job.Replaces.NOTHING, of(append));
    assertIs(TABLE, Job.Replaces.NOTHING, of(s -> rows(s).write().insertInto("t")));
    assertIs(
        TABLE, Job.Replaces.DIRECTORY,
        of(s -> rows(s).write().mode("overwrite").insertInto("t")));
    assertIs(
        new Path("s3a://lake/db/plain"), Job.Replaces.DIRECTORY,
        with(MODE, "dynamic", "INSERT OVERWRITE plain SELECT * FROM s"));
  }

  @Test
  void i6_aStaticPartitionIsTheDestinationWhetherItExistsOrNot() throws CommitException {
    String insert = "INSERT OVERWRITE t PARTITION (DT = 'd1') SELECT id FROM s";
    for (String mode : List.of("static", "dynamic")) {
      assertIs(DAY, Job.Replaces.DIRECTORY, with(MODE, mode, insert));
      Statements.begin(
          "CREATE TABLE t (id BIGINT, dt STRING) USING parquet PARTITIONED BY (dt)",
          "ALTER TABLE t ADD PARTITION (dt = 'd1')");
      Statements.put(DAY, "part-0");
      assertIs(DAY, Job.Replaces.DIRECTORY, with(MODE, mode, insert));
    }
  }

  @ParameterizedTest
  @CsvSource(quoteCharacter = '"', value = {
    "t PARTITION (dt = 'a b/c') SELECT 1, t/dt=a b%2Fc",
    "t PARTITION (dt = NULL) SELECT 1, t/dt=__HIVE_DEFAULT_PARTITION__",
    "\"two PARTITION (a = '01', b) SELECT 1, 2\", two/a=1",
    "\"two PARTITION (a = 1, b = '02') SELECT 1\", two/a=1/b=2",
  })
  void i6_thePartitionIsNamedAsSparkNamesIt(String insert, String partition) throws CommitException {
    assertIs(
        new Path("s3a://lake/db/" + partition), Job.Replaces.DIRECTORY,
        of("INSERT OVERWRITE " + insert));
  }

  @Test
  void aMixedOverwriteReplacesWhatItWritesIfItIsDynamic() throws CommitException {
    String insert = "INSERT OVERWRITE two PARTITION (a = 1, b) SELECT 1, 2";
    assertIs(new Path("s3a://lake/db/two/a=1"), Job.Replaces.DIRECTORY, of(insert));
    assertIs(
        new Path("s3a://lake/db/two"), Job.Replaces.PARTITIONS, with(MODE, "dynamic", insert));
  }

  @Test
  void i10_aDeleteThatTheStatementDoesNotMeanIsRefused() throws CommitException {
    for (String insert :
        List.of(
            "INSERT OVERWRITE t PARTITION (dt = 'd1') SELECT 1",
            "INSERT INTO t SELECT * FROM s")) {
      WriteCommand one = Statements.insert(insert);
      Path other = new Path(TABLE, "dt=d2");
      Asserts.refused(
          "UNKNOWN_WRITE", other.toString(),
          () -> Target.of(one, List.of(other), Map.of()));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"s3a", "s3"})
  void aPartitionInTheTableUnderAnotherNameIsOrdinary(String scheme) throws CommitException {
    Path flat = new Path(TABLE, "2026/11/21");
    Statements.sql(
        "ALTER TABLE t ADD PARTITION (dt = 'd1') LOCATION '" + scheme + "://lake/db/t/2026/11/21'");
    assertIs(TABLE, Job.Replaces.NOTHING, of("INSERT INTO t SELECT * FROM s"));
    assertIs(TABLE, Job.Replaces.DIRECTORY, of("INSERT OVERWRITE t SELECT * FROM s"));
    assertIs(
        TABLE, Job.Replaces.PARTITIONS,
        with(MODE, "dynamic", "INSERT OVERWRITE t SELECT * FROM s"));
    assertIs(
        flat, Job.Replaces.DIRECTORY, of("INSERT OVERWRITE t PARTITION (dt = 'd1') SELECT 1"));
    Statements.put(DAY, "part-0");
    Statements.put(flat, "part-0");
    assertIs(
        flat, Job.Replaces.DIRECTORY, of("INSERT OVERWRITE t PARTITION (dt = 'd1') SELECT 1"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"s3a://lake/other", "s3a://else/db/t/dt=1", "s3a://lake/db/t", "s3a://lake/db/t/_x/1"})
  void aPartitionOutsideOfTheTableIsRefused(String place) throws CommitException {
    Statements.sql("ALTER TABLE t ADD PARTITION (dt = 'd1') LOCATION '" + place + "'");
    String words = "partition dt=d1 of db.t is at " + place;
    assertRefused("PARTITION_ELSEWHERE", words, "INSERT INTO t SELECT * FROM s");
    assertRefused("PARTITION_ELSEWHERE", words, "INSERT OVERWRITE t SELECT * FROM s");
    assertRefused(
        "PARTITION_ELSEWHERE", "SET LOCATION",
        s -> with(MODE, "dynamic", "INSERT OVERWRITE t SELECT * FROM s"));
    assertRefused(
        "PARTITION_ELSEWHERE", words, "INSERT INTO t PARTITION (dt = 'd1') SELECT 1");
    assertIs(
        new Path(TABLE, "dt=d2"), Job.Replaces.DIRECTORY,
        of("INSERT OVERWRITE t PARTITION (dt = 'd2') SELECT 1"));
  }

  @Test
  void aPartitionOutsideOfWhatIsReplacedIsRefused() throws CommitException {
    Statements.sql("ALTER TABLE two ADD PARTITION (a = 1, b = 9) LOCATION 's3a://lake/db/two/flat'");
    String insert = "INSERT OVERWRITE two PARTITION (a = 1, b) SELECT 1, 2";
    assertRefused(
        "PARTITION_ELSEWHERE", "the directory that is replaced, s3a://lake/db/two/a=1", insert);
    assertIs(new Path("s3a://lake/db/two"), Job.Replaces.PARTITIONS, with(MODE, "dynamic", insert));
  }

  @Test
  void aNewTableIsReplacedAndTheCatalogLacksIt() throws CommitException {
    Path created = new Path("s3a://lake/db/new");
    Target plain = of("CREATE TABLE new USING orc AS SELECT * FROM s");
    assertIs(created, Job.Replaces.DIRECTORY, plain);
    assertEnds("CREATE TABLE db.new USING orc LOCATION 's3a://lake/db/new' makes it.", plain);
    Target elsewhere =
        of("CREATE TABLE new USING json PARTITIONED BY (dt) LOCATION '" + PATH + "/new' AS SELECT * FROM s");
    assertIs(new Path(PATH, "new"), Job.Replaces.DIRECTORY, elsewhere);
    assertEnds("makes it, and then MSCK REPAIR TABLE db.new its partitions.", elsewhere);
    for (String mode : List.of("append", "overwrite", "error")) {
      Target saved = of(s -> rows(s).write().mode(mode).saveAsTable("new"));
      assertIs(created, Job.Replaces.DIRECTORY, saved);
      assertEnds("CREATE TABLE db.new USING parquet LOCATION 's3a://lake/db/new' makes it.", saved);
    }
    assertIs(
        created, Job.Replaces.DIRECTORY,
        of(s -> rows(s).write().bucketBy(2, "id").sortBy("id").saveAsTable("new")));
  }

  @Test
  void whatTheCatalogLacksOfATableThatExists() throws CommitException {
    assertEquals("", of("INSERT INTO plain SELECT * FROM s").catalog());
    assertEnds("run MSCK REPAIR TABLE db.t.", of("INSERT INTO t SELECT * FROM s"));
    String insert = "INSERT OVERWRITE t SELECT * FROM s";
    assertEnds("run MSCK REPAIR TABLE db.t SYNC PARTITIONS.", of(insert));
    assertEnds("run MSCK REPAIR TABLE db.t.", with(MODE, "dynamic", insert));
  }

  /** The session of these tests has no Hive, which makes such tables. */
  @Test
  void whatTheCatalogLacksOfHivesNewTable() throws CommitException {
    WriteCommand.Table table =
        new WriteCommand.Table("db.t", true, true, "hive", false, Map.of(), Map.of(), Set.of(), Map.of());
    WriteCommand insert =
        new WriteCommand(TABLE, Job.Replaces.DIRECTORY, List.of(), "", Map.of(), false, table);
    assertEnds("run the statement again.", Target.of(insert, List.of(), Map.of()));
  }

  private static void assertEnds(String words, Target target) {
    assertTrue(target.catalog().endsWith(words), target.catalog());
  }

  @Test
  void optionsAreThoseOfTheWriteOrTheSession() throws CommitException {
    Statements.Write write =
        s -> rows(s).write().mode("append").option("IDEMPOTENCYKEY", "own").parquet(PATH.toString());
    assertEquals("own", with(KEY, "session", write).options().idempotencyKey());
    String directory =
        "INSERT OVERWRITE DIRECTORY '" + PATH + "' USING parquet OPTIONS ('Conditions.minFiles' '2') SELECT * FROM s";
    assertEquals(2, of(directory).options().minFiles());
    assertEquals("day",
        with(KEY, "day", "CREATE TABLE new USING orc AS SELECT 1 AS id").options().idempotencyKey());
  }

  @Test
  void anOptionWhereATableIsCreatedIsRefused() {
    assertRefused(
        "BAD_OPTIONS", "leave it out, and set spark.s3commit.idempotencyKey in the session",
        s -> rows(s).writeTo("db.new").using("parquet").option("idempotencykey", "a").create());
    assertRefused(
        "BAD_OPTIONS", "leave it out",
        "CREATE TABLE new USING parquet TBLPROPERTIES ('conditions.minFiles' '5') AS SELECT * FROM s");
  }

  /** Spark 4 runs them as one plan, which Spark 3 makes as well. */
  @ParameterizedTest
  @ValueSource(strings = {
    "INSERT INTO t SELECT * INSERT OVERWRITE t SELECT *",
    "INSERT INTO t PARTITION (dt = 'a') SELECT id INSERT INTO t PARTITION (dt = 'b') SELECT id",
    "INSERT OVERWRITE t PARTITION (dt = 'a') SELECT id INSERT OVERWRITE t PARTITION (dt = 'b') SELECT id",
    "INSERT INTO plain SELECT * INSERT INTO t SELECT * INSERT OVERWRITE t SELECT *",
  })
  void i10_severalInsertsThatDifferAreRefused(String inserts) throws CommitException {
    for (Path output : Set.of(TABLE, new Path("s3a://lake/db/plain"))) {
      Asserts.refused(
          "SEVERAL_INSERTS", "a statement of each INSERT",
          () -> WriteCommand.in(Statements.analyzed("FROM s " + inserts), output, false));
    }
  }

  @Test
  void i11_severalInsertsThatAreAlikeAreOneAfterTheOtherButForAKey() throws CommitException {
    WriteCommand insert = Statements.insert("FROM s INSERT INTO t SELECT * INSERT INTO t SELECT *");
    assertIs(TABLE, Job.Replaces.NOTHING, Target.of(insert, List.of(), Map.of()));
    Asserts.refused(
        "SEVERAL_INSERTS", "one alone would add its rows under the key k",
        () -> Target.of(insert, List.of(), Map.of("idempotencyKey", "k")));
  }

  @Test
  void pathsAreComparedWithoutTheirScheme() {
    assertEquals("dt=d1/", Target.relative(new Path("s3://lake/db/t"), DAY));
    assertEquals("", Target.relative(TABLE, TABLE));
    assertNull(Target.relative(TABLE, new Path("s3a://lake/db/t2")));
    assertNull(Target.relative(TABLE, new Path("s3a://other/db/t/dt=1")));
  }
}
