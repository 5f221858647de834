package io.s3commit.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/**
 * A directory whose readers go by another writer's log. They would not see what a job adds, and
 * would look for what it replaced.
 */
final class OtherLog {
  private static final int MOST_NAMES = 100_000; // of Iceberg's directory; its manifests may come first

  private OtherLog() {}

  /** Refuse a table or path that has such a log. */
  static void check(FileSystem fs, Path table) throws IOException {
    if (has(fs, new Path(table, "_spark_metadata"), "")) {
      throw refused(
          table, "_spark_metadata", "is written by a stream of Spark's file sink, and readers see its"
              + " files alone: write to another path, or, when that stream has ended for good, delete"
              + " the log with the stream's checkpoint");
    }
    if (has(fs, new Path(table, "_delta_log"), "")) {
      throw refused(table, "_delta_log", "is a table of Delta Lake: use format('delta')");
    }
    if (has(fs, new Path(table, "metadata"), ".metadata.json")) {
      throw refused(table, "metadata", "is a table of Iceberg: write to it by its catalog");
    }
    for (String summary : new String[] {"_metadata", "_common_metadata"}) {
      if (has(fs, new Path(table, summary), "")) {
        throw refused(
            table, summary, "has a summary of its Parquet files, which would be wrong from then on:"
                + " delete that file, Spark needs none");
      }
    }
  }

  /** Whether there is a file, or one in that directory, whose name ends so. */
  private static boolean has(FileSystem fs, Path path, String end) throws IOException {
    try {
      RemoteIterator<FileStatus> found = fs.listStatusIterator(path);
      for (int count = 0; count < MOST_NAMES && found.hasNext(); count++) {
        String name = found.next().getPath().getName();
        if (name.endsWith(end) || name.equals("version-hint.text")) {
          return true;
        }
      }
      return false;
    } catch (FileNotFoundException | AccessDeniedException none) {
      return false; // who may not list it finds out at the first document
    }
  }

  private static CommitException refused(Path table, String name, String what) {
    return new CommitException(
        "OTHER_LOG", table + "/" + name + " exists: the directory " + what + ". Nothing was written.");
  }
}
