package io.s3commit.spark;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One try at a task: its files, which go up while the task writes. */
final class Attempt {
  private static final Logger LOG = LoggerFactory.getLogger(Attempt.class);
  private static final int MAX_FILES = 20_000; // of a manifest
  private static final int THREADS = 8;
  private static final int WAITING_PARTS = 2 * THREADS; // on disk
  private static final long ABORT_SECONDS = 60;

  private final Job job;
  private final FileSystem fs;
  private final Uploader uploader;
  private final long partSize;
  private final String taskId;
  private final String attemptId;
  private final Supplier<File> localFile;
  private final Map<String, PendingFile> files = new ConcurrentHashMap<>();
  private final Semaphore room = new Semaphore(WAITING_PARTS);
  private final ThreadPoolExecutor threads;
  private final PendingFileSystem view;

  /** {@code localFile} names a new file on local disk at each call. */
  Attempt(
      Job job, Configuration conf, int task, String attemptId, Supplier<File> localFile)
      throws IOException {
    this.job = job;
    this.fs = Store.of(job.directory().destination(), conf);
    this.uploader = new Uploader(fs, job.directory().destination());
    this.partSize = Math.max(fs.getConf().getLongBytes("fs.s3a.multipart.size", 64 << 20), 5 << 20);
    this.taskId = String.format("%05d", task);
    this.attemptId = attemptId;
    this.localFile = localFile;
    this.threads =
        new ThreadPoolExecutor(
            THREADS, THREADS, 1, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), this::thread);
    threads.allowCoreThreadTimeOut(true);
    this.view = PendingFileSystem.of(this, conf);
  }

  private Thread thread(Runnable work) {
    Thread thread = new Thread(work, "s3commit-upload-" + taskId);
    thread.setDaemon(true);
    return thread;
  }

  /** Where Spark's writer is to write the file {@code relative} to the job's destination. */
  String path(String relative) {
    return view.path(relative);
  }

  /** Begin the file that {@link #path} was asked for; without a request. */
  PendingFile create(String relative) throws IOException {
    if (files.size() >= MAX_FILES) {
      throw new CommitException(
          "TOO_MANY_FILES",
          "task " + taskId + " has more than " + MAX_FILES + " files: repartition the rows by the"
              + " partition columns, so that each task writes to fewer partitions");
    }
    PendingFile file =
        new PendingFile(
            job.directory().key(relative),
            uploader.of(job.directory().file(relative)),
            partSize,
            localFile,
            room,
            threads);
    if (files.putIfAbsent(relative, file) != null) {
      throw new IOException(relative + " was written before by this task attempt");
    }
    return file;
  }

  /** The length in bytes of a closed file. */
  long length(String relative) throws FileNotFoundException {
    PendingFile file = files.get(relative);
    if (file == null || !file.isClosed()) {
      throw new FileNotFoundException(relative);
    }
    return file.length();
  }

  /** Put the manifest when all parts are up; null, without a request, if there are no files. */
  Counted finish() throws IOException {
    List<PendingFile.Done> done = new ArrayList<>();
    for (PendingFile file : files.values()) {
      done.add(file.await());
    }
    close();
    if (done.isEmpty()) {
      return null;
    }
    byte[] body = Documents.pendingset(job, taskId, attemptId, done);
    String name = "tasks/" + taskId + "/" + attemptId + ".pendingset";
    Store.putOwn(fs, job.directory().document(name), body);
    long bytes = done.stream().mapToLong(PendingFile.Done::length).sum();
    return new Counted(taskId, attemptId, name, Documents.sha256(body), done.size(), bytes);
  }

  /** Abort all uploads. What can't be aborted now the pipeline aborts when the job ends. */
  void abort() {
    threads.shutdownNow();
    try {
      threads.awaitTermination(ABORT_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
    for (PendingFile file : files.values()) {
      try {
        file.abort();
      } catch (IOException failed) {
        LOG.warn("an upload of task {} is not aborted yet: {}", taskId, failed.getMessage());
      }
    }
    close();
  }

  private void close() {
    threads.shutdown();
    try {
      view.close();
      uploader.close();
    } catch (IOException impossible) {
      LOG.debug("neither holds a connection", impossible);
    }
  }
}
