package io.s3commit.spark;

import java.io.Serializable;
import org.apache.hadoop.fs.Path;

/** Where a job writes, and where its own documents are. */
final class JobDirectory implements Serializable {
  private static final long serialVersionUID = 1L;

  private final String scheme;
  private final String bucket;
  private final String prefix;
  private final String jobId;

  /** Raises {@link CommitException} for a destination that no job may have. */
  JobDirectory(Path destination, String jobId) throws CommitException {
    this.scheme = destination.toUri().getScheme();
    this.bucket = destination.toUri().getAuthority();
    this.prefix = destination.toUri().getPath().substring(1);
    this.jobId = jobId;
    if (prefix.isEmpty()) {
      throw new CommitException(
          "BAD_PATH",
          destination + " is a whole bucket: write to a prefix in it. Nothing was written.");
    }
  }

  String bucket() {
    return bucket;
  }

  /** The destination as the pipeline names it. */
  String destinationUri() {
    return "s3://" + bucket + "/" + prefix + "/";
  }

  /** The job directory as {@code s3commit show} takes it. */
  String uri() {
    return destinationUri() + element() + "/";
  }

  Path destination() {
    return new Path(scheme, bucket, "/" + prefix);
  }

  Path document(String name) {
    return new Path(scheme, bucket, "/" + prefix + "/" + element() + "/" + name);
  }

  /** The final place of a file. */
  Path file(String relative) {
    return new Path(scheme, bucket, "/" + key(relative));
  }

  String key(String relative) {
    return prefix + "/" + relative;
  }

  private String element() {
    return "__magic_job-" + jobId;
  }
}
