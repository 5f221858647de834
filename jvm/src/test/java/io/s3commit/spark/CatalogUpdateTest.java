package io.s3commit.spark;

import static io.s3commit.spark.Asserts.refused;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Where the jar can't keep Spark's catalog true it raises; tests/native has the rest. */
class CatalogUpdateTest {
  private static final FileSystem NOT_ASKED = null;

  @BeforeAll
  static void begin() {
    Statements.begin();
  }

  private static void afterNothing(Job.Replaces replaces, boolean tracked, String... known)
      throws IOException {
    WriteCommand.Table table =
        new WriteCommand.Table(
            "db.t", false, false, "parquet", tracked, Map.of(), Map.of(), Set.of(known), Map.of());
    WriteCommand insert =
        new WriteCommand(
            new Path("s3a://lake/t"), replaces, List.of("p"), "", Map.of(), false, table);
    CatalogUpdate.afterNothing(NOT_ASKED, insert, Set.of("p=1"));
  }

  /** Nothing runs here, so the command is not found. */
  @Test
  void anOverwriteThatWouldDropWhatOthersAddedRaises() {
    refused("ALREADY_COMMITTED", "keeps Spark from dropping",
        () -> afterNothing(Job.Replaces.DIRECTORY, true, "p=1/", "p=2/"));
  }

  @Test
  void whateverDropsNothingReturns() throws IOException {
    afterNothing(Job.Replaces.DIRECTORY, true, "p=1/");
    afterNothing(Job.Replaces.DIRECTORY, false, "p=1/", "p=2/");
    afterNothing(Job.Replaces.PARTITIONS, true, "p=1/", "p=2/");
    afterNothing(Job.Replaces.NOTHING, true, "p=1/", "p=2/");
  }
}
