package io.s3commit.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.Serializable;
import java.net.SocketTimeoutException;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One write to one destination. The driver makes it; the tasks get a copy. */
final class Job implements Serializable {
  /** Whose old files go when the new ones are visible. */
  enum Replaces {
    NOTHING("append", "directory"),
    DIRECTORY("replace", "directory"),
    PARTITIONS("replace", "partition");

    private final String conflict;
    private final String scope;

    Replaces(String conflict, String scope) {
      this.conflict = conflict;
      this.scope = scope;
    }
  }

  private static final long serialVersionUID = 1L;
  private static final Logger LOG = LoggerFactory.getLogger(Job.class);
  private static final String JOB = "job.json";
  private static final int MAX_RESULT_BYTES = 256 << 10; // what others may put there is not larger
  private static final long FIRST_PAUSE_MILLIS = 20;
  private static final long LONGEST_PAUSE_MILLIS = 1_000;
  private static final double GROWTH = 1.2; // the answer is late by a fifth of the wait at most
  private static final long REMIND_SECONDS = 60;

  private final String id;
  private final JobDirectory directory;
  private final Replaces replaces;
  private final Options options;
  private final String catalog;
  private String digest;
  private transient boolean asked;

  /** Raises {@link CommitException} for a destination that no job may have. */
  Job(String id, Target target) throws CommitException {
    this.id = id;
    this.directory = JobDirectory.of(target.destination(), id);
    this.replaces = target.replaces();
    this.options = target.options();
    this.catalog = target.catalog();
  }

  String id() {
    return id;
  }

  JobDirectory directory() {
    return directory;
  }

  String conflict() {
    return replaces.conflict;
  }

  String scope() {
    return replaces.scope;
  }

  Options options() {
    return options;
  }

  /** Put {@code job.json}, before any file is written. */
  void open(Configuration conf) throws IOException {
    FileSystem fs = Store.of(directory.destination(), conf);
    Store.check(fs, directory.destination());
    String now = Instant.now().truncatedTo(ChronoUnit.MILLIS).toString();
    byte[] body = Documents.job(this, now);
    digest = Documents.sha256(body);
    Store.putOwn(fs, directory.document(JOB), body);
  }

  /**
   * Ask for the commit of exactly these attempts, and wait for the outcome.
   *
   * <p>Returns if the data is committed. A {@link CommitException} says what is known otherwise.
   */
  void commit(Configuration conf, List<Counted> counted) throws IOException {
    FileSystem fs = Store.of(directory.destination(), conf);
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(options.timeoutSeconds());
    byte[] request = Documents.commit(id, digest, counted);
    asked = true; // from here on: the request may have arrived
    byte[] found = putRequest(fs, request, deadline);
    if (!Arrays.equals(found, request)) {
      throw otherRequest(found);
    }
    judge(await(fs, deadline));
  }

  private byte[] putRequest(FileSystem fs, byte[] request, long deadline) throws IOException {
    Pause pause = new Pause(deadline);
    while (true) {
      try {
        return Store.putFirst(fs, directory.document("request.json"), request);
      } catch (IOException failed) {
        if (isInterrupt(failed)) {
          throw unknown("the request was interrupted", failed);
        }
        if (!pause.rest()) {
          throw unknown("the request could not be put: " + failed.getMessage(), failed);
        }
      }
    }
  }

  private CommitException otherRequest(byte[] found) {
    String what = "another request";
    try {
      JsonNode node = Documents.read(found);
      if (node.path("action").asText().equals("abort")) {
        return new CommitException(
            "ABORT_REQUESTED",
            "job " + id + " is not committed: its abort was requested first ("
                + node.path("reason").asText("no reason given") + ")");
      }
    } catch (IOException unreadable) {
      what = "a request that can't be read";
    }
    return new CommitException(
        "OTHER_REQUEST", "job " + id + ": " + what + " was put first, and decides. " + lookUp());
  }

  private JsonNode await(FileSystem fs, long deadline) throws IOException {
    Pause pause = new Pause(deadline);
    String why = "no result after " + options.timeoutSeconds() + " s";
    long reminder = System.nanoTime() + TimeUnit.SECONDS.toNanos(REMIND_SECONDS);
    boolean over = false;
    while (true) {
      IOException failed = null;
      try {
        byte[] body = Store.read(fs, directory.document("result.json"), MAX_RESULT_BYTES);
        JsonNode result = body == null ? null : Documents.read(body);
        if (result != null && result.path("jobId").asText().equals(id)) {
          return result;
        }
      } catch (IOException again) {
        if (isInterrupt(again)) {
          throw unknown("the wait was interrupted", again);
        }
        failed = again;
      }
      if (System.nanoTime() > reminder) {
        reminder = Long.MAX_VALUE;
        LOG.warn(
            "job {} has no result after {} s. {} If it never ends: `s3commit doctor` tells whether"
                + " the bucket has a pipeline.", id, REMIND_SECONDS, lookUp());
      }
      if (over) {
        throw unknown(failed == null ? why : why + " (" + failed.getMessage() + ")", failed);
      }
      // One more look when the time is over: it may have passed while the process stood still.
      over = !pause.rest();
    }
  }

  private void judge(JsonNode result) throws CommitException {
    String outcome = result.path("outcome").asText();
    String code = result.path("error").path("code").asText("");
    String message = result.path("error").path("message").asText("no reason given");
    if (outcome.equals("COMMITTED")) {
      LOG.info(
          "job {} committed {} files at {}", id, result.path("files"), directory.destinationUri());
    } else if (code.equals("ALREADY_COMMITTED")) {
      LOG.warn("job {} added nothing: {}", id, message);
    } else if (outcome.equals("ABORTED") || outcome.equals("ROLLED_BACK")) {
      throw new CommitException(
          code.isEmpty() ? outcome : code,
          "job " + id + " ended " + outcome + ", none of its files is visible: " + message);
    } else {
      throw unknown("its result has the outcome '" + outcome + "'", null);
    }
  }

  /** A request that took too long is no interrupt, though its exception is one by its class. */
  private static boolean isInterrupt(IOException failed) {
    return failed instanceof InterruptedIOException && !(failed instanceof SocketTimeoutException);
  }

  private CommitException unknown(String why, Throwable cause) {
    return new CommitException(
        "OUTCOME_UNKNOWN",
        "outcome of job " + id + " unknown: " + why + "; it may still be committed. " + lookUp()
            + catalog,
        cause);
  }

  private String lookUp() {
    return "Look it up with `s3commit show " + directory.uri() + "`.";
  }

  /** Ask for the abort, unless the commit was asked for: Spark calls this after that failed, too. */
  void abort(Configuration conf) {
    if (asked || digest == null) {
      return;
    }
    asked = true;
    try {
      FileSystem fs = Store.of(directory.destination(), conf);
      byte[] request = Documents.abort(id, "Spark's job failed");
      Store.putFirst(fs, directory.document("request.json"), request);
    } catch (IOException failed) {
      LOG.warn(
          "the abort of job {} could not be requested: {}. None of its files is visible, and the"
              + " pipeline's sweep aborts it.", id, failed.getMessage());
    }
  }

  /** Pauses that grow, 20 ms to 1 s, until the deadline. */
  private final class Pause {
    private final long deadline;
    private long millis = FIRST_PAUSE_MILLIS;

    Pause(long deadline) {
      this.deadline = deadline;
    }

    /** False, without a rest, when the time is over. */
    boolean rest() throws CommitException {
      long left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
      if (left <= 0) {
        return false;
      }
      try {
        Thread.sleep(Math.min(millis, left));
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        throw unknown("the wait was interrupted", interrupted);
      }
      millis = Math.min((long) Math.ceil(GROWTH * millis), LONGEST_PAUSE_MILLIS);
      return true;
    }
  }
}
