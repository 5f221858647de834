package io.s3commit.spark;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.fs.MultipartUploader;
import org.apache.hadoop.fs.PartHandle;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.UploadHandle;
import org.apache.hadoop.util.functional.FutureIO;

/** One file's upload, which is not completed; its methods wait for S3. */
final class Upload {
  private static final String PART = "S3A-part01"; // of S3AMultipartUploader, Hadoop 3.3.1 to 3.5
  // Hadoop 3.4.2 added a parameter: whether it is the last part.
  private static final Method PUT_PART =
      Arrays.stream(MultipartUploader.class.getMethods())
          .filter(method -> method.getName().equals("putPart"))
          .findFirst()
          .orElseThrow();

  private final MultipartUploader uploader;
  private final Path target;
  private CompletableFuture<UploadHandle> started;
  private UploadHandle handle;

  Upload(MultipartUploader uploader, Path target) {
    this.uploader = uploader;
    this.target = target;
  }

  /** Begin the upload, if nobody has, and don't wait for S3's answer. */
  synchronized void begin() throws IOException {
    if (started == null) {
      started = uploader.startUpload(target);
    }
  }

  /** Begin the upload, if nobody has, and return S3's id of it. */
  synchronized String start() throws IOException {
    begin();
    if (handle == null) {
      handle = FutureIO.awaitFuture(started);
    }
    return new String(handle.toByteArray(), StandardCharsets.UTF_8);
  }

  /** Put a part of {@code length} bytes and return its etag. Parts are counted from 1. */
  @SuppressWarnings("unchecked")
  String put(int number, boolean last, InputStream body, long length) throws IOException {
    start();
    Object[] arguments =
        PUT_PART.getParameterCount() == 5
            ? new Object[] {handle, number, target, body, length}
            : new Object[] {handle, number, last, target, body, length};
    CompletableFuture<PartHandle> answer;
    try {
      answer = (CompletableFuture<PartHandle>) PUT_PART.invoke(uploader, arguments);
    } catch (ReflectiveOperationException failed) {
      Throwable why = failed.getCause() == null ? failed : failed.getCause();
      throw new IOException("part " + number + " of " + target + " can't be put: " + why, why);
    }
    return etag(FutureIO.awaitFuture(answer).toByteArray());
  }

  /** Abort the upload, if it was begun and the pipeline has not aborted it. */
  synchronized void abort() throws IOException {
    if (started != null && !started.isCompletedExceptionally()) {
      start();
      try {
        FutureIO.awaitFuture(uploader.abort(handle, target));
      } catch (FileNotFoundException gone) {
        // It stays begun: a thread that still puts a part must not begin another upload.
      }
    }
  }

  /** The etag in the bytes of S3A's part handle. */
  private static String etag(byte[] handle) throws IOException {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(handle))) {
      if (!in.readUTF().equals(PART)) {
        throw new IOException("a part handle of an unknown form: this Hadoop was not tested");
      }
      in.readUTF(); // path
      in.readUTF(); // upload id
      in.readInt(); // part number
      in.readLong(); // length
      String etag = in.readUTF();
      if (in.available() > 0) {
        throw new CommitException(
            "UNSUPPORTED_CHECKSUM",
            "S3A has put a part with a checksum of its own, and the pipeline can't complete such an"
                + " upload: unset fs.s3a.create.checksum.algorithm and fs.s3a.checksum.generation");
      }
      return etag;
    }
  }
}
