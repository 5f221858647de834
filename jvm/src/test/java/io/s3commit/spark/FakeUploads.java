package io.s3commit.spark;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.apache.hadoop.fs.MultipartUploader;
import org.apache.hadoop.fs.MultipartUploaderBuilder;
import org.apache.hadoop.fs.PartHandle;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.UploadHandle;

/** Hadoop's uploader as S3A has it, in memory: one upload, whose parts can be refused. */
final class FakeUploads {
  static final Path TARGET = new Path("s3a://bucket/t/a");
  static final String ID = "upload-1";

  private final Map<Integer, byte[]> parts = new ConcurrentHashMap<>();
  private volatile boolean aborted;
  private volatile boolean gone;
  private volatile boolean stalls;
  private volatile boolean closed;
  private volatile CountDownLatch meeting = new CountDownLatch(0);
  private volatile int started;
  private volatile int refused;

  /** Answer the part of this number with an error. */
  void refuse(int number) {
    refused = number;
  }

  /** Answer the beginning of the upload with an error. */
  void refuseToStart() {
    closed = true;
  }

  /** Have the upload ended by somebody else. */
  void lose() {
    gone = true;
  }

  /** Answer an abort never. */
  void stall() {
    stalls = true;
  }

  /** Answer an abort when so many have come. */
  void meet(CountDownLatch aborts) {
    meeting = aborts;
  }

  int timesStarted() {
    return started;
  }

  boolean isAborted() {
    return aborted;
  }

  /** What the parts have, in order. */
  byte[] bytes() {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    new TreeMap<>(parts).values().forEach(all::writeBytes);
    return all.toByteArray();
  }

  Upload upload() {
    return new Upload(uploader(), TARGET);
  }

  MultipartUploaderBuilder<?, ?> builder() {
    MultipartUploader uploader = uploader();
    return proxy(MultipartUploaderBuilder.class, (name, arguments) -> uploader);
  }

  private MultipartUploader uploader() {
    return proxy(
        MultipartUploader.class,
        (name, arguments) -> name.equals("close") ? null : answer(name, arguments));
  }

  private Object answer(String name, Object[] arguments) {
    switch (name) {
      case "startUpload":
        started++;
        if (closed) {
          return CompletableFuture.failedFuture(new IOException("403 Forbidden"));
        }
        UploadHandle handle = () -> ByteBuffer.wrap(ID.getBytes());
        return CompletableFuture.completedFuture(handle);
      case "putPart":
        return put((Integer) arguments[1], (InputStream) arguments[3], (Long) arguments[4]);
      case "abort":
        if (gone) {
          return CompletableFuture.failedFuture(new FileNotFoundException("NoSuchUpload"));
        }
        if (stalls) {
          return new CompletableFuture<Void>();
        }
        try {
          meeting.countDown();
          meeting.await();
        } catch (InterruptedException over) {
          return CompletableFuture.failedFuture(over);
        }
        aborted = true;
        return CompletableFuture.completedFuture(null);
      default:
        throw new UnsupportedOperationException(name);
    }
  }

  private CompletableFuture<PartHandle> put(int number, InputStream body, long length) {
    if (number == refused) {
      return CompletableFuture.failedFuture(new IOException("503 Slow Down"));
    }
    try {
      byte[] read = body.readAllBytes();
      if (read.length != length) { // as AWS's SDK says it
        return CompletableFuture.failedFuture(new IOException("not " + length + " bytes long"));
      }
      parts.put(number, read);
      ByteBuffer bytes = ByteBuffer.wrap(handle(number));
      return CompletableFuture.completedFuture(() -> bytes);
    } catch (IOException impossible) {
      throw new UncheckedIOException(impossible);
    }
  }

  /** As S3AMultipartUploader writes it. */
  private static byte[] handle(int number) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.writeUTF("S3A-part01");
      out.writeUTF(TARGET.toString());
      out.writeUTF(ID);
      out.writeInt(number);
      out.writeLong(0);
      out.writeUTF("etag-" + number);
    }
    return bytes.toByteArray();
  }

  private interface Answer {
    Object to(String name, Object[] arguments);
  }

  private static <T> T proxy(Class<T> type, Answer answer) {
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (self, method, arguments) -> answer.to(method.getName(), arguments)));
  }
}
