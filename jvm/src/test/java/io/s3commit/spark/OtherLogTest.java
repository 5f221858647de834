package io.s3commit.spark;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;

/** Logs that are not the first thing to be seen. */
class OtherLogTest {
  private static final int A_PAGE = 1_000;

  @Test
  void anIcebergTableIsSeenBehindItsManifests() throws IOException {
    Path table = new Path("s3a://lake/iceberg");
    Path metadata = new Path(table, "metadata");
    try (FileSystem fs = new Statements.Disk()) {
      fs.initialize(table.toUri(), new Configuration());
      for (int number = 0; number <= A_PAGE; number++) {
        fs.create(new Path(metadata, number + "-m0.avro")).close();
      }
      OtherLog.check(fs, table);
      fs.create(new Path(metadata, "version-hint.text")).close();
      Asserts.refused("OTHER_LOG", "is a table of Iceberg", () -> OtherLog.check(fs, table));
    }
  }
}
