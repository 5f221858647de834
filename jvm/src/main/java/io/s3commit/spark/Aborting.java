package io.s3commit.spark;

import java.io.IOException;
import java.util.Collection;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The end of files that are given up: their uploads are aborted side by side, for a while. */
final class Aborting {
  private static final Logger LOG = LoggerFactory.getLogger(Aborting.class);

  private Aborting() {}

  /**
   * Delete what the files have on disk, then abort their uploads with {@code threads}, which is shut
   * down, until the {@code System.nanoTime()} of {@code deadline}. Returns how many are left: the pipeline aborts those when the job ends.
   */
  static int abort(Collection<PendingFile> files, ExecutorService threads, long deadline)
      throws InterruptedException {
    for (PendingFile file : files) {
      try {
        file.giveUp();
      } catch (IOException failed) {
        LOG.warn("a part stays on disk: {}", failed.getMessage());
      }
    }
    AtomicInteger left = new AtomicInteger(files.size());
    for (PendingFile file : files) {
      threads.execute(
          () -> {
            try {
              file.abort();
              left.decrementAndGet();
            } catch (IOException | RuntimeException failed) {
              LOG.warn("an upload is not aborted yet: {}", failed.getMessage());
            }
          });
    }
    threads.shutdown();
    try {
      threads.awaitTermination(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
    } finally {
      threads.shutdownNow();
    }
    return left.get();
  }
}
