package io.s3commit.spark;

import java.util.Arrays;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.internal.SQLConf;

/** The session's settings, and which writes are ours by them. */
final class Setting {
  /** URIs of the destinations that are ours, with commas between them. */
  static final String PREFIXES = "spark.s3commit.prefixes";

  /** How long the driver waits for the outcome of a job. */
  static final String TIMEOUT = "spark.s3commit.commitTimeout";

  private static final String ALL_OF_S3A = "s3a://";

  private Setting() {}

  /**
   * Whether files for {@code output} are a job of ours.
   *
   * <p>A hidden directory is no table's: Hive's staging directories are renamed when they are whole.
   */
  static boolean isOurs(Path output) {
    String uri = output + "/"; // as it was written: output.toUri() is encoded
    String prefixes = SQLConf.get().getConfString(PREFIXES, ALL_OF_S3A);
    return output.toUri().getAuthority() != null
        && !isHidden(output)
        && Arrays.stream(prefixes.split(","))
            .map(String::trim)
            .filter(prefix -> !prefix.isEmpty())
            .anyMatch(prefix -> uri.startsWith(prefix.endsWith("/") ? prefix : prefix + "/"));
  }

  private static boolean isHidden(Path output) {
    return Arrays.stream(output.toUri().getPath().split("/"))
        .anyMatch(name -> name.startsWith(".") || name.startsWith("_") && !name.contains("="));
  }
}
