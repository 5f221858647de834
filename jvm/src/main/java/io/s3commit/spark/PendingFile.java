package io.s3commit.spark;

import java.io.BufferedOutputStream;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.function.Supplier;
import org.apache.hadoop.io.IOUtils;
import org.apache.hadoop.util.functional.FutureIO;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A file that stays invisible: a stream into an upload that is not completed.
 *
 * <p>Each part is a file on local disk until it is up. An empty file has one part of no bytes.
 */
final class PendingFile extends OutputStream {
  private static final Logger LOG = LoggerFactory.getLogger(PendingFile.class);
  private static final int BUFFER = 64 * 1024;

  /** What the manifest says of a file. */
  record Done(String key, String uploadId, List<String> etags, long length) {}

  private final String key;
  private final Upload upload;
  private final long partSize;
  private final Supplier<File> localFile;
  private final ExecutorService threads;
  private final List<Future<String>> parts = new ArrayList<>();
  private final List<File> bodies = new ArrayList<>(); // of all parts; a part that is up has none
  private OutputStream out;
  private long inPart;
  private long length;
  private volatile boolean closed;
  private volatile Exception failed; // of a part
  private boolean whole = true; // false from an error on: whoever ignores it must not commit

  /** {@code threads} put the parts; a submit waits while too many are on disk. */
  PendingFile(
      String key,
      Upload upload,
      long partSize,
      Supplier<File> localFile,
      ExecutorService threads) {
    this.key = key;
    this.upload = upload;
    this.partSize = partSize;
    this.localFile = localFile;
    this.threads = threads;
  }

  @Override
  public void write(int value) throws IOException {
    write(new byte[] {(byte) value}, 0, 1);
  }

  @Override
  public void write(byte[] data, int offset, int count) throws IOException {
    if (closed || !whole) {
      throw new IOException(key + " is closed, or was not written without an error");
    }
    whole = false;
    int from = offset;
    int left = count;
    while (left > 0) {
      if (inPart == partSize) {
        send(false);
      }
      int some = (int) Math.min(left, partSize - inPart);
      part().write(data, from, some);
      inPart += some;
      from += some;
      left -= some;
    }
    length += count;
    whole = true;
  }

  private OutputStream part() throws IOException {
    if (out == null) {
      upload.begin(); // while the first part fills
      File body = localFile.get();
      bodies.add(body);
      out = new BufferedOutputStream(new FileOutputStream(body), BUFFER);
    }
    return out;
  }

  @Override
  public void close() throws IOException {
    if (!closed) {
      boolean written = whole;
      whole = false;
      send(true);
      closed = true;
      whole = written;
    }
  }

  /** Give the part to a thread. Raises what another part met, and an interrupt of the wait. */
  private void send(boolean last) throws IOException {
    if (failed != null) {
      throw new IOException(key + ": " + failed.getMessage(), failed);
    }
    part().close();
    File body = bodies.get(bodies.size() - 1);
    int number = parts.size() + 1;
    long size = inPart;
    out = null;
    inPart = 0;
    if (number > Limits.FILE_PARTS) {
      throw new CommitException(
          "TOO_LARGE",
          key + " has more than " + Limits.FILE_PARTS + " parts of " + partSize
              + " bytes: set fs.s3a.multipart.size to more");
    }
    parts.add(threads.submit(() -> put(number, last, body, size)));
    if (Thread.currentThread().isInterrupted()) { // then Hadoop's pool may not have taken the part
      throw new InterruptedIOException(key + ": the wait for room on disk was interrupted");
    }
  }

  /** {@code size} is what was written: what else is on disk by then must not pass for the part. */
  private String put(int number, boolean last, File body, long size) throws IOException {
    try (InputStream in = new PartBody(body)) {
      return upload.put(number, last, in, size);
    } catch (IOException | RuntimeException refused) {
      failed = refused;
      throw refused;
    } finally {
      body.delete();
    }
  }

  boolean isClosed() {
    return closed;
  }

  /** In bytes, of what was written so far. */
  long length() {
    return length;
  }

  /** Wait until all parts are up. Raises the first error of any. */
  Done await() throws IOException {
    if (!closed || !whole) {
      throw new IOException(key + " was not written and closed without an error");
    }
    List<String> etags = new ArrayList<>();
    for (Future<String> part : parts) {
      etags.add(FutureIO.awaitFuture(part));
    }
    return new Done(key, upload.start(), etags, length);
  }

  /** Take no more, and delete what is on disk: of parts that no thread has begun, too. */
  void giveUp() {
    closed = true;
    whole = false;
    IOUtils.cleanupWithLogger(LOG, out);
    bodies.forEach(File::delete);
  }

  /** Abort the upload: call it when no thread puts parts any more. */
  void abort() throws IOException {
    upload.abort();
  }

  /** A part's bytes, which the AWS SDK reads again when it repeats a request. */
  private static final class PartBody extends FileInputStream {
    private long marked;

    PartBody(File file) throws IOException {
      super(file);
    }

    @Override
    public boolean markSupported() {
      return true;
    }

    @Override
    public synchronized void mark(int limit) {
      try {
        marked = getChannel().position();
      } catch (IOException failed) {
        throw new IllegalStateException(failed);
      }
    }

    @Override
    public synchronized void reset() throws IOException {
      getChannel().position(marked);
    }
  }
}
