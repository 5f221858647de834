package io.s3commit.spark;

import java.io.File;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.internal.io.FileCommitProtocol;
import org.apache.spark.internal.io.FileNameSpec;
import org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol;
import org.apache.spark.util.TaskCompletionListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * What Spark's file writers call. A write to a destination that is not ours goes to Spark's own
 * protocol.
 */
abstract class CommitProtocol extends FileCommitProtocol implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final Logger LOG = LoggerFactory.getLogger(CommitProtocol.class);
  private static final int MAX_LOCATIONS = 80; // of a job
  private static final Pattern UUID_FORM = Pattern.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}");

  /** Spark's own protocol, or null if the write is ours. */
  protected final FileCommitProtocol sparks;

  private final String jobId;
  private final String output;
  private final boolean dynamic;
  private final List<String> replaced = new ArrayList<>();
  private Job job;
  private transient Attempt attempt;

  CommitProtocol(String jobId, String output, boolean dynamic) {
    this.jobId = jobId;
    this.output = output;
    this.dynamic = dynamic;
    boolean ours = Setting.isOurs(new Path(output));
    this.sparks = ours ? null : new SQLHadoopMapReduceCommitProtocol(jobId, output, dynamic);
  }

  /** Spark asks for this before the job begins: the files go after the new ones are visible. */
  @Override
  public boolean deleteWithJob(FileSystem fs, Path path, boolean recursive) {
    if (sparks != null) {
      return sparks.deleteWithJob(fs, path, recursive);
    }
    replaced.add(path.toString());
    return true;
  }

  @Override
  public void setupJob(JobContext context) {
    if (sparks != null) {
      sparks.setupJob(context);
      return;
    }
    unchecked(
        () -> {
          refuseStream();
          job = newJob(Options.of(context.getConfiguration()));
          job.open(context.getConfiguration());
          return null;
        });
  }

  /** Spark's file sink gives the number of the micro-batch for the job's id. */
  private void refuseStream() throws CommitException {
    if (!UUID_FORM.matcher(jobId).matches()) {
      throw new CommitException(
          "BAD_OPTIONS",
          "Spark's file sink for streams can't be committed by s3commit: use"
              + " .writeStream.format('s3commit'), or"
              + " .writeStream.foreachBatch(s3commit.spark.batch_writer(path)). Nothing was written.");
    }
  }

  /**
   * A static partition that is overwritten is the destination: all of it is replaced. If it lies
   * elsewhere, its place is. Where partitions below it lie elsewhere Spark names those too.
   */
  private Job newJob(Options options) throws CommitException {
    Path table = new Path(output);
    Insert insert = Insert.running(table);
    Map<String, Path> elsewhere = insert == null ? Map.of() : insert.elsewhere();
    boolean overwrites = insert == null ? !replaced.isEmpty() : insert.overwrites() && !dynamic;
    if (!overwrites) {
      Job.Replaces replaces = dynamic ? Job.Replaces.PARTITIONS : Job.Replaces.NOTHING;
      return new Job(jobId, table, replaces, locationsBelow(table, elsewhere), options);
    }
    Path usual = new Path(insert == null ? replaced.get(0) : output + "/" + insert.partition());
    Path destination =
        insert == null ? usual : elsewhere.getOrDefault(insert.partition(), usual);
    Map<String, Path> locations = locationsBelow(destination, elsewhere);
    for (String other : replaced) {
      Path path = new Path(other);
      if (path.equals(usual) && !usual.equals(destination)) {
        LOG.warn("files at {} stay: the partition lies at {}", usual, destination);
      } else if (!path.equals(destination) && !locations.containsValue(path)) {
        throw elsewhere(other);
      }
    }
    return new Job(jobId, destination, Job.Replaces.DIRECTORY, locations, options);
  }

  /** The partitions below {@code destination} that lie elsewhere in its bucket. */
  private Map<String, Path> locationsBelow(Path destination, Map<String, Path> elsewhere) {
    String partition = relativeTo(new Path(output), destination);
    Map<String, Path> found = new TreeMap<>();
    elsewhere.forEach(
        (name, place) -> {
          boolean apart =
              relativeTo(destination, place) == null && relativeTo(place, destination) == null;
          boolean below = partition != null && name.startsWith(partition);
          if (below && name.length() > partition.length() && apart && sameBucket(place)) {
            found.put(name.substring(partition.length()), place);
          }
        });
    return found.size() > MAX_LOCATIONS ? Map.of() : found;
  }

  private boolean sameBucket(Path place) {
    return new Path(output).toUri().getAuthority().equals(place.toUri().getAuthority());
  }

  private static CommitException elsewhere(String path) {
    return new CommitException(
        "PARTITION_ELSEWHERE",
        path + " is a partition outside of its table's directory that this write can't have: it has"
            + " to be in the table's bucket, apart from the table's directory, and one of at most "
            + MAX_LOCATIONS + ". Nothing was committed.");
  }

  /** The path below {@code base} with its {@code /}, "" for itself, null if it is not below. */
  private static String relativeTo(Path base, Path path) {
    String above = base.toUri().getPath() + "/";
    String below = path.toUri().getPath() + "/";
    boolean same = String.valueOf(base.toUri().getAuthority()).equals(path.toUri().getAuthority());
    return same && below.startsWith(above) ? below.substring(above.length()) : null;
  }

  @Override
  public void setupTask(TaskAttemptContext context) {
    if (sparks != null) {
      sparks.setupTask(context);
      return;
    }
    // Older releases of Spark don't call abortTask for an error before the first row.
    TaskContext.get().addTaskCompletionListener((TaskCompletionListener) ended -> abortTask(context));
    int task = context.getTaskAttemptID().getTaskID().getId();
    // Spark's own number is unique in an application only.
    String id = TaskContext.get().taskAttemptId() + "-" + UUID.randomUUID();
    attempt =
        unchecked(
            () -> new Attempt(job, context.getConfiguration(), task, id, CommitProtocol::localFile));
  }

  private static File localFile() {
    return SparkEnv.get().blockManager().diskBlockManager().createTempLocalBlock()._2();
  }

  @Override
  @Deprecated
  public String newTaskTempFile(TaskAttemptContext context, Option<String> dir, String ext) {
    return newTaskTempFile(context, dir, new FileNameSpec("", ext));
  }

  @Override
  public String newTaskTempFile(
      TaskAttemptContext context, Option<String> dir, FileNameSpec spec) {
    if (sparks != null) {
      return sparks.newTaskTempFile(context, dir, spec);
    }
    String below = dir.isDefined() ? dir.get() + "/" : "";
    String partition = relativeTo(new Path(output), job.directory().destination());
    if (partition == null || !below.startsWith(partition)) {
      throw new IllegalStateException(below + " lies outside the partition " + partition);
    }
    int task = context.getTaskAttemptID().getTaskID().getId();
    return attempt.path(job.directory(), below.substring(partition.length()) + name(task, spec));
  }

  /**
   * The name up to its first dot ends with the job's id, which says whose file it is. So the dot is
   * before the number of a bucket, which Spark finds in {@code ._00003.c000.parquet} too.
   */
  private String name(int task, FileNameSpec spec) {
    String suffix = spec.suffix().replaceFirst("^-", "");
    String dot = suffix.startsWith(".") ? "" : ".";
    return spec.prefix() + String.format("part-%05d-", task) + jobId + dot + suffix;
  }

  @Override
  @Deprecated
  public String newTaskTempFileAbsPath(TaskAttemptContext context, String directory, String ext) {
    return newTaskTempFileAbsPath(context, directory, new FileNameSpec("", ext));
  }

  @Override
  public String newTaskTempFileAbsPath(
      TaskAttemptContext context, String directory, FileNameSpec spec) {
    if (sparks != null) {
      return sparks.newTaskTempFileAbsPath(context, directory, spec);
    }
    int task = context.getTaskAttemptID().getTaskID().getId();
    Path wanted = new Path(directory);
    for (JobDirectory one : job.directories()) {
      if (one.destination().equals(wanted)) {
        return attempt.path(one, name(task, spec));
      }
    }
    throw new UncheckedIOException(elsewhere(directory));
  }

  @Override
  public FileCommitProtocol.TaskCommitMessage commitTask(TaskAttemptContext context) {
    if (sparks != null) {
      return sparks.commitTask(context);
    }
    return new FileCommitProtocol.TaskCommitMessage(unchecked(attempt::finish));
  }

  @Override
  public void abortTask(TaskAttemptContext context) {
    if (sparks != null) {
      sparks.abortTask(context);
    } else if (attempt != null) {
      attempt.abort();
    }
  }

  /** {@code commitJob}, whose signature differs between the versions of Scala. */
  void commit(JobContext context, List<FileCommitProtocol.TaskCommitMessage> messages) {
    unchecked(
        () -> {
          List<Counted> counted = new ArrayList<>();
          for (FileCommitProtocol.TaskCommitMessage message : messages) {
            counted.addAll(Documents.counted((byte[]) message.obj()));
          }
          job.commit(context.getConfiguration(), counted);
          return null;
        });
  }

  @Override
  public void abortJob(JobContext context) {
    if (sparks != null) {
      sparks.abortJob(context);
    } else if (job != null) {
      job.abort(context.getConfiguration());
    }
  }

  @Override
  public void onTaskCommit(FileCommitProtocol.TaskCommitMessage message) {
    if (sparks != null) {
      sparks.onTaskCommit(message);
    }
  }

  private interface Action<T> {
    T run() throws IOException;
  }

  /** Scala declares no exceptions: Spark's callers expect an IOException as it is. */
  private static <T> T unchecked(Action<T> action) {
    try {
      return action.run();
    } catch (IOException failed) {
      throw CommitProtocol.<RuntimeException>sneak(failed);
    }
  }

  @SuppressWarnings("unchecked")
  private static <E extends Throwable> E sneak(Throwable failed) throws E {
    throw (E) failed;
  }
}
