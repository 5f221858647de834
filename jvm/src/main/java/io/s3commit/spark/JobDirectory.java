package io.s3commit.spark;

import java.io.Serializable;
import org.apache.hadoop.fs.Path;

/**
 * Where a job writes, its destination or a location, and where its documents there are.
 *
 * @param prefix of the keys, without the {@code /} at its end
 */
record JobDirectory(String scheme, String bucket, String prefix, String jobId)
    implements Serializable {

  /** Raises {@link CommitException} for a destination that no job may have. */
  static JobDirectory of(Path destination, String jobId) throws CommitException {
    String path = destination.toUri().getPath();
    if (path.length() <= 1) {
      throw new CommitException(
          "BAD_PATH",
          destination + " is a whole bucket: write to a prefix in it. Nothing was written.");
    }
    return new JobDirectory(
        destination.toUri().getScheme(), destination.toUri().getAuthority(), path.substring(1), jobId);
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
    return file(prefix);
  }

  Path document(String name) {
    return file(prefix + "/" + element() + "/" + name);
  }

  /** The path of a key in the job's bucket. */
  Path file(String key) {
    return new Path(scheme, bucket, "/" + key);
  }

  String key(String relative) {
    return prefix + "/" + relative;
  }

  private String element() {
    return "__magic_job-" + jobId;
  }
}
