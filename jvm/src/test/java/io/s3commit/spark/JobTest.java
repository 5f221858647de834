package io.s3commit.spark;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;

/** What the driver asks the pipeline for. */
class JobTest {
  /** In the place of S3A, whose requests end at an interrupt. */
  public static final class Interruptible extends Statements.Disk {
    @Override
    public FSDataOutputStreamBuilder<?, ?> createFile(Path path) {
      if (Thread.currentThread().isInterrupted()) {
        throw CommitException.<RuntimeException>asUnchecked(new InterruptedIOException());
      }
      return super.createFile(path);
    }
  }

  @Test
  void anInterruptedDriverAsksForTheAbortAllTheSame() throws IOException {
    Configuration conf = new Configuration();
    conf.set("fs.s3a.impl", Interruptible.class.getName());
    Target target =
        new Target(Statements.PATH, Job.Replaces.NOTHING, new Options(null, 0, true, false, 60, "", List.of()), "");
    Job job = new Job(UUID.randomUUID().toString(), target);
    job.open(conf, new Writer("", "", "", "", ""));
    FileSystem fs = Store.of(Statements.PATH, conf);
    Path request = job.directory().document("_request.json");
    byte[] other = "{\"jobId\":\"another\"}".getBytes(StandardCharsets.UTF_8);
    Store.putOwn(fs, job.directory().document(Result.NAME), other); // so the driver waits for its own
    Thread waiting = Thread.currentThread();
    Thread second =
        new Thread(
            () -> {
              while (!exists(fs, request)) {
                Thread.onSpinWait();
              }
              waiting.interrupt();
            });
    second.start();
    Thread.currentThread().interrupt();
    job.abort(conf);
    assertTrue(Thread.interrupted(), "Spark still sees the interrupt");
    assertTrue(fs.exists(request));
    assertFalse(Thread.interrupted());
  }

  private static boolean exists(FileSystem fs, Path path) {
    try {
      return fs.exists(path);
    } catch (IOException failed) {
      return false;
    }
  }
}
