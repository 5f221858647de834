package io.s3commit.spark;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.spark.internal.io.HadoopMapReduceCommitProtocol;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.internal.SessionState;

/**
 * A session of Spark's own with its own catalog, whose writes end where the job would be opened.
 *
 * <p>So what a {@link Target} is made of are Spark's own commands, as its analyzer makes them, and what
 * Spark asks to delete for them. A directory of this machine stands for every bucket.
 */
final class Statements {
  static final Path TABLE = new Path("s3a://lake/db/t");
  static final Path PATH = new Path("s3a://lake/path");

  private static final SparkSession SESSION = session();
  private static Target target;
  private static Exception failure;
  private static Runnable meanwhile = () -> {};

  /** Something that writes. */
  interface Write {
    void run(SparkSession session) throws Exception;
  }

  private Statements() {}

  private static SparkSession session() {
    SparkSession session =
        SparkSession.builder()
            .master("local[1]")
            .config("spark.ui.enabled", false)
            .config("spark.sql.sources.commitProtocolClass", Recorder.class.getName())
            .config("spark.sql.warehouse.dir", "s3a://lake/warehouse")
            .config("spark.hadoop.fs.s3a.impl", Disk.class.getName())
            .config("spark.hadoop.fs.s3.impl", Disk.class.getName())
            .getOrCreate();
    session.range(6).selectExpr("id", "concat('d', id % 3) AS dt").createOrReplaceTempView("s");
    return session;
  }

  /** A database without tables. */
  static void begin(String... statements) {
    SESSION.sql("USE default");
    SESSION.sql("DROP DATABASE IF EXISTS db CASCADE");
    SESSION.sql("CREATE DATABASE db LOCATION 's3a://lake/db'");
    SESSION.sql("USE db");
    for (String statement : statements) {
      sql(statement);
    }
  }

  /** Run a statement that writes no files. */
  static void sql(String statement) {
    SESSION.sql(statement);
  }

  /** An empty file. */
  static void put(Path directory, String name) {
    try {
      FileSystem fs = directory.getFileSystem(SESSION.sessionState().newHadoopConf());
      fs.create(new Path(directory, name), true).close();
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }

  /** The statement as Spark's analyzer leaves it, not run. */
  static QueryExecution analyzed(String statement) {
    SessionState state = SESSION.sessionState();
    try {
      return state.executePlan(
          state.sqlParser().parsePlan(statement), CommandExecutionMode.SKIP());
    } catch (ParseException bad) {
      throw new IllegalStateException(bad);
    }
  }

  /** The first insert of the statement into {@link #TABLE}. */
  static WriteCommand insert(String statement) throws CommitException {
    return WriteCommand.in(analyzed(statement), TABLE, false);
  }

  /** The target of the statement. Raises the {@link CommitException} with which it is refused. */
  static Target of(String statement) throws CommitException {
    return of(session -> session.sql(statement));
  }

  static Target of(Write write) throws CommitException {
    target = null;
    failure = null;
    try {
      write.run(SESSION);
    } catch (Exception stopped) {
      if (failure instanceof CommitException) {
        throw (CommitException) failure;
      }
      if (target == null) {
        throw new IllegalStateException(stopped);
      }
    }
    return target;
  }

  /** As {@link #of(Write)}; {@code other} happens when the statement has begun, before its job. */
  static Target during(Runnable other, String statement) throws CommitException {
    meanwhile = other;
    try {
      return of(statement);
    } finally {
      meanwhile = () -> {};
    }
  }

  /** Set, or with null unset, what all threads of the session share. */
  static void set(String name, String value) {
    if (value == null) {
      SESSION.conf().unset(name);
    } else {
      SESSION.conf().set(name, value);
    }
  }

  /** Set, or with null unset, what is this thread's alone. */
  static void setForThread(String name, String value) {
    SESSION.sparkContext().setLocalProperty(name, value);
  }

  /** As {@link #of(Write)}, with a setting of the session. */
  static Target with(String name, String value, Write write) throws CommitException {
    SESSION.conf().set(name, value);
    try {
      return of(write);
    } finally {
      SESSION.conf().unset(name);
    }
  }

  static Target with(String name, String value, String statement) throws CommitException {
    return with(name, value, session -> session.sql(statement));
  }

  /** In the place of ours: it looks at the write, and ends it. */
  public static final class Recorder extends HadoopMapReduceCommitProtocol {
    private static final long serialVersionUID = 1L;

    private final Path output;
    private final boolean dynamic;
    private final List<Path> deleted = new ArrayList<>();

    /** As Spark calls it. */
    public Recorder(String jobId, String path, boolean dynamicPartitionOverwrite) {
      super(jobId, path, dynamicPartitionOverwrite);
      this.output = new Path(path);
      this.dynamic = dynamicPartitionOverwrite;
      meanwhile.run();
    }

    @Override
    public boolean deleteWithJob(FileSystem fs, Path path, boolean recursive) {
      return deleted.add(path);
    }

    @Override
    public void setupJob(JobContext context) {
      try {
        target = Target.of(WriteCommand.running(output, dynamic), deleted, Setting.all());
        Committers.check(context.getConfiguration());
      } catch (CommitException | RuntimeException refused) {
        failure = refused;
      }
      throw new IllegalStateException("the write ends here", failure);
    }
  }

  /** In the place of S3A. */
  public static class Disk extends RawLocalFileSystem {
    private static final File ROOT = root();

    private URI uri;

    private static File root() {
      try {
        File root = Files.createTempDirectory("lake").toFile();
        root.deleteOnExit();
        return root;
      } catch (IOException failed) {
        throw new UncheckedIOException(failed);
      }
    }

    @Override
    public void initialize(URI name, Configuration conf) throws IOException {
      super.initialize(name, conf);
      uri = URI.create(name.getScheme() + "://" + name.getAuthority());
    }

    @Override
    public URI getUri() {
      return uri == null ? URI.create("s3a://lake") : uri; // asked for in the constructor, too
    }

    @Override
    public File pathToFile(Path path) {
      return new File(ROOT, uri.getAuthority() + path.toUri().getPath());
    }

    @Override
    public void setPermission(Path path, FsPermission permission) {
      // S3 has none, and here each would be a process.
    }

    @Override
    public FileStatus[] listStatus(Path path) throws IOException {
      FileStatus[] all = super.listStatus(path);
      Arrays.sort(all); // as S3 lists
      if (pathToFile(path).isDirectory()) {
        for (FileStatus one : all) { // named by its place on this machine until here
          one.setPath(new Path(path, one.getPath().getName()));
        }
      }
      return all;
    }

    @Override
    public Path getWorkingDirectory() {
      return new Path(getUri().toString(), "/");
    }
  }
}
