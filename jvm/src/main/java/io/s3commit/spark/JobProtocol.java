package io.s3commit.spark;

import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.util.functional.CallableRaisingIOE;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.internal.io.FileCommitProtocol;
import org.apache.spark.internal.io.FileNameSpec;
import org.apache.spark.storage.DiskBlockManager;
import org.apache.spark.util.TaskCompletionListener;
import scala.Option;
import scala.collection.JavaConverters;

/** The protocol of a write that is ours: a job. */
final class JobProtocol extends FileCommitProtocol implements Serializable {
  private static final long serialVersionUID = 1L;

  private final String jobId;
  private final String output;
  private final boolean dynamic;
  private final List<Path> deleted = new ArrayList<>();
  private Job job;
  private transient WriteCommand insert;
  private transient Attempt attempt;
  private transient Set<String> partitions; // of the attempt

  JobProtocol(String jobId, String output, boolean dynamic) {
    this.jobId = jobId;
    this.output = output;
    this.dynamic = dynamic;
  }

  /** Spark asks for this before the job begins: the files go after the new ones are visible. */
  @Override
  public boolean deleteWithJob(FileSystem fs, Path path, boolean recursive) {
    return deleted.add(path);
  }

  @Override
  public void setupJob(JobContext context) {
    unchecked(
        () -> {
          Path table = new Path(output);
          insert = WriteCommand.running(table, dynamic);
          Target target = Target.of(insert, deleted, Setting.all());
          Committers.check(context.getConfiguration());
          Job begun = new Job(jobId, target);
          // before any request that its settings could fail
          FileSystem fs = Store.checked(table, context.getConfiguration());
          FileStatus newest = Place.check(fs, insert, target);
          if (newest != null) {
            OtherSchema.check(newest, context.getConfiguration());
          }
          job = begun; // from here on it is aborted if it fails
          job.open(context.getConfiguration(), Writer.running());
          return null;
        });
  }

  @Override
  public void setupTask(TaskAttemptContext context) {
    // Older releases of Spark don't call abortTask for an error before the first row.
    TaskContext.get().addTaskCompletionListener((TaskCompletionListener) ended -> abortTask(context));
    int task = context.getTaskAttemptID().getTaskID().getId();
    // Spark's own number is unique in an application only.
    String id = TaskContext.get().taskAttemptId() + "-" + UUID.randomUUID();
    Configuration conf = context.getConfiguration();
    DiskBlockManager disk = SparkEnv.get().blockManager().diskBlockManager();
    attempt =
        unchecked(() -> new Attempt(job, conf, task, id, () -> disk.createTempLocalBlock()._2()));
    partitions = new TreeSet<>();
  }

  @Override
  @Deprecated
  public String newTaskTempFile(TaskAttemptContext context, Option<String> dir, String ext) {
    return newTaskTempFile(context, dir, new FileNameSpec("", ext));
  }

  @Override
  public String newTaskTempFile(
      TaskAttemptContext context, Option<String> dir, FileNameSpec spec) {
    String directory = dir.isDefined() ? output + "/" + dir.get() : output;
    dir.foreach(partitions::add);
    return newTaskTempFileAbsPath(context, directory, spec);
  }

  @Override
  @Deprecated
  public String newTaskTempFileAbsPath(TaskAttemptContext context, String directory, String ext) {
    return newTaskTempFileAbsPath(context, directory, new FileNameSpec("", ext));
  }

  /** Spark asks for it for a partition whose directory has another name than Spark would give it. */
  @Override
  public String newTaskTempFileAbsPath(
      TaskAttemptContext context, String directory, FileNameSpec spec) {
    Path destination = job.directory().destination();
    String below = Target.relative(destination, new Path(directory));
    if (below == null) {
      throw CommitException.<RuntimeException>asUnchecked(
          new CommitException(
              "PARTITION_ELSEWHERE",
              directory + " is outside of the job's destination " + destination
                  + ". Nothing was committed."));
    }
    String name = name(context.getTaskAttemptID().getTaskID().getId(), spec);
    return unchecked(() -> attempt.path(below + name));
  }

  /**
   * The name up to its first dot ends with the job's id, which says whose file it is. So the dot is
   * before the number of a bucket, which Spark finds in {@code ._00003.c000.parquet} too.
   */
  private String name(int task, FileNameSpec spec) {
    String suffix = spec.suffix().replaceFirst("^-", "");
    String dot = suffix.startsWith(".") ? "" : ".";
    return spec.prefix() + String.format(Locale.ROOT, "part-%05d-", task) + jobId + dot + suffix;
  }

  @Override
  public TaskCommitMessage commitTask(TaskAttemptContext context) {
    TaskEnd end = new TaskEnd(unchecked(attempt::finish), partitions);
    return new TaskCommitMessage(Documents.message(end));
  }

  @Override
  public void abortTask(TaskAttemptContext context) {
    if (attempt != null) {
      attempt.abort();
    }
  }

  /** Of Scala 2.13, as {@link S3CommitProtocol} has it. */
  public void commitJob(
      JobContext context, scala.collection.immutable.Seq<TaskCommitMessage> messages) {
    commitJob(context, (scala.collection.Seq<TaskCommitMessage>) messages);
  }

  /** Of Scala 2.12. */
  @SuppressWarnings("deprecation") // Scala 2.12 has nothing newer than JavaConverters
  public void commitJob(JobContext context, scala.collection.Seq<TaskCommitMessage> messages) {
    unchecked(
        () -> {
          List<CountedAttempt> counted = new ArrayList<>();
          Set<String> written = new HashSet<>();
          for (TaskCommitMessage message : JavaConverters.seqAsJavaList(messages)) {
            TaskEnd end = Documents.taskEnd((byte[]) message.obj());
            counted.addAll(end.counted());
            written.addAll(end.partitions());
          }
          if (!job.commit(context.getConfiguration(), counted)) {
            FileSystem fs = Store.of(insert.output(), context.getConfiguration());
            CatalogUpdate.afterNothing(fs, insert, written);
          }
          return null;
        });
  }

  @Override
  public void abortJob(JobContext context) {
    if (job != null) {
      job.abort(context.getConfiguration());
    }
  }

  /** Scala declares no exceptions; Spark's callers expect those of S3A as they are. */
  private static <T> T unchecked(CallableRaisingIOE<T> action) {
    try {
      return action.apply();
    } catch (IOException failed) {
      throw CommitException.<RuntimeException>asUnchecked(failed);
    }
  }
}
