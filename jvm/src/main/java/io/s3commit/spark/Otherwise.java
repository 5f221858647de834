package io.s3commit.spark;

import java.lang.reflect.InvocationTargetException;
import java.util.Map;
import java.util.function.Predicate;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.internal.config.ConfigEntry;
import org.apache.spark.internal.io.FileCommitProtocol;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.util.Utils;

/** The commit protocol of the writes that are not ours: the one that they would have without us. */
final class Otherwise {
  private static final String OURS = S3CommitProtocol.class.getName();

  // EMR's default: https://docs.aws.amazon.com/emr/latest/ReleaseGuide/emr-spark-magic-commit-protocol.html
  private static final String EMRS =
      "org.apache.spark.sql.execution.datasources.SQLEmrOptimizedCommitProtocol";

  // Of spark-hadoop-cloud. By the first one S3A's committers commit, which write Parquet by the second.
  private static final String S3AS = "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol";
  private static final String S3AS_PARQUET =
      "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter";

  private static final String MAGIC = "spark.hadoop.fs.s3a.committer.magic.enabled";
  private static final String SINCE = "4.1";
  private static final String PARQUET = "spark.sql.parquet.output.committer.class";

  private Otherwise() {}

  /** Make the protocol. Raises {@link CommitException} if the class is none that can commit the write. */
  static FileCommitProtocol protocol(
      Map<String, String> settings, String jobId, String output, boolean dynamic)
      throws CommitException {
    String name =
        name(
            settings.getOrDefault(Setting.OTHERWISE, "").trim(),
            SparkContext.getOrCreate().version(),
            SparkEnv.get().conf(),
            SQLConf.get().getConfString(PARQUET, null),
            Utils::classIsLoadable);
    Throwable cause = null;
    try {
      if (!name.equals(OURS)) {
        return FileCommitProtocol.instantiate(name, jobId, output, dynamic);
      }
    } catch (Exception | LinkageError failed) { // Scala declares none
      boolean isItsOwn = failed instanceof InvocationTargetException; // such as an overwrite it can't do
      cause = isItsOwn ? failed.getCause() : failed;
    }
    boolean isNamed = settings.containsKey(Setting.OTHERWISE);
    String setting = Setting.OURS + Setting.OTHERWISE;
    throw new CommitException(
        "BAD_SETTING",
        (isNamed
                ? setting + "=" + name + " is not another commit protocol for this write"
                : name + ", which would commit this write without s3commit too, refused it")
            + (cause == null ? "" : ": " + cause)
            + (isNamed ? "" : ". Set " + setting + " to another class")
            + ". Nothing was written.",
        cause);
  }

  /**
   * The class: the one {@code named} for it, that of the application, EMR's, S3A's where Spark or the
   * application has chosen S3A's committers, or Spark's default.
   *
   * <p>Spark chooses the magic one from 4.1 on if both classes are there, and says so in the
   * application's settings. Before, whoever wanted one of S3A's named both.
   *
   * @param parquet the committer of Parquet that the session names, or null
   */
  static String name(
      String named, String release, SparkConf application, String parquet, Predicate<String> isThere) {
    ConfigEntry<String> protocol = SQLConf.FILE_COMMIT_PROTOCOL_CLASS();
    String applications = application.get(protocol.key(), OURS);
    boolean isSparks = release.compareTo(SINCE) >= 0 && application.getBoolean(MAGIC, false);
    boolean isByS3a = isThere.test(S3AS) && isThere.test(S3AS_PARQUET);
    if (!named.isEmpty()) {
      return named;
    }
    if (!applications.equals(OURS)) { // ours is the session's alone
      return applications;
    }
    if (isThere.test(EMRS)) {
      return EMRS;
    }
    return isByS3a && (isSparks || S3AS_PARQUET.equals(parquet)) ? S3AS : protocol.defaultValueString();
  }
}
