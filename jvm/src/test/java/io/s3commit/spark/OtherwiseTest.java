package io.s3commit.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Set;
import org.apache.spark.SparkConf;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which class commits the writes that are not ours; tests/native asks each Spark the same. */
class OtherwiseTest {
  private static final String PROTOCOL = "spark.sql.sources.commitProtocolClass";
  private static final String CLOUD = "org.apache.spark.internal.io.cloud.";
  private static final String SQL = "org.apache.spark.sql.execution.datasources.";
  private static final String S3AS = CLOUD + "PathOutputCommitProtocol";
  private static final String EMRS = SQL + "SQLEmrOptimizedCommitProtocol";

  @ParameterizedTest
  @CsvSource({
    // there is  magic   Parquet's  application's  Spark  class
    "none,       '',     '',        '',            4.3.0, SQLHadoopMapReduceCommitProtocol",
    "none,       true,   binding,   '',            4.3.0, SQLHadoopMapReduceCommitProtocol",
    "cloud,      true,   binding,   '',            4.1.1, PathOutputCommitProtocol",
    "cloud,      true,   other,     '',            4.1.1, PathOutputCommitProtocol",
    "cloud,      false,  '',        '',            4.1.1, SQLHadoopMapReduceCommitProtocol",
    "cloud,      false,  binding,   '',            4.1.1, PathOutputCommitProtocol",
    "cloud,      '',     '',        '',            4.0.1, SQLHadoopMapReduceCommitProtocol",
    "cloud,      true,   '',        '',            3.5.7, SQLHadoopMapReduceCommitProtocol",
    "cloud,      true,   binding,   '',            3.5.7, PathOutputCommitProtocol",
    "cloud,      true,   binding,   ours,          4.3.0, PathOutputCommitProtocol",
    "cloud,      true,   binding,   a.Protocol,    4.3.0, a.Protocol",
    "emr,        '',     '',        '',            3.5.7, SQLEmrOptimizedCommitProtocol",
    "emr,        true,   binding,   ours,          4.3.0, SQLEmrOptimizedCommitProtocol",
    "emr,        '',     '',        a.Protocol,    3.5.7, a.Protocol",
  })
  void isTheOneThatASessionWithoutUsHas(
      String there, String magic, String parquet, String applications, String release, String found) {
    SparkConf conf = new SparkConf(false);
    if (!magic.isEmpty()) {
      conf.set("spark.hadoop.fs.s3a.committer.magic.enabled", magic);
    }
    if (!applications.isEmpty()) {
      String ours = S3CommitProtocol.class.getName();
      conf.set(PROTOCOL, applications.equals("ours") ? ours : applications);
    }
    String binding = CLOUD + "BindingParquetOutputCommitter";
    Set<String> classes =
        switch (there) {
          case "cloud" -> Set.of(S3AS, binding);
          case "emr" -> Set.of(S3AS, binding, EMRS);
          default -> Set.of();
        };
    String by = parquet.equals("binding") ? binding : parquet;
    String name = Otherwise.name("", release, conf, by, classes::contains);
    assertEquals(found, name.replace(CLOUD, "").replace(SQL, ""));
    assertEquals("named.Class", Otherwise.name("named.Class", release, conf, by, classes::contains));
  }
}
