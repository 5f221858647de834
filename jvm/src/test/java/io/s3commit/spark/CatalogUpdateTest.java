package io.s3commit.spark;

import static io.s3commit.spark.Asserts.refused;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Where the jar can't keep Spark's catalog true it raises; tests/native has the rest. */
class CatalogUpdateTest {
  private static final Path TABLE = new Path("s3a://lake/db/t");
  private static final String CONFLICT = "keeps Spark from dropping";

  private static class Denied extends Statements.Disk {
    @Override
    public FileStatus[] listStatus(Path path) throws IOException {
      throw new AccessDeniedException(path.toString());
    }
  }

  /** Files in p=1 and p=2, none in others. */
  @BeforeEach
  void begin() {
    Statements.begin();
    Statements.put(new Path(TABLE, "p=1"), "part-0.parquet");
    Statements.put(new Path(TABLE, "p=2"), "part-0.parquet");
    Statements.put(new Path(TABLE, "p=3"), "_SUCCESS");
  }

  private static void afterNothing(
      FileSystem fs, Job.Replaces replaces, boolean tracked, String written, String... known)
      throws IOException {
    WriteCommand.Table table =
        new WriteCommand.Table(
            "db.t", false, false, "parquet", tracked, Map.of(), Map.of(), Set.of(known), Map.of());
    WriteCommand insert =
        new WriteCommand(TABLE, replaces, List.of("p"), "", Map.of(), false, table);
    fs.initialize(TABLE.toUri(), new Configuration(false));
    CatalogUpdate.afterNothing(fs, insert, Set.of(written));
  }

  private static void afterNothing(Job.Replaces replaces, String written, String... known)
      throws IOException {
    afterNothing(new Statements.Disk(), replaces, true, written, known);
  }

  /** No command runs here, so it is not found. */
  @Test
  void anOverwriteThatWouldDropWhatOthersAddedRaises() {
    refused("ALREADY_COMMITTED", CONFLICT,
        () -> afterNothing(Job.Replaces.DIRECTORY, "p=1", "p=1/", "p=2/"));
    refused("ALREADY_COMMITTED", CONFLICT,
        () -> afterNothing(new Denied(), Job.Replaces.DIRECTORY, true, "p=1", "p=1/", "p=2/"));
  }

  @Test
  void aPartitionWithoutFilesIsNotAdded() throws IOException {
    for (Job.Replaces replaces : Job.Replaces.values()) {
      refused("KEY_TAKEN", "p=3 has no files", () -> afterNothing(replaces, "p=3"));
      afterNothing(replaces, "p=1");
      afterNothing(new Denied(), replaces, true, "p=3");
    }
  }

  @Test
  void whateverSparkDoesRightlyIsLeftToIt() throws IOException {
    afterNothing(Job.Replaces.DIRECTORY, "p=1", "p=1/");
    afterNothing(Job.Replaces.DIRECTORY, "p=1", "p=1/", "p=3/"); // emptied by the earlier run
    afterNothing(new Statements.Disk(), Job.Replaces.DIRECTORY, false, "p=1", "p=1/", "p=2/");
    afterNothing(Job.Replaces.PARTITIONS, "p=1", "p=1/", "p=2/", "p=3/");
    afterNothing(Job.Replaces.NOTHING, "p=1", "p=1/", "p=2/", "p=3/");
  }
}
