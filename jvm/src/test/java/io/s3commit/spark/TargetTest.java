package io.s3commit.spark;

import static io.s3commit.spark.Inserts.OUTPUT;
import static io.s3commit.spark.Inserts.PLAIN;
import static io.s3commit.spark.Inserts.assertRefused;
import static io.s3commit.spark.Inserts.created;
import static io.s3commit.spark.Inserts.partitioned;
import static io.s3commit.spark.Inserts.toPath;
import static io.s3commit.spark.Inserts.toTable;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;

/** What the job of each kind of write is to do. */
class TargetTest {
  private static final Path DAY = new Path("s3a://lake/db/t/dt=1");
  private static final Path FLAT = new Path("s3a://lake/db/t/2026/11/21");

  private static Target of(Insert insert, Path... deleted) throws CommitException {
    return Target.of(insert, List.of(deleted), Map.of());
  }

  private static void assertIs(Path destination, Job.Replaces replaces, Target target) {
    assertEquals(destination, target.destination());
    assertEquals(replaces, target.replaces());
  }

  @Test
  void writesToAPath() throws CommitException {
    assertIs(OUTPUT, Job.Replaces.NOTHING, of(toPath(false, false, Map.of())));
    assertIs(OUTPUT, Job.Replaces.DIRECTORY, of(toPath(true, false, Map.of())));
    assertIs(OUTPUT, Job.Replaces.DIRECTORY, of(toPath(true, false, Map.of()), OUTPUT));
    assertIs(OUTPUT, Job.Replaces.PARTITIONS, of(toPath(true, true, Map.of())));
    assertEquals("", of(toPath(true, false, Map.of())).catalog());
  }

  @Test
  void writesToATable() throws CommitException {
    Insert.Table table = partitioned(Map.of());
    assertIs(OUTPUT, Job.Replaces.NOTHING, of(toTable(PLAIN, false, false, "")));
    assertIs(OUTPUT, Job.Replaces.NOTHING, of(toTable(table, false, false, "dt=1/")));
    assertIs(OUTPUT, Job.Replaces.DIRECTORY, of(toTable(table, true, false, ""), OUTPUT));
    assertIs(OUTPUT, Job.Replaces.PARTITIONS, of(toTable(table, true, true, "a=1/")));
    assertIs(OUTPUT, Job.Replaces.DIRECTORY, of(toTable(created(false, false, Map.of()), true, false, "")));
  }

  @Test
  void i6_aStaticPartitionIsTheDestinationWhetherItExistsOrNot() throws CommitException {
    Insert insert = toTable(partitioned(Map.of()), true, false, "dt=1/");
    assertIs(DAY, Job.Replaces.DIRECTORY, of(insert));
    assertIs(DAY, Job.Replaces.DIRECTORY, of(insert, DAY));
  }

  @Test
  void i10_aDeleteThatTheStatementDoesNotMeanIsRefused() {
    Path other = new Path("s3a://lake/db/t/dt=2");
    Insert insert = toTable(partitioned(Map.of()), true, false, "dt=1/");
    assertRefused("UNKNOWN_WRITE", other.toString(), () -> of(insert, DAY, other));
    assertRefused("UNKNOWN_WRITE", "", () -> of(toPath(false, false, Map.of()), OUTPUT));
  }

  @Test
  void aPartitionInTheTableUnderAnotherNameIsOrdinary() throws CommitException {
    Path otherScheme = new Path("s3://lake/db/t/2026/11/21");
    for (Path place : List.of(FLAT, otherScheme)) {
      Insert.Table table = partitioned(Map.of("dt=1/", place));
      assertIs(OUTPUT, Job.Replaces.NOTHING, of(toTable(table, false, false, "")));
      assertIs(OUTPUT, Job.Replaces.DIRECTORY, of(toTable(table, true, false, ""), OUTPUT, place));
      assertIs(OUTPUT, Job.Replaces.PARTITIONS, of(toTable(table, true, true, "")));
      assertIs(FLAT, Job.Replaces.DIRECTORY, of(toTable(table, true, false, "dt=1/"), DAY, place));
    }
  }

  @Test
  void aPartitionOutsideOfTheTableIsRefused() {
    for (String place : List.of("s3a://lake/other", "s3a://else/db/t/dt=1", "s3a://lake/db/t", "s3a://lake/db/t/_x/1")) {
      Insert.Table table = partitioned(Map.of("dt=1/", new Path(place)));
      for (boolean overwrites : List.of(true, false)) {
        assertRefused("PARTITION_ELSEWHERE", "partition dt=1 of db.t lies at " + place,
            () -> of(toTable(table, overwrites, false, "")));
      }
      assertRefused("PARTITION_ELSEWHERE", "SET LOCATION", () -> of(toTable(table, true, true, "")));
      assertRefused("PARTITION_ELSEWHERE", "dt=1", () -> of(toTable(table, true, false, "dt=1/")));
    }
  }

  @Test
  void aPartitionOutsideOfWhatIsReplacedIsRefused() throws CommitException {
    Insert.Table table = partitioned(Map.of("a=1/b=9/", FLAT));
    assertRefused(
        "PARTITION_ELSEWHERE",
        "the directory that is replaced, s3a://lake/db/t/a=1",
        () -> of(toTable(table, true, false, "a=1/")));
    assertIs(OUTPUT, Job.Replaces.PARTITIONS, of(toTable(table, true, true, "a=1/")));
  }

  @Test
  void whatTheCatalogLacksIsSaidWithTheStatementThatMendsIt() throws CommitException {
    assertEquals("", of(toTable(PLAIN, false, false, "")).catalog());
    assertSays("run MSCK REPAIR TABLE db.t.", toTable(partitioned(Map.of()), false, false, ""));
    assertSays(
        "run MSCK REPAIR TABLE db.t SYNC PARTITIONS.",
        toTable(partitioned(Map.of()), true, false, ""));
    assertSays(
        "CREATE TABLE db.t USING orc LOCATION 's3a://lake/db/t' makes it.",
        toTable(created(false, false, Map.of()), true, false, ""));
    assertSays(
        "MSCK REPAIR TABLE db.t", toTable(created(false, true, Map.of()), true, false, ""));
    assertSays(
        "run the statement again", toTable(created(true, true, Map.of()), true, false, ""));
  }

  private static void assertSays(String words, Insert insert) throws CommitException {
    String catalog = of(insert).catalog();
    assertTrue(catalog.contains(words), catalog);
  }

  @Test
  void i10_severalInsertsThatDifferAreRefused() throws CommitException {
    Insert append = toTable(PLAIN, false, false, "");
    Insert overwrite = toTable(PLAIN, true, false, "");
    Insert dynamic = toTable(PLAIN, true, true, "");
    Insert one = toTable(PLAIN, true, false, "dt=1/");
    Insert two = toTable(PLAIN, true, false, "dt=2/");
    Insert another = new Insert(new Path("s3a://lake/db/other"), true, false, "", Map.of(), PLAIN);
    Insert.refuseDifferent(List.of(append, append, another));
    for (List<Insert> different :
        List.of(
            List.of(append, overwrite),
            List.of(overwrite, dynamic),
            List.of(one, two),
            List.of(another, one, append))) {
      assertRefused(
          "SEVERAL_INSERTS", "a statement of each INSERT", () -> Insert.refuseDifferent(different));
    }
  }

  @Test
  void pathsAreComparedWithoutTheirScheme() {
    assertEquals("dt=1/", Target.relative(new Path("s3://lake/db/t"), DAY));
    assertEquals("", Target.relative(OUTPUT, OUTPUT));
    assertNull(Target.relative(OUTPUT, new Path("s3a://lake/db/t2")));
    assertNull(Target.relative(OUTPUT, new Path("s3a://other/db/t/dt=1")));
  }
}
