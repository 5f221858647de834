package io.s3commit.spark;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.commons.collections4.map.LRUMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FutureDataInputStreamBuilder;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.util.functional.FutureIO;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.core.config.Configurator;
import org.slf4j.LoggerFactory;

/** S3 as the configuration of {@code fs.s3a} reaches it. */
final class Store {
  private static final String UPLOADER = "fs.capability.multipart.uploader";
  private static final String CONDITIONAL = "fs.option.create.conditional.overwrite";
  private static final String LENGTH = "fs.option.openfile.length";
  private static final int SOME_BYTES = 64 << 10;
  private static final int MOST_OPEN = 32;

  // Of our own file system, whatever a program has set. It aborts no uploads; it never puts over an
  // object that a put may not replace; and it reads what is small and may change, without a cache and
  // without versions.
  private static final Map<String, String> OWN =
      Map.of(
          "change.detection.source", "etag",
          "committer.magic.enabled", "false",
          "create.performance", "false",
          "directory.marker.retention", "keep",
          "directory.operations.purge.uploads", "false",
          "input.stream.type", "classic",
          "multipart.purge", "false",
          "performance.flags", "",
          "prefetch.enabled", "false");

  /** Values of one of S3A's settings with which a job would fail, and what to do. */
  private record Refused(String name, String values, String why) {}

  private static final String ENCRYPTION = "encryption.algorithm";
  private static final String OLD = "server-side-encryption-algorithm";
  private static final String INCOMPLETE = "the pipeline can't complete such uploads: ";
  private static final List<Refused> REFUSED =
      List.of(
          new Refused(ENCRYPTION, "SSE-C|CSE.*", INCOMPLETE + "use SSE-S3, SSE-KMS or DSSE-KMS"),
          new Refused(
              OLD, "SSE-C|CSE.*", INCOMPLETE + "use SSE-S3 or SSE-KMS"),
          new Refused("create.checksum.algorithm", ".+", INCOMPLETE + "unset it"),
          new Refused(
              "checksum.generation", "true",
              INCOMPLETE + "unset it, and fs.s3a.create.checksum.algorithm if it is set elsewhere"),
          new Refused(
              "create.storage.class", "GLACIER|DEEP_ARCHIVE",
              "the pipeline can't read a job's documents there: use GLACIER_IR, or a lifecycle rule"),
          new Refused(
              "multipart.purge", "true",
              "Spark's own S3A would abort uploads of jobs: unset it, or use a lifecycle rule"),
          new Refused("multipart.uploads.enabled", "false", "a job consists of such uploads: unset it"));

  /** For whom a file system is, and with which of S3A's settings. */
  private record Key(String scheme, String bucket, String user, Map<String, String> settings) {}

  // A job may still use what leaves the map: it is not closed.
  private static final Map<Key, FileSystem> OPEN = new LRUMap<>(MOST_OPEN);

  static {
    try { // It warns of each document whose path looks like one of the magic committer's.
      Configurator.setLevel("org.apache.hadoop.fs.s3a.commit.MagicCommitIntegration", Level.ERROR);
    } catch (LinkageError anotherLog) {
      LoggerFactory.getLogger(Store.class).debug("S3A's warnings stay", anotherLog);
    }
  }

  private Store() {}

  /**
   * The file system of {@code path}'s bucket, one for each bucket and user of this JVM and for each
   * set of S3A's settings, among which may be temporary credentials.
   *
   * <p>It is not the one that Spark has. In that one S3A's magic committer may be enabled, and then a
   * file below {@code __magic_job-...} is no ordinary object. Nor is it in Hadoop's cache, whose file
   * systems anybody may close: a Thrift server does, when a session of its user ends.
   */
  static FileSystem of(Path path, Configuration conf) throws IOException {
    String bucket = path.toUri().getAuthority();
    String user = UserGroupInformation.getCurrentUser().getUserName();
    Key key = new Key(path.toUri().getScheme(), bucket, user, settings(bucket, conf));
    synchronized (OPEN) {
      FileSystem found = OPEN.get(key);
      if (found == null) {
        found = open(path, bucket, conf);
        OPEN.put(key, found);
      }
      return found;
    }
  }

  /** S3A's settings for the bucket: all, save those for other buckets and for its committers. */
  private static Map<String, String> settings(String bucket, Configuration conf) {
    Map<String, String> found = conf.getPropsWithPrefix("fs.s3a.");
    found
        .keySet()
        .removeIf(
            name ->
                name.startsWith("committer.")
                    || name.startsWith("bucket.") && !name.startsWith("bucket." + bucket + "."));
    return found;
  }

  private static FileSystem open(Path path, String bucket, Configuration conf) throws IOException {
    Configuration own = new Configuration(conf);
    for (String prefix : new String[] {"fs.s3a.", "fs.s3a.bucket." + bucket + "."}) {
      OWN.forEach((name, value) -> own.set(prefix + name, value));
    }
    own.setBoolean("fs." + path.toUri().getScheme() + ".impl.disable.cache", true);
    return FileSystem.get(path.toUri(), own);
  }

  /**
   * As {@link #of}. Refuse what would fail later, or could not be completed by the pipeline. Nothing
   * is written.
   */
  static FileSystem checked(Path path, Configuration conf) throws IOException {
    String ofBucket = "fs.s3a.bucket." + path.toUri().getAuthority() + ".";
    for (Refused one : REFUSED) {
      String name = "fs.s3a." + one.name();
      if (one.name().equals(OLD) && conf.get(ofBucket + ENCRYPTION) != null) {
        continue; // Hadoop gives the new name's value for the old one, of the bucket's own not
      }
      String value = conf.getTrimmed(ofBucket + one.name(), conf.getTrimmed(name, ""));
      if (value.matches("(?i:" + one.values() + ")")) {
        throw new CommitException(
            "BAD_SETTING", name + "=" + value + ": " + one.why() + ". Nothing was written.");
      }
    }
    FileSystem fs = of(path, conf);
    if (!fs.hasPathCapability(path, UPLOADER)) {
      throw new CommitException(
          "NO_UPLOADER",
          path + ": " + fs.getClass().getName() + " starts no multipart uploads: s3commit needs S3A of"
              + " Hadoop 3.3.1 or later. Use it, or " + Setting.LEAVE_OUT);
    }
    return fs;
  }

  /**
   * Put {@code body} unless an object is there, and return what is there then.
   *
   * <p>A put whose answer got lost finds its own object. With S3A before Hadoop 3.4.2 the check and
   * the put are two requests.
   */
  static byte[] putFirst(FileSystem fs, Path path, byte[] body) throws IOException {
    boolean conditional = fs.hasPathCapability(path, CONDITIONAL);
    FSDataOutputStreamBuilder<?, ?> builder = fs.createFile(path);
    builder.overwrite(false);
    builder.recursive();
    if (conditional) {
      builder.opt("fs.s3a.create.performance", true);
      builder.must(CONDITIONAL, true);
    }
    try {
      try (FSDataOutputStream out = builder.build()) {
        out.write(body);
      }
      return body;
    } catch (IOException failed) {
      try { // What is longer is another object, whatever else is in it.
        return read(fs, path, Math.max(body.length + 1, SOME_BYTES));
      } catch (IOException second) {
        failed.addSuppressed(second);
        throw failed;
      }
    }
  }

  /** Put {@code body} where no other object may be. */
  static void putOwn(FileSystem fs, Path path, byte[] body) throws IOException {
    if (!Arrays.equals(putFirst(fs, path, body), body)) {
      throw new CommitException("EXISTS", "another object is at " + path + ": it was not touched.");
    }
  }

  /**
   * The object's first bytes, {@code most} at most. Raises {@code FileNotFoundException} if there is
   * none; without the right to list the bucket S3 answers 403 then.
   *
   * <p>One request: S3A, from Hadoop 3.3.5 on, asks for the length first only if it is given none.
   */
  static byte[] read(FileSystem fs, Path path, int most) throws IOException {
    FutureDataInputStreamBuilder builder = fs.openFile(path);
    builder.opt(LENGTH, Integer.toString(most));
    try (FSDataInputStream in = FutureIO.awaitFuture(builder.build())) {
      return in.readNBytes(most);
    }
  }
}
