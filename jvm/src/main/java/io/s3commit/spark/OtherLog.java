package io.s3commit.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.util.Map;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * A directory whose readers go by another writer's log. They would not see what a job adds, and
 * would look for what it replaced.
 */
final class OtherLog {
  private static final Map<String, String> LOGS =
      Map.of(
          "_spark_metadata",
          "is written by a stream of Spark's file sink, and readers see its files alone: write to"
              + " another path, or, when that stream has ended for good, delete the log with the"
              + " stream's checkpoint",
          "_delta_log",
          "is a table of Delta Lake: use format('delta')");

  private OtherLog() {}

  /** Refuse a table or path that has such a log. */
  static void check(FileSystem fs, Path table) throws IOException {
    for (Map.Entry<String, String> log : LOGS.entrySet()) {
      Path path = new Path(table, log.getKey());
      if (hasFiles(fs, path)) {
        throw new CommitException(
            "OTHER_LOG",
            path + " exists: the directory " + log.getValue() + ". Nothing was written.");
      }
    }
  }

  private static boolean hasFiles(FileSystem fs, Path directory) throws IOException {
    try {
      return fs.listStatusIterator(directory).hasNext();
    } catch (FileNotFoundException | AccessDeniedException none) {
      return false; // who may not list it finds out at the first document
    }
  }
}
