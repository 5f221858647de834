package io.s3commit.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** I4: files that are given up leave nothing on disk, and their uploads are aborted side by side. */
class AbortingTest {
  private static final int FILES = 20;

  @TempDir private Path disk;
  private final List<FakeUploads> uploads = new ArrayList<>();
  private final ExecutorService putting = Executors.newFixedThreadPool(2);
  private int parts;

  private List<PendingFile> files() throws IOException, InterruptedException {
    List<PendingFile> files = new ArrayList<>();
    Semaphore room = new Semaphore(2 * FILES);
    for (int number = 0; number < FILES; number++) {
      FakeUploads s3 = new FakeUploads();
      uploads.add(s3);
      Uploader.Upload upload = s3.uploader().of(FakeUploads.TARGET);
      PendingFile file =
          new PendingFile(
              "t/" + number, upload, 4, () -> disk.resolve("part" + parts++).toFile(), room, putting);
      file.write("012345".getBytes());
      upload.start();
      files.add(file);
    }
    putting.shutdown();
    assertTrue(putting.awaitTermination(1, TimeUnit.MINUTES));
    return files;
  }

  @Test
  void allAreAbortedEightAtATime() throws Exception {
    List<PendingFile> files = files();
    CountDownLatch eight = new CountDownLatch(8);
    uploads.forEach(s3 -> s3.meet(eight));
    assertEquals(0, Aborting.abort(files, Executors.newFixedThreadPool(8), in(60_000)));
    assertTrue(uploads.stream().allMatch(FakeUploads::isAborted));
    assertEquals(0, Files.list(disk).count());
  }

  @Test
  void itStopsWhenTheTimeIsOverAndTheDiskIsClearedAllTheSame() throws Exception {
    List<PendingFile> files = files();
    uploads.forEach(FakeUploads::stall);
    assertEquals(FILES, Aborting.abort(files, Executors.newFixedThreadPool(8), in(100)));
    assertEquals(0, Files.list(disk).count());
  }

  private static long in(long millis) {
    return System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
  }
}
