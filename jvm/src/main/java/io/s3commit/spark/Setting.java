package io.s3commit.spark;

import java.util.Arrays;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.internal.SQLConf;
import scala.Tuple2;
import scala.collection.Iterator;

/** The session's settings, and which writes are ours by them. */
final class Setting {
  /** What the names of all settings begin with. */
  static final String OURS = "spark.s3commit.";

  /** What those of a thread begin with: Spark puts no session's setting over a local property of it. */
  static final String THREADS = "s3commit.";

  private static final String STREAM = "sql.streaming.queryId"; // a local property in its batches

  /** URIs of the destinations that are ours, with commas between them. */
  static final String PREFIXES = "prefixes";

  /** What to do where a job can't be. */
  static final String LEAVE_OUT =
      "leave the destination out of " + OURS + PREFIXES + ". Nothing was written.";

  /** The class of the protocol that commits every other write. */
  static final String OTHERWISE = "otherwise";

  private static final String ALL_OF_S3 = "s3://";
  private static final Pattern FORM =
      Pattern.compile("s3a?://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/.*)?)?");

  private static final Pattern ALMOST =
      Pattern.compile("^(spark\\.|spark\\.hadoop\\.)?(spark\\.)?s3commit\\.", Pattern.CASE_INSENSITIVE);

  private Setting() {}

  /**
   * The settings that are ours, without {@link #OURS}: those of the session when the statement began,
   * and over them those of its thread. Raises {@link CommitException} for a name that was meant to be
   * one.
   *
   * <p>While a statement runs Spark has the session's settings in the local properties of its thread, as
   * they were when it began: another thread may have changed the session's since. During a batch of a
   * stream they are those of the batch's beginning.
   */
  static Map<String, String> all() throws CommitException {
    Map<String, String> sessions = new TreeMap<>();
    Iterator<Tuple2<String, String>> settings = SQLConf.get().getAllConfs().iterator();
    while (settings.hasNext()) {
      Tuple2<String, String> one = settings.next();
      sessions.put(one._1(), one._2());
    }
    refuseMisspelt(sessions.keySet(), OURS);
    Properties local = SparkContext.getOrCreate().getLocalProperties();
    Map<String, String> threads = new TreeMap<>();
    local.stringPropertyNames().forEach(name -> threads.put(name, local.getProperty(name)));
    refuseMisspelt(threads.keySet(), THREADS);
    boolean isKept = threads.containsKey(WriteCommand.EXECUTION) && !threads.containsKey(STREAM);
    Map<String, String> found = new TreeMap<>();
    take(OURS, isKept ? threads : sessions, found);
    take(THREADS, threads, found);
    return found;
  }

  private static void take(String start, Map<String, String> settings, Map<String, String> found) {
    settings.forEach(
        (name, value) -> {
          if (name.startsWith(start)) {
            found.put(name.substring(start.length()), value);
          }
        });
  }

  private static void refuseMisspelt(Set<String> names, String right) throws CommitException {
    for (String name : names) {
      boolean isRight = name.startsWith(OURS) || name.startsWith(right);
      if (!isRight && ALMOST.matcher(name).find()) {
        throw new CommitException(
            "BAD_SETTING",
            "there is no setting " + name + ": unset it. Did you mean "
                + ALMOST.matcher(name).replaceFirst(right) + "? Nothing was written.");
      }
    }
  }

  /**
   * Whether files for {@code output} are a job of ours. Raises {@link CommitException} if no path can
   * have one of the prefixes.
   *
   * <p>A hidden directory is no table's: Hive's staging directories are renamed when they are whole.
   */
  static boolean isOurs(Path output, Map<String, String> settings) throws CommitException {
    String uri = withOneScheme(output + "/"); // as it was written: output.toUri() is encoded
    boolean named = false;
    for (String one : settings.getOrDefault(PREFIXES, ALL_OF_S3).split(",")) {
      String prefix = one.trim();
      if (!prefix.isEmpty() && !FORM.matcher(prefix).matches()) {
        throw new CommitException(
            "BAD_SETTING",
            OURS + PREFIXES + "=" + prefix + ": give s3a://bucket/prefix/, several with commas"
                + " between them. Nothing was written.");
      }
      String start = withOneScheme(prefix.endsWith("/") ? prefix : prefix + "/");
      named |= !prefix.isEmpty() && uri.startsWith(start);
    }
    return named && output.toUri().getAuthority() != null && !isHidden(output);
  }

  /** The schemes of S3A's are one for us: EMR from 7.10 on has three. */
  private static String withOneScheme(String uri) {
    return uri.replaceFirst("^s3[an]://", "s3://");
  }

  static boolean isHidden(Path path) {
    Predicate<String> isHidden =
        name -> name.startsWith(".") || name.startsWith("_") && !name.contains("=");
    return Arrays.stream(path.toUri().getPath().split("/")).anyMatch(isHidden);
  }
}
