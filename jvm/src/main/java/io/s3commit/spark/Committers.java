package io.s3commit.spark;

import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.hadoop.ParquetOutputFormat;
import org.apache.parquet.hadoop.ParquetOutputFormat.JobSummaryLevel;

/** Hadoop's output committers, which Spark's own protocol calls and a job does not. */
final class Committers {
  private static final String SPARKS_OWN = "org.apache.parquet.hadoop.ParquetOutputCommitter";

  // These only commit, which the pipeline does instead. EMR sets its own one by default:
  // https://docs.aws.amazon.com/emr/latest/ReleaseGuide/emr-spark-committer-reqs.html
  private static final Set<String> COMMIT_ONLY =
      Set.of(
          SPARKS_OWN,
          "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter",
          "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter",
          "com.amazon.emr.committer.EmrOptimizedSparkSqlParquetOutputCommitter");

  private static final String LEVEL = ParquetOutputFormat.JOB_SUMMARY_LEVEL;
  private static final String CRYPTO = "parquet.encryption.";
  private static final String INTERNAL = CRYPTO + "key.material.store.internally";

  private Committers() {}

  /** Refuse what the committer of the write would do besides: {@code conf} is the write's own. */
  static void check(Configuration conf) throws CommitException {
    // For Parquet, Spark has put the value of the other setting here.
    String committer = conf.getTrimmed("spark.sql.sources.outputCommitterClass", "");
    if (!committer.isEmpty() && !COMMIT_ONLY.contains(committer)) {
      throw refused(
          "the output committer " + committer + " would not be called: unset"
              + " spark.sql.parquet.output.committer.class and"
              + " spark.sql.sources.outputCommitterClass");
    }
    if (committer.equals(SPARKS_OWN)
        && ParquetOutputFormat.getJobSummaryLevel(conf) != JobSummaryLevel.NONE) {
      throw refused("Parquet's summary files would not be written: set " + LEVEL + "=NONE");
    }
    if (committer.contains("Parquet") && encrypts(conf) && !conf.getBoolean(INTERNAL, true)) {
      throw refused("files of Parquet's keys would not be committed: set " + INTERNAL + "=true");
    }
  }

  private static boolean encrypts(Configuration conf) {
    return !conf.getTrimmed("parquet.crypto.factory.class", "").isEmpty()
        && List.of("footer.key", "column.keys", "uniform.key").stream()
            .anyMatch(key -> !conf.getTrimmed(CRYPTO + key, "").isEmpty());
  }

  private static CommitException refused(String why) {
    return new CommitException("BAD_SETTING", why + ", or " + Setting.LEAVE_OUT);
  }
}
