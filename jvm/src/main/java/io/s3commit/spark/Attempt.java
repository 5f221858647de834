package io.s3commit.spark;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.commons.codec.digest.DigestUtils;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.MultipartUploader;
import org.apache.hadoop.io.IOUtils;
import org.apache.hadoop.util.BlockingThreadPoolExecutorService;
import org.apache.spark.util.ThreadUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One try at a task: its files, which go up while the task writes. */
final class Attempt {
  private static final Logger LOG = LoggerFactory.getLogger(Attempt.class);
  private static final int THREADS = 8;
  private static final int WAITING_PARTS = THREADS; // on disk, beside those that go up
  private static final long ABORT_SECONDS = 60;

  private final Job job;
  private final FileSystem fs;
  private final MultipartUploader uploader;
  private final long partSize;
  private final String taskId;
  private final String attemptId;
  private final Supplier<File> localFile;
  private final Map<String, PendingFile> files = new ConcurrentHashMap<>();
  private final Set<String> wanted = ConcurrentHashMap.newKeySet();
  private final ExecutorService threads;
  private final PendingFileSystem view;
  private boolean ended;

  /** {@code localFile} names a new file on local disk at each call. */
  Attempt(
      Job job, Configuration conf, int task, String attemptId, Supplier<File> localFile)
      throws IOException {
    this.job = job;
    this.fs = Store.of(job.directory().destination(), conf);
    this.uploader = fs.createMultipartUploader(job.directory().file("")).build();
    this.partSize = Math.max(fs.getConf().getLongBytes("fs.s3a.multipart.size", 64 << 20), 5 << 20);
    this.taskId = String.format(Locale.ROOT, "%05d", task);
    this.attemptId = attemptId;
    this.localFile = localFile;
    this.threads =
        BlockingThreadPoolExecutorService.newInstance(
            THREADS, WAITING_PARTS, 1, TimeUnit.MINUTES, "s3commit-upload-" + taskId);
    this.view = PendingFileSystem.of(this, conf);
  }

  /** Where Spark's writer is to write the file {@code relative} to the destination. */
  String path(String relative) throws CommitException {
    String key = job.directory().key(relative);
    if (key.getBytes(StandardCharsets.UTF_8).length > Limits.KEY_BYTES) {
      throw new CommitException(
          "KEY_TOO_LONG",
          "the key " + key.substring(0, 200) + "… has more than S3's " + Limits.KEY_BYTES
              + " bytes: the values of its partition are too long. Nothing was committed.");
    }
    if (JobDirectory.UNSPEAKABLE.matcher(relative).find()) {
      throw new CommitException(
          "BAD_PATH",
          "the partition of " + relative + " has a character that S3's answers can't carry."
              + " Nothing was committed.");
    }
    wanted.add(key);
    return view.path(key);
  }

  /** Begin the file that {@link #path} was asked for; without a request. */
  PendingFile create(String key) throws IOException {
    if (ended) {
      throw new IOException("task " + taskId + " has ended: " + key + " can no longer be written");
    }
    if (!wanted.contains(key)) {
      throw new CommitException(
          "UNKNOWN_FILE",
          key + " is a file that Spark did not request, so it can't be committed with the others."
              + " Keys of Parquet's encryption can be kept in the files themselves:"
              + " parquet.encryption.key.material.store.internally=true");
    }
    if (files.size() >= Limits.MANIFEST_FILES) {
      throw tooMany("more than " + Limits.MANIFEST_FILES + " files");
    }
    Upload upload = new Upload(uploader, job.directory().file(key));
    PendingFile file = new PendingFile(key, upload, partSize, localFile, threads);
    if (files.putIfAbsent(key, file) != null) {
      throw new IOException(key + " was already written by this task attempt");
    }
    return file;
  }

  private CommitException tooMany(String what) {
    return new CommitException(
        "TOO_MANY_FILES",
        "task " + taskId + " has " + what + ": repartition the rows by the partition columns, so that"
            + " each task writes to fewer partitions");
  }

  /** The length in bytes of a closed file. */
  long length(String key) throws FileNotFoundException {
    PendingFile file = files.get(key);
    if (file == null || !file.isClosed()) {
      throw new FileNotFoundException(key);
    }
    return file.length();
  }

  /** Put the manifest when all parts are up; none without files. Returns what the driver is to count. */
  List<CountedAttempt> finish() throws IOException {
    List<PendingFile.Done> done = new ArrayList<>();
    for (PendingFile file : files.values()) {
      done.add(file.await());
    }
    close();
    List<CountedAttempt> counted = done.isEmpty() ? List.of() : List.of(put(done));
    ended = true;
    return counted;
  }

  private CountedAttempt put(List<PendingFile.Done> done) throws IOException {
    byte[] body = Documents.pendingset(job.directory(), taskId, attemptId, done);
    String excess = Limits.tooLarge(body, Limits.MANIFEST_BYTES, Limits.MANIFEST_VALUES);
    if (excess != null) {
      throw tooMany("a manifest of " + excess);
    }
    String name = "_tasks/" + taskId + "/_" + attemptId + ".pendingset";
    Store.putOwn(fs, job.directory().document(name), body);
    long bytes = done.stream().mapToLong(PendingFile.Done::length).sum();
    return new CountedAttempt(
        taskId, attemptId, name, DigestUtils.sha256Hex(body), done.size(), bytes);
  }

  /**
   * Abort all uploads, once, and none of a finished attempt. What can't be aborted now the pipeline
   * aborts when the job ends.
   */
  void abort() {
    if (ended) {
      return;
    }
    ended = true;
    // Spark kills a task by an interrupt, which the waiting and S3A's requests would obey.
    boolean interrupted = Thread.interrupted();
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(ABORT_SECONDS);
    threads.shutdownNow();
    files.values().forEach(PendingFile::giveUp);
    try {
      threads.awaitTermination(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
      abort(files.values(), deadline);
    } catch (InterruptedException again) {
      interrupted = true; // the pipeline aborts what is left
    }
    close();
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /** Abort the uploads side by side, until the {@code System.nanoTime()} of {@code deadline}. */
  static void abort(Collection<PendingFile> files, long deadline) throws InterruptedException {
    List<Callable<Void>> aborts = new ArrayList<>();
    for (PendingFile file : files) {
      aborts.add(
          () -> {
            file.abort();
            return null;
          });
    }
    ExecutorService threads = ThreadUtils.newDaemonFixedThreadPool(THREADS, "s3commit-abort");
    int left = 0;
    String why = "";
    try {
      long nanos = deadline - System.nanoTime();
      for (Future<Void> one : threads.invokeAll(aborts, nanos, TimeUnit.NANOSECONDS)) {
        try {
          one.get();
        } catch (ExecutionException | CancellationException failed) {
          left++;
          why = failed.toString();
        }
      }
    } finally {
      threads.shutdownNow();
    }
    if (left > 0) {
      LOG.warn("{} uploads are left to the pipeline, which aborts them: {}", left, why);
    }
  }

  private void close() {
    threads.shutdown();
    IOUtils.cleanupWithLogger(LOG, view, uploader);
  }
}
