package io.s3commit.spark;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.MultipartUploader;
import org.apache.hadoop.fs.PartHandle;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.UploadHandle;

/** Uploads that are not completed, by Hadoop's {@link MultipartUploader}. */
final class Uploader {
  private static final String PART = "S3A-part01"; // of S3AMultipartUploader, Hadoop 3.3.1 to 3.5
  // Hadoop 3.4.2 added a parameter: whether it is the last part.
  private static final Method PUT_PART =
      Arrays.stream(MultipartUploader.class.getMethods())
          .filter(method -> method.getName().equals("putPart"))
          .findFirst()
          .orElseThrow();

  private final MultipartUploader hadoop;

  Uploader(FileSystem fs) throws IOException {
    this.hadoop = fs.createMultipartUploader(new Path(fs.getUri().toString(), "/")).build();
  }

  Upload of(Path target) {
    return new Upload(target);
  }

  void close() throws IOException {
    hadoop.close();
  }

  /** One file's upload; its methods wait for S3. */
  final class Upload {
    private final Path target;
    private UploadHandle handle;

    private Upload(Path target) {
      this.target = target;
    }

    /** Start the upload, if it was not yet, and return S3's id of it. */
    synchronized String start() throws IOException {
      if (handle == null) {
        handle = get(hadoop.startUpload(target));
      }
      return new String(handle.toByteArray(), StandardCharsets.UTF_8);
    }

    /** Put a part of {@code length} bytes and return its etag. Parts are counted from 1. */
    String put(int number, boolean last, InputStream body, long length) throws IOException {
      start();
      Object[] arguments =
          PUT_PART.getParameterCount() == 5
              ? new Object[] {handle, number, target, body, length}
              : new Object[] {handle, number, last, target, body, length};
      try {
        @SuppressWarnings("unchecked")
        CompletableFuture<PartHandle> answer =
            (CompletableFuture<PartHandle>) PUT_PART.invoke(hadoop, arguments);
        return etag(get(answer).toByteArray());
      } catch (IllegalAccessException impossible) {
        throw new IllegalStateException(impossible);
      } catch (InvocationTargetException failed) {
        throw asIOException(failed.getCause());
      }
    }

    /** Abort the upload, if it was started and the pipeline has not aborted it. */
    synchronized void abort() throws IOException {
      if (handle != null) {
        try {
          get(hadoop.abort(handle, target));
        } catch (FileNotFoundException gone) {
          // The handle stays: a thread that still puts a part must not begin another upload.
        }
      }
    }
  }

  /** The etag in the bytes of S3A's part handle. */
  static String etag(byte[] handle) throws IOException {
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

  /** Wait for it. Raises its error, and an {@code IOException} at an interrupt. */
  static <T> T get(Future<T> future) throws IOException {
    try {
      return future.get();
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException();
    } catch (ExecutionException failed) {
      throw asIOException(failed.getCause());
    }
  }

  private static IOException asIOException(Throwable cause) {
    return cause instanceof IOException ? (IOException) cause : new IOException(cause);
  }
}
