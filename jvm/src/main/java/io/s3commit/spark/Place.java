package io.s3commit.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.util.functional.FutureIO;
import org.apache.spark.util.ThreadUtils;

/**
 * What lies where a job is going to write, looked at before its first task. Each look is bounded;
 * who may not list the bucket finds out at the first document.
 *
 * <p>The clients in Python look at the same ({@code s3commit/writer/place.py}); both are held to one
 * table, {@code tests/golden/places.json}.
 */
final class Place {
  private static final int LOOKS = 4; // at once
  private static final int PARTITIONS = 5; // at each level: in all of them may be markers alone
  private static final String MARKER = "_$folder$"; // of a directory, by EMRFS and s3n
  private static final int LOOKED_AT = 5_000; // names: five pages of a listing

  private static final String NULL = "=__HIVE_DEFAULT_PARTITION__"; // its partition's name ends so
  private static final List<String> SUMMARIES = List.of("_metadata", "_common_metadata");

  /**
   * What other writers leave in a directory whose readers go by it, and take no file beside it.
   *
   * @param holds found in a name in it, where the name of the log alone says nothing; or empty
   */
  private record Log(String name, String advice, String holds) {}

  // Spark's readers ask only whether the first exists (FileStreamSink.hasMetadata).
  private static final List<Log> LOGS =
      List.of(
          new Log(
              "_spark_metadata",
              "is written by a stream of Spark's file sink, and readers see its files alone: write to"
                  + " another path, or, if that stream will not run again, delete the log with the"
                  + " stream's checkpoint",
              ""),
          new Log("_delta_log", "is a table of Delta Lake: write with format('delta')", ""),
          new Log(".hoodie", "is a table of Apache Hudi: write with format('hudi')", ""),
          new Log(
              "metadata",
              "is a table of Apache Iceberg: write to it by its name in a catalog of Iceberg's, or to"
                  + " another path",
              "^(v[0-9]+|[0-9]{5,}-[0-9a-f-]{36})(\\.gz)?\\.metadata\\.json|-m[0-9]+\\.avro$"));

  private final FileSystem fs;
  private final Path table;
  private final List<FileStatus> names;

  private Place(FileSystem fs, Path table, List<FileStatus> names) {
    this.fs = fs;
    this.table = table;
    this.names = names;
  }

  /**
   * Refuse a bucket without a pipeline, and a place where readers would not find what the job writes,
   * or where it would keep them from reading what is there. The requests are side by side.
   *
   * <p>Returns the newest file of the last partition that has one; null if the job compares its types
   * with none that stays.
   */
  static FileStatus check(FileSystem fs, WriteCommand insert, Target target) throws IOException {
    Path table = insert.output();
    ExecutorService threads = ThreadUtils.newDaemonFixedThreadPool(LOOKS, "s3commit-look");
    try {
      Future<?> pipeline = threads.submit(() -> checkPipeline(fs, table));
      Future<Boolean> isObject = threads.submit(() -> isObject(fs, table));
      // Where nothing lies, S3A takes three requests in a row to list that.
      Future<Boolean> isEmpty = threads.submit(() -> !isDirectory(fs, table));
      Future<List<FileStatus>> names = threads.submit(() -> namesIn(fs, table));
      FutureIO.awaitFuture(pipeline);
      if (FutureIO.awaitFuture(isObject)) {
        throw object(table);
      }
      boolean isNew = FutureIO.awaitFuture(isEmpty);
      Place place = new Place(fs, table, isNew ? List.of() : FutureIO.awaitFuture(names));
      place.check(insert, target);
      // An overwrite may be there to replace that very file.
      boolean appends = insert.replaces() == Job.Replaces.NOTHING;
      return appends && target.options().checkSchema() ? newest(fs, place.names) : null;
    } finally {
      threads.shutdown();
    }
  }

  private static Void checkPipeline(FileSystem fs, Path table) throws CommitException {
    Pipeline.check(fs, table.toUri().getAuthority());
    return null;
  }

  private void check(WriteCommand insert, Target target) throws IOException {
    if (!target.destination().equals(table) && isObject(fs, target.destination())) {
      throw object(target.destination());
    }
    refuseOtherLog();
    refuseObjectsAtPartitions(insert.columns());
    boolean replacesAll = insert.replaces() == Job.Replaces.DIRECTORY;
    // A catalog says what the partitions and columns of its tables are.
    if (insert.table() == null && !replacesAll && target.options().checkPartitions()) {
      refuseSummary();
      refuseOtherPartitions(insert.columns());
    }
  }

  /** Whether an object has the directory's own name: Spark would read the directory, others it. */
  @SuppressWarnings("deprecation") // S3A sends a HEAD for it, for a status also a listing
  private static boolean isObject(FileSystem fs, Path directory) throws IOException {
    try {
      return fs.isFile(directory);
    } catch (AccessDeniedException none) {
      return false;
    }
  }

  /** Whether anything lies below; of which S3A asks a listing alone. */
  @SuppressWarnings("deprecation")
  private static boolean isDirectory(FileSystem fs, Path path) throws IOException {
    try {
      return fs.isDirectory(path);
    } catch (AccessDeniedException none) {
      return false;
    }
  }

  private static CommitException object(Path path) {
    return new CommitException(
        "PATH_IS_OBJECT",
        "an object is at " + path + ", where this write may need a directory, and some readers would"
            + " read the object: move or delete it, or write to another path. Nothing was written.");
  }

  private void refuseOtherLog() throws IOException {
    boolean isCut = names.size() == LOOKED_AT; // then it may be behind those that were seen
    for (Log log : LOGS) {
      boolean isSeen = names.stream().anyMatch(one -> one.getPath().getName().equals(log.name));
      Path path = new Path(table, log.name);
      if ((isSeen || isCut) && has(path, Pattern.compile(log.holds))) {
        throw new CommitException(
            "OTHER_LOG", path + " exists: the directory " + log.advice + ". Nothing was written.");
      }
    }
  }

  private void refuseSummary() throws CommitException {
    for (FileStatus one : names) {
      if (one.isFile() && SUMMARIES.contains(one.getPath().getName())) {
        throw new CommitException(
            "OTHER_LOG",
            one.getPath() + " exists: the summary of other Parquet files, by which some readers go, and"
                + " would not see new files or columns: delete it unless a reader of yours needs it, or"
                + " permit it with the option checkPartitions=false. Nothing was written.");
      }
    }
  }

  private boolean has(Path log, Pattern holds) throws IOException {
    if (!holds.pattern().isEmpty()) {
      return namesIn(fs, log).stream().anyMatch(one -> holds.matcher(one.getPath().getName()).find());
    }
    try {
      return fs.exists(log);
    } catch (AccessDeniedException denied) {
      return false;
    }
  }

  private void refuseObjectsAtPartitions(List<String> columns) throws CommitException {
    for (FileStatus one : names) {
      boolean isPartition =
          !columns.isEmpty() && one.getPath().getName().startsWith(columns.get(0) + "=");
      if (one.isFile() && isPartition && !one.getPath().getName().endsWith(MARKER)) {
        throw object(one.getPath());
      }
    }
  }

  /** As Spark reads a path: files in no partition don't count if others lie in one. */
  private void refuseOtherPartitions(List<String> columns) throws IOException {
    for (List<String> found : partitionsOfFiles()) {
      if (!found.equals(columns)) {
        throw new CommitException(
            "OTHER_PARTITIONS",
            "the files at " + table + " are partitioned by " + listed(found) + ", this write by "
                + listed(columns) + ", and readers could not read both as one table: give the same"
                + " columns, in the same capitals, or the option checkPartitions=false. Nothing was"
                + " written.");
      }
    }
  }

  /** The partition columns of the first file below each spelling of the first column. */
  private List<List<String>> partitionsOfFiles() throws IOException {
    Map<String, List<Path>> partitions = new LinkedHashMap<>();
    boolean isPlain = false;
    for (FileStatus one : names) {
      String name = one.getPath().getName();
      if (one.isDirectory() && isVisible(one) && name.contains("=")) {
        String column = name.substring(0, name.indexOf('='));
        partitions.computeIfAbsent(column, none -> new ArrayList<>()).add(one.getPath());
      }
      isPlain |= one.isFile() && isVisible(one);
    }
    List<List<String>> found = new ArrayList<>();
    for (List<Path> those : partitions.values().stream().limit(PARTITIONS).toList()) {
      for (Path one : those.subList(0, Math.min(PARTITIONS, those.size()))) {
        List<String> columns = columnsBelow(one);
        if (columns != null) {
          found.add(columns);
          break;
        }
      }
    }
    return isPlain && partitions.isEmpty() ? List.of(List.of()) : found;
  }

  private List<String> columnsBelow(Path partition) throws IOException {
    int looked = 0;
    for (FileStatus one : namesIn(fs, partition)) {
      List<String> found = null;
      if (one.isDirectory() && looked++ == PARTITIONS) {
        break;
      }
      if (isVisible(one)) {
        found = one.isFile() ? new ArrayList<>() : columnsBelow(one.getPath());
      }
      if (found != null) {
        String name = partition.getName();
        if (name.contains("=")) {
          found.add(0, name.substring(0, name.indexOf('=')));
        }
        return found;
      }
    }
    return null;
  }

  private static FileStatus newest(FileSystem fs, List<FileStatus> names) throws IOException {
    List<FileStatus> visible = names.stream().filter(Place::isVisible).toList();
    List<FileStatus> partitions =
        visible.stream()
            .filter(one -> one.isDirectory() && one.getPath().getName().contains("="))
            .sorted(Comparator.comparing(one -> !one.getPath().getName().endsWith(NULL))) // no last day
            .toList();
    for (int last = partitions.size() - 1; last >= Math.max(0, partitions.size() - PARTITIONS); last--) {
      FileStatus found = newest(fs, namesIn(fs, partitions.get(last).getPath()));
      if (found != null) {
        return found;
      }
    }
    return visible.stream()
        .filter(one -> one.isFile() && partitions.isEmpty())
        .max(Comparator.comparingLong(FileStatus::getModificationTime))
        .orElse(null);
  }

  private static List<FileStatus> namesIn(FileSystem fs, Path directory) throws IOException {
    List<FileStatus> found = new ArrayList<>();
    try {
      RemoteIterator<FileStatus> listed = fs.listStatusIterator(directory);
      while (found.size() < LOOKED_AT && listed.hasNext()) {
        found.add(listed.next());
      }
    } catch (FileNotFoundException | AccessDeniedException none) {
      // Then it finds out at the first document.
    }
    return found;
  }

  static boolean isVisible(FileStatus one) {
    return !Setting.isHidden(new Path("/" + one.getPath().getName()));
  }

  private static String listed(List<String> columns) {
    return columns.isEmpty() ? "no column" : String.join(", ", columns);
  }
}
