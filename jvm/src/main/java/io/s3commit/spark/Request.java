package io.s3commit.spark;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.time.Instant;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The request of a commit, which is put again while no result comes: its event may be lost. */
final class Request {
  private static final Logger LOG = LoggerFactory.getLogger(Request.class);
  private static final String HEADER = "fs.s3a.create.header"; // from Hadoop 3.3.5 on
  private static final String FIRST = HEADER + ".s3commit-requested";
  private static final String IF_MATCH = "fs.option.create.conditional.overwrite.etag"; // 3.4.2
  private static final DateTimeFormatter MOMENT =
      new DateTimeFormatterBuilder().appendInstant(3).toFormatter();
  static long patience = Limits.ASK_AGAIN_SECONDS; // tests have less

  private final FileSystem fs;
  private final Path path;
  private final byte[] body;
  private final boolean isOrdered;
  private final long began = System.nanoTime();
  private long due = TimeUnit.SECONDS.toNanos(patience);
  private String first; // when S3 got it

  /** {@code isOrdered} if the job's place among others follows from the time of its request. */
  Request(FileSystem fs, Path path, byte[] body, boolean isOrdered) {
    this.fs = fs;
    this.path = path;
    this.body = body;
    this.isOrdered = isOrdered;
  }

  /** Put it again if it is time, and then after twice the time. An interrupt alone is an error. */
  void putAgainIfDue() throws IOException {
    if (System.nanoTime() - began < due) {
      return;
    }
    due *= 2;
    try {
      putAgain();
    } catch (IOException failed) { // the result is what counts
      if (isInterrupt(failed)) {
        throw failed;
      }
      LOG.debug("{} is not put again", path, failed);
    }
  }

  /**
   * Put the same bytes, unless another request is there. The object's metadata says when S3 got the
   * first one: S3A that can't set it (before 3.3.5) repeats those alone whose time orders nothing.
   */
  private void putAgain() throws IOException {
    FileStatus status = fs.getFileStatus(path);
    boolean hasHeader = fs.hasPathCapability(path, HEADER);
    if (isOrdered && !hasHeader || !Arrays.equals(Store.read(fs, path, body.length + 1), body)) {
      return;
    }
    if (first == null) {
      first = MOMENT.format(Instant.ofEpochMilli(status.getModificationTime()));
    }
    FSDataOutputStreamBuilder<?, ?> builder = fs.createFile(path);
    builder.overwrite(true);
    builder.recursive();
    builder.opt("fs.s3a.create.performance", true); // without a look at what is there
    if (hasHeader) {
      builder.must(FIRST, first);
    }
    if (fs.hasPathCapability(path, IF_MATCH)) {
      builder.must(IF_MATCH, ((EtagSource) status).getEtag());
    }
    try (FSDataOutputStream out = builder.build()) {
      out.write(body);
    }
    LOG.info("{} is put again: its event may be lost", path);
  }

  /** A request that took too long is none, though its exception is one by its class. */
  static boolean isInterrupt(IOException failed) {
    return failed instanceof InterruptedIOException && !(failed instanceof SocketTimeoutException);
  }
}
