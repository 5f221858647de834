package io.s3commit.spark;

import org.apache.hadoop.mapreduce.JobContext;
import org.apache.spark.internal.io.FileCommitProtocol;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/** The class to name in {@code spark.sql.sources.commitProtocolClass}; for Scala 2.12. */
public final class S3CommitProtocol extends CommitProtocol {
  private static final long serialVersionUID = 1L;

  /** As Spark calls it. */
  public S3CommitProtocol(String jobId, String output, boolean dynamicPartitionOverwrite) {
    super(jobId, output, dynamicPartitionOverwrite, Ours::new);
  }

  @Override
  public void commitJob(JobContext context, Seq<FileCommitProtocol.TaskCommitMessage> messages) {
    behind().commitJob(context, messages);
  }

  private static final class Ours extends JobProtocol {
    private static final long serialVersionUID = 1L;

    Ours(String jobId, String output, boolean dynamic) {
      super(jobId, output, dynamic);
    }

    @Override
    public void commitJob(JobContext context, Seq<FileCommitProtocol.TaskCommitMessage> messages) {
      commit(context, JavaConverters.seqAsJavaList(messages));
    }
  }
}
