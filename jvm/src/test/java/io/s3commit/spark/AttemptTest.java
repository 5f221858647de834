package io.s3commit.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.MultipartUploaderBuilder;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a task attempt takes for its own, and the file system that it goes to. */
class AttemptTest {
  private static final org.apache.hadoop.fs.Path TABLE =
      new org.apache.hadoop.fs.Path("s3a://lake/sales");

  @TempDir private Path disk;
  private int parts;

  /** In the place of S3A. */
  public static final class NoS3 extends RawLocalFileSystem {
    @Override
    public URI getUri() {
      return URI.create("s3a://lake");
    }

    @Override
    public MultipartUploaderBuilder<?, ?> createMultipartUploader(org.apache.hadoop.fs.Path base) {
      return new FakeUploads().builder();
    }
  }

  private static Configuration settings() {
    Configuration conf = new Configuration(false);
    conf.set("fs.s3a.impl", NoS3.class.getName());
    conf.set("fs.s3a.multipart.size", "5M");
    return conf;
  }

  private Attempt attempt() throws IOException {
    Target target = new Target(TABLE, Job.Replaces.NOTHING, new Options(null, 0, true, false, 60, "", List.of()), "");
    Job job = new Job(UUID.randomUUID().toString(), target);
    return new Attempt(job, settings(), 7, "a", () -> disk.resolve("part" + parts++).toFile());
  }

  @Test
  void aFileThatSparkDidNotAskForIsRefusedByName() throws IOException {
    Attempt attempt = attempt();
    attempt.path("part-00007.parquet");
    attempt.create("sales/part-00007.parquet");
    CommitException refused =
        assertThrows(
            CommitException.class, () -> attempt.create("sales/_KEY_MATERIAL_FOR_part-00007.json"));
    assertEquals("UNKNOWN_FILE", refused.code());
    attempt.abort();
  }

  @Test
  void aKeyThatS3DoesNotTakeIsRefusedBeforeItsFirstByte() throws IOException {
    Attempt attempt = attempt();
    attempt.path("p=" + "ä".repeat(500) + "/part-00007");
    String longer = "p=" + "ä".repeat(505) + "/part-00007";
    CommitException refused =
        assertThrows(CommitException.class, () -> attempt.path(longer));
    assertEquals("KEY_TOO_LONG", refused.code());
    attempt.abort();
  }

  @Test
  void aPartitionThatS3sAnswersCanNotCarryIsRefusedBeforeItsFirstByte() throws IOException {
    Attempt attempt = attempt();
    attempt.path("p=ä\ud83d\ude00/part-00007");
    for (String odd : List.of("\ufffe", "\uffff", "\u0001", "\u007f")) {
      CommitException refused =
          assertThrows(CommitException.class, () -> attempt.path("p=" + odd + "/part-00007"));
      assertEquals("BAD_PATH", refused.code());
    }
    attempt.abort();
  }

  @Test
  void i4_anAbortClearsTheDisk() throws IOException {
    Attempt attempt = attempt();
    attempt.path("part-00007.parquet");
    PendingFile file = attempt.create("sales/part-00007.parquet");
    file.write(new byte[(5 << 20) + 1]);
    attempt.abort();
    assertEquals(0, disk.toFile().list().length);
    assertEquals(2, parts);
    assertThrows(IOException.class, () -> file.write(1));
  }

  private List<PendingFile> started(List<FakeUploads> uploads) throws IOException {
    List<PendingFile> files = new ArrayList<>();
    for (FakeUploads s3 : uploads) {
      Upload upload = s3.upload();
      upload.start();
      files.add(new PendingFile("t/a", upload, 4, () -> disk.toFile(), null));
    }
    return files;
  }

  @Test
  void i4_allUploadsAreAbortedEightAtATime() throws Exception {
    List<FakeUploads> uploads = Stream.generate(FakeUploads::new).limit(20).toList();
    CountDownLatch eight = new CountDownLatch(8);
    uploads.forEach(s3 -> s3.meet(eight));
    Attempt.abort(started(uploads), System.nanoTime() + TimeUnit.MINUTES.toNanos(1));
    assertTrue(uploads.stream().allMatch(FakeUploads::isAborted));
  }

  @Test
  void anAbortStopsWhenTheTimeIsOver() throws Exception {
    List<FakeUploads> uploads = Stream.generate(FakeUploads::new).limit(20).toList();
    uploads.forEach(FakeUploads::stall);
    Attempt.abort(started(uploads), System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(100));
    assertTrue(uploads.stream().noneMatch(FakeUploads::isAborted));
  }

  @Test
  void aFileSystemThatStartsNoUploadsIsRefused() throws IOException {
    Asserts.refused(
        "NO_UPLOADER", "needs S3A of Hadoop 3.3.1 or later",
        () -> Store.checked(TABLE, settings()));
  }

  @Test
  void whatAProgramSetsForItsOwnFileSystemIsNotOurs() throws IOException {
    Configuration conf = settings();
    String ofBucket = "bucket." + TABLE.toUri().getAuthority() + ".";
    for (String name : List.of("multipart.purge", "directory.operations.purge.uploads")) {
      conf.setBoolean("fs.s3a." + name, true);
      conf.setBoolean("fs.s3a." + ofBucket + name, true);
    }
    conf.set("fs.s3a.performance.flags", "create");
    Configuration own = Store.of(TABLE, conf).getConf();
    for (String of : List.of("", ofBucket)) {
      assertFalse(own.getBoolean("fs.s3a." + of + "multipart.purge", true));
      assertFalse(own.getBoolean("fs.s3a." + of + "directory.operations.purge.uploads", true));
      assertEquals("", own.get("fs.s3a." + of + "performance.flags"));
    }
  }

  @Test
  void otherSettingsOfS3aHaveAnotherFileSystem() throws IOException {
    Configuration conf = settings();
    assertSame(Store.of(TABLE, conf), Store.of(TABLE, new Configuration(conf)));
    conf.set("fs.s3a.bucket.another.session.token", "its own");
    conf.set("fs.s3a.committer.name", "magic");
    assertSame(Store.of(TABLE, settings()), Store.of(TABLE, conf));
    conf.set("fs.s3a.session.token", "after an hour");
    assertNotSame(Store.of(TABLE, settings()), Store.of(TABLE, conf));
  }
}
