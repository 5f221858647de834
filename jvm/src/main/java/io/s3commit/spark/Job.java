package io.s3commit.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.Serializable;
import java.nio.file.AccessDeniedException;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.commons.codec.digest.DigestUtils;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.util.functional.FunctionRaisingIOE;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One write to one destination. The driver makes it; the tasks get a copy. */
final class Job implements Serializable {
  /** Whose old files go when the new ones are visible, or refuse them. */
  enum Replaces {
    NOTHING("append", "directory"),
    NONE_MAY_BE("fail", "directory"),
    IGNORED_IF_ANY("fail", "directory"), // not an error for the program
    DIRECTORY("replace", "directory"),
    PARTITIONS("replace", "partition");

    final String conflict; // as _job.json names it
    final String scope;

    Replaces(String conflict, String scope) {
      this.conflict = conflict;
      this.scope = scope;
    }
  }

  private static final long serialVersionUID = 1L;
  private static final Logger LOG = LoggerFactory.getLogger(Job.class);
  private static final String JOB = "_job.json";
  private static final String ABORT_REQUESTED = "ABORT_REQUESTED";
  private static final String REQUEST = "_request.json";
  private static final long ABORT_SECONDS = 30; // the pipeline takes a few
  private static final long REMIND_SECONDS = 60;
  // Between tries of one request; a pause is a twentieth of the wait: the answer is late by no more.
  private static final long SHORTEST_MILLIS = 50;
  private static final long LONGEST_MILLIS = 3_000;
  private static final long LATENESS = 20;

  private final String id;
  private final JobDirectory directory;
  private final Target target;
  private String digest;
  private transient boolean asked;

  /** Raises {@link CommitException} for a destination that no job may have. */
  Job(String id, Target target) throws CommitException {
    this.id = id;
    this.directory = JobDirectory.of(target.destination(), id);
    this.target = target;
  }

  String id() {
    return id;
  }

  JobDirectory directory() {
    return directory;
  }

  Target target() {
    return target;
  }

  /** Put {@code _job.json}, before any file is written. */
  void open(Configuration conf, Writer who) throws IOException {
    FileSystem fs = Store.of(directory.destination(), conf);
    String now = Instant.now().truncatedTo(ChronoUnit.MILLIS).toString();
    byte[] body = Documents.job(this, now, who);
    digest = DigestUtils.sha256Hex(body);
    Store.putOwn(fs, directory.document(JOB), body);
    LOG.info("job {} writes to {}. {}", id, directory.destinationUri(), lookUp());
  }

  /**
   * Ask for the commit of exactly these attempts, and wait for the outcome.
   *
   * <p>Returns whether this job added the data, or else another one with its key. A {@link
   * CommitException} says what is known if neither did.
   */
  boolean commit(Configuration conf, List<CountedAttempt> counted) throws IOException {
    FileSystem fs = Store.of(directory.destination(), conf);
    long seconds = target.options().timeoutSeconds();
    long deadline = inSeconds(seconds);
    byte[] request = Documents.commit(id, digest, counted);
    refuseTooLarge(request, counted.size());
    asked = true; // from here on: the request may have arrived
    Path path = directory.document(REQUEST);
    byte[] found =
        repeat(over -> Store.putFirst(fs, path, request), "its request is not put", seconds, deadline);
    if (!Arrays.equals(found, request) && !isGivenUp(found)) {
      CommitException other = otherRequest(found);
      if (other.code().equals(ABORT_REQUESTED)) {
        deleteWhenUndone(fs);
      }
      throw other;
    }
    LOG.info("job {}: the commit of {} tasks is requested", id, counted.size());
    Request again = new Request(fs, path, request, target.replaces() != Replaces.NOTHING);
    Result result = await(fs, again, seconds, deadline);
    if (result.isUndone()) {
      deleteDocuments(fs);
    }
    return judge(result.naming(target.options().idempotencyKey()));
  }

  private static void refuseTooLarge(byte[] request, int attempts) throws CommitException {
    String excess = Limits.tooLarge(request, Limits.REQUEST_BYTES, Limits.REQUEST_VALUES);
    if (attempts > Limits.REQUEST_ATTEMPTS) {
      excess = attempts + " tasks, of which at most " + Limits.REQUEST_ATTEMPTS + " are read";
    }
    if (excess != null) {
      throw new CommitException(
          "TOO_MANY_TASKS",
          "the job's request has " + excess + ": write with fewer tasks. Nothing was committed.");
    }
  }

  /** Whether the sweep gave the job up: its result says why, and may say that the data is there. */
  private static boolean isGivenUp(byte[] found) {
    try {
      return Documents.read(found).path("abandoned").asBoolean();
    } catch (IOException unreadable) {
      return false;
    }
  }

  private CommitException otherRequest(byte[] found) {
    String what = "another request";
    try {
      JsonNode node = Documents.read(found);
      if (node.path("action").asText().equals("abort")) {
        return new CommitException(
            ABORT_REQUESTED,
            "job " + id + " was not committed: its abort was requested first ("
                + node.path("reason").asText("no reason given") + ")");
      }
    } catch (IOException unreadable) {
      what = "a request that can't be read";
    }
    return new CommitException(
        "OTHER_REQUEST", "job " + id + ": " + what + " came first and decides. " + lookUp());
  }

  /** The result; {@code again} is what is put again until it comes or the time is over, or null. */
  private Result await(FileSystem fs, Request again, long seconds, long deadline)
      throws CommitException {
    return repeat(over -> result(fs, over ? null : again), "it has no result", seconds, deadline);
  }

  /** The result; where there is none, {@code again} is put again if it is time and not null. */
  private Result result(FileSystem fs, Request again) throws IOException {
    try {
      byte[] body = Store.read(fs, directory.document(Result.NAME), Limits.RESULT_BYTES);
      Result result = Result.of(body);
      return result.jobId().equals(id) ? result : null;
    } catch (FileNotFoundException | AccessDeniedException absent) { // one or the other, by its rights
      if (again != null) {
        again.putAgainIfDue();
      }
      if (absent instanceof AccessDeniedException denied) {
        throw denied;
      }
      return null;
    }
  }

  /**
   * The first answer of {@code request}, of which null is none; it takes whether this is the last try.
   * Raises {@link CommitException} with what the job {@code lacks} if none comes.
   */
  private <T> T repeat(
      FunctionRaisingIOE<Boolean, T> request, String lacks, long seconds, long deadline)
      throws CommitException {
    long began = System.nanoTime();
    long reminder = inSeconds(REMIND_SECONDS);
    boolean reminded = false;
    while (true) {
      // One more try when the time is over: it may have passed while the process stood still.
      boolean over = System.nanoTime() - deadline >= 0;
      IOException failed = null;
      try {
        T answer = request.apply(over);
        if (answer != null) {
          return answer;
        }
      } catch (IOException again) {
        failed = again;
      }
      if (Request.isInterrupt(failed)) {
        throw unknown("a request was interrupted", failed);
      }
      String why = failed == null ? "" : " (" + said(failed) + ")";
      if (over) {
        throw unknown(lacks + " after " + seconds + " s" + why, failed);
      }
      if (!reminded && System.nanoTime() - reminder >= 0) {
        reminded = true;
        LOG.warn(
            "still waiting for job {}: {} after a minute{}. {} If it never ends, `s3commit doctor`"
                + " checks that the bucket has a pipeline.", id, lacks, why, lookUp());
      }
      try {
        long waited = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began);
        Thread.sleep(Math.min(Math.max(waited / LATENESS, SHORTEST_MILLIS), LONGEST_MILLIS));
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        throw unknown("the wait was interrupted", interrupted);
      }
    }
  }

  private static long inSeconds(long seconds) {
    return System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
  }

  private boolean judge(Result result) throws CommitException {
    if (result.isCommitted()) {
      LOG.info(
          "job {} committed {} files at {}", id, result.files(), directory.destinationUri());
    } else if (result.code().equals("ALREADY_COMMITTED") || isIgnored(result)) {
      LOG.warn("job {} added nothing: {}", id, result.message());
      return false;
    } else if (result.isUndone()) {
      throw new CommitException(
          result.code().isEmpty() ? result.outcome() : result.code(),
          "job " + id + " ended " + result.outcome() + "; none of its files are visible: "
              + result.message());
    } else if (result.hasFailed()) {
      throw new CommitException(
          result.code(), "job " + id + " ended " + result.outcome() + ": " + result.message());
    } else {
      throw unknown("its result has the outcome '" + result.outcome() + "'", null);
    }
    return true;
  }

  /** Another job has written there since Spark looked, at which such a write does nothing. */
  private boolean isIgnored(Result result) {
    return target.replaces() == Replaces.IGNORED_IF_ANY
        && result.code().equals("DESTINATION_NOT_EMPTY");
  }

  private static String said(IOException failed) {
    String rights = failed instanceof AccessDeniedException ? "S3 denies access: " : "";
    return rights + failed.getMessage();
  }

  private CommitException unknown(String why, Throwable cause) {
    return new CommitException(
        "OUTCOME_UNKNOWN",
        "outcome of job " + id + " unknown: " + why + "; it may still commit. " + lookUp()
            + target.catalog(),
        cause);
  }

  private String lookUp() {
    return "Check it with `s3commit show " + directory.typed() + "`.";
  }

  /**
   * Ask for the abort, unless the commit was asked for: Spark calls this after that failed, too.
   *
   * <p>Spark cancels a statement by an interrupt, too, which S3A's requests would obey.
   */
  void abort(Configuration conf) {
    if (asked || digest == null) {
      return;
    }
    asked = true;
    boolean interrupted = Thread.interrupted();
    try {
      FileSystem fs = Store.of(directory.destination(), conf);
      byte[] request = Documents.abort(id, "Spark's job failed");
      Store.putFirst(fs, directory.document(REQUEST), request);
      deleteWhenUndone(fs);
    } catch (IOException failed) {
      LOG.warn(
          "the abort of job {} could not be requested: {}. None of its files are visible, and the"
              + " pipeline's sweep aborts it.", id, said(failed));
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /** After an abort was requested: Spark creates a table only where nothing lies. */
  private void deleteWhenUndone(FileSystem fs) {
    try {
      if (await(fs, null, ABORT_SECONDS, inSeconds(ABORT_SECONDS)).isUndone()) {
        deleteDocuments(fs);
      }
    } catch (IOException failed) {
      LOG.warn(
          "job {} was not aborted within {} s. None of its files are visible, and the pipeline aborts"
              + " it. Its documents remain: {}", id, ABORT_SECONDS, whatTheyBlock());
    }
  }

  /** Delete the job directory of a job that is known to be undone; the ledger still knows it. */
  private void deleteDocuments(FileSystem fs) {
    try {
      fs.delete(directory.document(""), true);
    } catch (IOException failed) {
      LOG.warn(
          "the documents of job {} could not be deleted: {}. Allow s3:DeleteObject on {}*."
              + " They remain: {}", id, said(failed), directory.uri(), whatTheyBlock());
    }
  }

  private String whatTheyBlock() {
    return "Spark can't create a table there until you delete them. When `s3commit show "
        + directory.typed() + "` says ABORTED or ROLLED_BACK, delete what is below "
        + directory.uri();
  }
}
