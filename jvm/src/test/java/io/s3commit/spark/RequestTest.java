package io.s3commit.spark;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** When a request is put again by an S3A that can't say when S3 got the first one, before 3.3.5. */
class RequestTest {
  private static final byte[] BODY = "{\"action\":\"commit\"}".getBytes(StandardCharsets.UTF_8);
  private static int puts;

  /** In the place of S3A. */
  public static final class Counting extends Statements.Disk {
    @Override
    public FSDataOutputStreamBuilder<?, ?> createFile(Path path) {
      puts++;
      return super.createFile(path);
    }
  }

  private FileSystem fs;
  private Path path;

  @BeforeEach
  void put() throws IOException {
    Configuration conf = new Configuration();
    conf.set("fs.s3a.impl", Counting.class.getName());
    path = new Path(Statements.PATH, UUID.randomUUID() + "/_request.json");
    fs = Store.of(path, conf);
    Store.putOwn(fs, path, BODY);
    puts = 0;
    Request.patience = 0;
  }

  @AfterEach
  void restore() {
    Request.patience = Limits.ASK_AGAIN_SECONDS;
  }

  private int putsOf(Request request) throws IOException {
    request.putAgainIfDue();
    request.putAgainIfDue();
    return puts;
  }

  @Test
  void aRequestWhoseTimeOrdersNothingIsPutAgain() throws IOException {
    assertEquals(2, putsOf(new Request(fs, path, BODY, false)));
    assertArrayEquals(BODY, Store.read(fs, path, 100));
  }

  @Test
  void aRequestWhoseTimeOrdersOverwritesIsNot() throws IOException {
    assertEquals(0, putsOf(new Request(fs, path, BODY, true)));
  }

  @Test
  void anotherRequestIsNotTouched() throws IOException {
    assertEquals(0, putsOf(new Request(fs, path, new byte[] {'{', '}'}, false)));
    assertArrayEquals(BODY, Store.read(fs, path, 100));
    fs.delete(path, false);
    assertEquals(0, putsOf(new Request(fs, path, BODY, false)));
  }

  @Test
  void itIsNotPutBeforeItsTime() throws IOException {
    Request.patience = 3600;
    assertEquals(0, putsOf(new Request(fs, path, BODY, false)));
  }
}
