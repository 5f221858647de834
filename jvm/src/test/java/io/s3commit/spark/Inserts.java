package io.s3commit.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.function.Executable;

/** Commands made by hand, as Spark's own would be read. */
final class Inserts {
  static final Path OUTPUT = new Path("s3a://lake/db/t");
  static final Insert.Table PLAIN = table(Map.of(), Map.of());

  private Inserts() {}

  /** {@code df.write.options(options).save(path)}. */
  static Insert toPath(boolean overwrites, boolean dynamic, Map<String, String> options) {
    return new Insert(OUTPUT, overwrites, dynamic, "", options, null);
  }

  /** {@code INSERT INTO t} or {@code INSERT OVERWRITE t}, to a static partition or to "". */
  static Insert toTable(Insert.Table table, boolean overwrites, boolean dynamic, String partition) {
    return new Insert(OUTPUT, overwrites, dynamic, partition, table.options(), table);
  }

  static Insert.Table table(Map<String, String> options, Map<String, String> properties) {
    return new Insert.Table("db.t", false, false, "parquet", false, options, properties, Map.of());
  }

  /** A table whose catalog has partitions at other places. */
  static Insert.Table partitioned(Map<String, Path> places) {
    return new Insert.Table("db.t", false, false, "parquet", true, Map.of(), Map.of(), places);
  }

  /** What {@code CREATE TABLE … AS SELECT} makes. */
  static Insert.Table created(boolean isHives, boolean partitioned, Map<String, String> options) {
    return new Insert.Table(
        "db.t", true, isHives, "orc", partitioned, options, Map.of(), Map.of());
  }

  static void assertRefused(String code, String words, Executable action) {
    CommitException refused = assertThrows(CommitException.class, action);
    assertEquals(code, refused.code());
    assertTrue(refused.getMessage().contains(words), refused.getMessage());
  }
}
