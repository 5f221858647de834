package io.s3commit.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/** What Spark's writers see of a task attempt: files that can be created, once, and not read. */
public final class PendingFileSystem extends FileSystem {
  private static final String SCHEME = "s3commit-pending";

  private URI uri;

  private Attempt attempt;

  /**
   * The files of {@code attempt}, until it is closed.
   *
   * <p>Hadoop keeps the instance. So Spark finds it by its URI alone: the class can't be
   * set in all configurations that Spark looks with.
   */
  static PendingFileSystem of(Attempt attempt, Configuration conf) throws IOException {
    conf.set("fs." + SCHEME + ".impl", PendingFileSystem.class.getName());
    URI uri = URI.create(SCHEME + "://" + UUID.randomUUID());
    PendingFileSystem files = (PendingFileSystem) FileSystem.get(uri, conf);
    files.attempt = attempt;
    return files;
  }

  /** Where Spark is to write the file of that key. */
  String path(String key) {
    return new Path(SCHEME, uri.getAuthority(), "/" + key).toString();
  }

  @Override
  public void initialize(URI name, Configuration conf) throws IOException {
    super.initialize(name, conf);
    uri = name;
  }

  @Override
  public String getScheme() {
    return SCHEME;
  }

  @Override
  public URI getUri() {
    return uri;
  }

  @Override
  public FSDataOutputStream create(
      Path path,
      FsPermission permission,
      boolean overwrite,
      int bufferSize,
      short replication,
      long blockSize,
      Progressable progress)
      throws IOException {
    return new FSDataOutputStream(attempt.create(keyOf(path)), statistics);
  }

  @Override
  public FileStatus getFileStatus(Path path) throws FileNotFoundException {
    long length = attempt.length(keyOf(path));
    return new FileStatus(length, false, 1, getDefaultBlockSize(path), 0, path);
  }

  private static String keyOf(Path path) {
    return path.toUri().getPath().substring(1);
  }

  @Override
  public boolean mkdirs(Path path, FsPermission permission) {
    return true; // S3 has no directories
  }

  @Override
  public boolean delete(Path path, boolean recursive) {
    return false; // the end of the attempt decides
  }

  @Override
  public FileStatus[] listStatus(Path path) {
    return new FileStatus[0];
  }

  @Override
  public Path getWorkingDirectory() {
    return new Path(uri.toString(), "/");
  }

  @Override
  public void setWorkingDirectory(Path path) {
    // There is none.
  }

  @Override
  public FSDataInputStream open(Path path, int bufferSize) {
    throw new UnsupportedOperationException("a file that is not committed can't be read");
  }

  @Override
  public FSDataOutputStream append(Path path, int bufferSize, Progressable progress) {
    throw new UnsupportedOperationException("a file is written once");
  }

  @Override
  public boolean rename(Path from, Path to) {
    throw new UnsupportedOperationException("a file has its final name");
  }
}
