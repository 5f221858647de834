package io.s3commit.spark;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.Path;

/**
 * Where a job writes, and where its documents there are.
 *
 * @param prefix of the keys, without the {@code /} at its end
 */
record JobDirectory(String scheme, String bucket, String prefix, String jobId)
    implements Serializable {
  private static final Pattern BUCKET = Pattern.compile("[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]");
  /** Characters that S3's answers, which are XML 1.0, can't carry. */
  static final Pattern UNSPEAKABLE = Pattern.compile("[\\x00-\\x1f\\x7f\\ufffe\\uffff]");
  private static final Pattern UNSAFE = Pattern.compile("[^\\w@%+=:,./-]"); // in a shell
  private static final int SHOWN = 200;

  /** Raises {@link CommitException} for a destination that no pipeline reads. */
  static JobDirectory of(Path destination, String jobId) throws CommitException {
    String bucket = destination.toUri().getAuthority();
    String path = destination.toUri().getPath();
    if (path.length() <= 1) {
      throw bad(destination, "is a whole bucket: give a prefix, such as s3a://bucket/table/");
    }
    if (!BUCKET.matcher(bucket).matches()) {
      throw bad(destination, "has '" + bucket + "', which is not a bucket name");
    }
    if (Limits.ALIAS_ENDS.stream().anyMatch(bucket::endsWith)) {
      throw bad(
          destination,
          "names an alias or another kind of bucket: give the general purpose bucket's name");
    }
    String prefix = path.substring(1);
    if (prefix.getBytes(StandardCharsets.UTF_8).length > Limits.PREFIX_BYTES) {
      throw bad(destination, "has a prefix of more than " + Limits.PREFIX_BYTES + " bytes");
    }
    if (UNSPEAKABLE.matcher(prefix).find()) {
      throw bad(destination, "has a control character, which S3's answers can't carry");
    }
    return new JobDirectory(destination.toUri().getScheme(), bucket, prefix, jobId);
  }

  private static CommitException bad(Path destination, String what) {
    String text = destination.toString();
    String shown = text.length() > SHOWN ? text.substring(0, SHOWN) + "…" : text;
    return new CommitException("BAD_PATH", shown + " " + what + ". Nothing was written.");
  }

  /** The destination as the pipeline names it. */
  String destinationUri() {
    return "s3://" + bucket + "/" + prefix + "/";
  }

  /** The job directory as {@code s3commit show} takes it. */
  String uri() {
    return destinationUri() + element() + "/";
  }

  /** The same as a shell takes it: others choose the names in it, and people copy commands. */
  String typed() {
    return UNSAFE.matcher(uri()).find() ? "'" + uri().replace("'", "'\"'\"'") + "'" : uri();
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
