package io.s3commit.spark;

import java.io.Serializable;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.internal.io.FileCommitProtocol;
import org.apache.spark.internal.io.FileNameSpec;
import scala.Option;

/**
 * The class to name in {@code spark.sql.sources.commitProtocolClass}. Spark's file writers call it:
 * it is {@link JobProtocol} if the write is ours, else another one.
 */
public final class S3CommitProtocol extends FileCommitProtocol implements Serializable {
  private static final long serialVersionUID = 1L;

  // Spark's file sink for streams gives the number of the micro-batch for the job's id.
  private static final Pattern BATCH = Pattern.compile("[0-9]+");

  private final FileCommitProtocol behind;
  private final CommitException refusal;

  /** As Spark calls it. */
  public S3CommitProtocol(String jobId, String output, boolean dynamicPartitionOverwrite) {
    FileCommitProtocol chosen = null;
    CommitException failed = null;
    try {
      chosen = choose(jobId, output, dynamicPartitionOverwrite);
    } catch (CommitException refused) { // Spark would wrap what a constructor raises
      failed = refused;
    }
    this.behind = chosen;
    this.refusal = failed;
  }

  private static FileCommitProtocol choose(String jobId, String output, boolean dynamic)
      throws CommitException {
    if (BATCH.matcher(jobId).matches()) {
      throw new CommitException(
          "BAD_OPTIONS",
          "Spark's file sink for streams can't be committed by s3commit: unset"
              + " spark.sql.streaming.commitProtocolClass, and Spark commits the stream by its own"
              + " log; or use .writeStream.foreachBatch(s3commit.spark.batch_writer(path)) with"
              + " another path, or delete _spark_metadata/ first, which Spark has made at this one."
              + " Nothing was written.");
    }
    Map<String, String> settings = Setting.all();
    if (Setting.isOurs(new Path(output), settings)) {
      return new JobProtocol(jobId, output, dynamic);
    }
    return Otherwise.protocol(settings, jobId, output, dynamic);
  }

  /** The protocol behind, to which all else goes. */
  private FileCommitProtocol behind() {
    if (refusal != null) {
      throw CommitException.<RuntimeException>asUnchecked(refusal);
    }
    return behind;
  }

  @Override
  public boolean deleteWithJob(FileSystem fs, Path path, boolean recursive) {
    return behind().deleteWithJob(fs, path, recursive);
  }

  @Override
  public void setupJob(JobContext context) {
    behind().setupJob(context);
  }

  @Override
  public void setupTask(TaskAttemptContext context) {
    behind().setupTask(context);
  }

  @Override
  @Deprecated
  public String newTaskTempFile(TaskAttemptContext context, Option<String> dir, String ext) {
    return behind().newTaskTempFile(context, dir, ext);
  }

  @Override
  public String newTaskTempFile(
      TaskAttemptContext context, Option<String> dir, FileNameSpec spec) {
    return behind().newTaskTempFile(context, dir, spec);
  }

  @Override
  @Deprecated
  public String newTaskTempFileAbsPath(TaskAttemptContext context, String directory, String ext) {
    return behind().newTaskTempFileAbsPath(context, directory, ext);
  }

  @Override
  public String newTaskTempFileAbsPath(
      TaskAttemptContext context, String directory, FileNameSpec spec) {
    return behind().newTaskTempFileAbsPath(context, directory, spec);
  }

  @Override
  public TaskCommitMessage commitTask(TaskAttemptContext context) {
    return behind().commitTask(context);
  }

  @Override
  public void abortTask(TaskAttemptContext context) {
    behind().abortTask(context);
  }

  @Override
  public void onTaskCommit(TaskCommitMessage message) {
    behind().onTaskCommit(message);
  }

  /** Of Scala 2.13, whose default {@code Seq} is this one. */
  public void commitJob(
      JobContext context, scala.collection.immutable.Seq<TaskCommitMessage> messages) {
    behind().commitJob(context, messages);
  }

  /** Of Scala 2.12, whose default {@code Seq} is this one. */
  public void commitJob(JobContext context, scala.collection.Seq<TaskCommitMessage> messages) {
    behind().commitJob(context, messages.toSeq());
  }

  /** Spark asks for it after a setup that failed, too. */
  @Override
  public void abortJob(JobContext context) {
    if (behind != null) {
      behind.abortJob(context);
    }
  }
}
