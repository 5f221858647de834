package io.s3commit.spark;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.hadoop.util.BlockingThreadPoolExecutorService;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** I2: whatever a writer ignores, and whatever S3 answers, a file that lacks bytes is not counted. */
class PendingFileTest {
  private static final int PART = 4;

  @TempDir private Path disk;
  private final FakeUploads s3 = new FakeUploads();
  private ExecutorService threads = Executors.newFixedThreadPool(2);
  private int files;

  @AfterEach
  void end() throws InterruptedException {
    threads.shutdown();
    assertTrue(threads.awaitTermination(1, TimeUnit.MINUTES));
  }

  private PendingFile file() throws IOException {
    return file(() -> disk.resolve("part" + files++).toFile());
  }

  private PendingFile file(Supplier<File> local) throws IOException {
    return new PendingFile("t/a", s3.upload(), PART, local, threads);
  }

  /** A writer that drops an error, and goes on. */
  private static void ignored(OutputStream out, byte[] data) {
    assertThrows(IOException.class, () -> out.write(data));
  }

  @Test
  void partsAreCountedFromOneAndPutWhole() throws IOException {
    PendingFile file = file();
    file.write("0123456789".getBytes());
    file.close();
    PendingFile.Done done = file.await();
    assertEquals(10, done.length());
    assertEquals(List.of("etag-1", "etag-2", "etag-3"), done.etags());
    assertEquals(FakeUploads.ID, done.uploadId());
    assertArrayEquals("0123456789".getBytes(), s3.bytes());
    assertEquals(0, disk.toFile().list().length);
  }

  @Test
  void anEmptyFileHasOnePartOfNoBytes() throws IOException {
    PendingFile file = file();
    file.close();
    assertEquals(List.of("etag-1"), file.await().etags());
    assertEquals(0, s3.bytes().length);
  }

  @Test
  void closingTwiceAddsNothing() throws IOException {
    PendingFile file = file();
    file.write(1);
    file.close();
    file.close();
    assertEquals(1, file.await().etags().size());
  }

  @Test
  void aPartThatS3RefusesFailsTheFile() throws IOException {
    s3.refuse(2);
    PendingFile file = file();
    file.write("01234567".getBytes());
    assertThrows(IOException.class, () -> {
      file.close();
      file.await();
    });
  }

  @Test
  void aFileWhoseWriterIgnoredThatADiskWasFullIsNotCounted() throws IOException {
    File missing = disk.resolve("no-such-directory/part").toFile();
    int[] asked = {0};
    PendingFile file =
        file(() -> asked[0]++ == 1 ? missing : disk.resolve("part" + files++).toFile());
    ignored(file, "01234567".getBytes());
    ignored(file, "more".getBytes());
    file.close();
    assertThrows(IOException.class, file::await);
    file.abort();
  }

  @Test
  void aPartThatIsShortenedOnDiskFailsTheFile() throws Exception {
    CountDownLatch shortened = new CountDownLatch(1);
    for (int busy = 0; busy < 2; busy++) {
      threads.submit(() -> shortened.await(1, TimeUnit.MINUTES));
    }
    PendingFile file = file();
    file.write("012345".getBytes());
    new FileOutputStream(disk.resolve("part0").toFile()).close();
    shortened.countDown();
    assertThrows(IOException.class, () -> {
      file.close();
      file.await();
    });
  }

  /** Spark kills a task so. Hadoop's pool answers with a future that has failed. */
  @Test
  void anInterruptEndsTheWriteBeforeMoreLiesOnDisk() throws IOException {
    threads.shutdown();
    threads = BlockingThreadPoolExecutorService.newInstance(1, 1, 1, TimeUnit.MINUTES, "parts");
    PendingFile file = file();
    Thread.currentThread().interrupt();
    try {
      assertThrows(InterruptedIOException.class, () -> file.write(new byte[100 * PART]));
    } finally {
      assertTrue(Thread.interrupted());
    }
    assertEquals(1, disk.toFile().list().length);
    ignored(file, new byte[1]);
    assertThrows(IOException.class, file::await);
    file.giveUp();
    assertEquals(0, disk.toFile().list().length);
  }

  @Test
  void aFileThatWasNotClosedIsNotCounted() throws IOException {
    PendingFile file = file();
    file.write("0123".getBytes());
    assertThrows(IOException.class, file::await);
    file.abort();
  }

  @Test
  void nothingIsWrittenAfterTheEnd() throws IOException {
    PendingFile file = file();
    file.close();
    ignored(file, new byte[1]);
    assertEquals(0, file.await().length());
  }

  @Test
  void aFileOfTooManyPartsIsRefusedAndNotCounted() throws IOException {
    PendingFile file = file();
    file.write(new byte[10_000 * PART]);
    CommitException refused =
        assertThrows(CommitException.class, () -> file.write(new byte[PART + 1]));
    assertTrue(refused.getMessage().contains("fs.s3a.multipart.size"), refused.getMessage());
    assertThrows(IOException.class, file::await);
    file.abort();
  }

  @Test
  void anAbortLeavesNeitherUploadNorLocalFile() throws Exception {
    PendingFile file = file();
    file.write("012345".getBytes());
    end();
    file.giveUp();
    file.abort();
    assertTrue(s3.isAborted());
    assertEquals(0, disk.toFile().list().length);
    assertThrows(IOException.class, file::await);
  }

  @Test
  void anUploadThatSomebodyElseHasEndedIsNotBegunAgain() throws IOException {
    Upload upload = s3.upload();
    upload.start();
    s3.lose();
    upload.abort();
    assertEquals(FakeUploads.ID, upload.start());
    assertEquals(1, s3.timesStarted());
  }

  @Test
  void anUploadIsBegunByTheFirstByteOnceAndAbortedIfNoPartFollows() throws IOException {
    PendingFile file = file();
    assertEquals(0, s3.timesStarted());
    file.write(1);
    assertEquals(1, s3.timesStarted());
    file.write(new byte[PART]);
    file.giveUp();
    file.abort();
    assertEquals(1, s3.timesStarted());
    assertTrue(s3.isAborted());
  }

  @Test
  void anUploadThatS3RefusedIsTheFilesErrorAndNothingToAbort() throws IOException {
    s3.refuseToStart();
    PendingFile file = file();
    file.write(1);
    file.close();
    IOException refused = assertThrows(IOException.class, file::await);
    assertTrue(refused.getMessage().contains("403"), refused.getMessage());
    file.abort();
    assertFalse(s3.isAborted());
  }

  @Test
  void anAbortOfAFileThatWasNeverBegunAsksS3Nothing() throws IOException {
    file().abort();
    assertFalse(s3.isAborted());
  }
}
