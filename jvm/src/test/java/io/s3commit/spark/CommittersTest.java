package io.s3commit.spark;

import static io.s3commit.spark.Asserts.refused;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.hadoop.ParquetOutputCommitter;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What a write asks of an output committer, as Spark puts it into the write's configuration. */
class CommittersTest {
  private static final String OF_PARQUET = "spark.sql.parquet.output.committer.class";
  private static final String OF_ALL = "spark.sql.sources.outputCommitterClass";

  /** A program's. */
  public static class Own extends ParquetOutputCommitter {
    public Own() throws IOException {
      super(null, null);
    }
  }

  private static Target write(String name, String value, String format) throws CommitException {
    return Statements.with(
        name,
        value,
        session ->
            session.range(1).write().mode("append").format(format).save(Statements.PATH.toString()));
  }

  @ParameterizedTest
  @CsvSource({OF_PARQUET + ", parquet", OF_ALL + ", json", OF_ALL + ", orc"})
  void aCommitterOfTheProgramIsRefused(String name, String format) {
    String committer = Own.class.getName();
    refused("BAD_SETTING", committer + " would not be called", () -> write(name, committer, format));
  }

  /** Spark's writer of Parquet overwrites the setting of all formats; others don't read Parquet's. */
  @ParameterizedTest
  @CsvSource({OF_ALL + ", parquet", OF_PARQUET + ", json", OF_PARQUET + ", csv"})
  void aCommitterThatSparkWouldNotCallIsNone(String name, String format) throws CommitException {
    assertNotNull(write(name, Own.class.getName(), format));
  }

  @ParameterizedTest
  @CsvSource({
    OF_PARQUET + ", org.apache.parquet.hadoop.ParquetOutputCommitter, parquet",
    OF_ALL + ", org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter, json",
  })
  void aCommitterThatOnlyCommitsIsReplaced(String name, String committer, String format)
      throws CommitException {
    assertNotNull(write(name, committer, format));
  }

  @ParameterizedTest
  @CsvSource({
    "parquet.summary.metadata.level, ALL, parquet, true",
    "parquet.summary.metadata.level, common_only, parquet, true",
    "parquet.enable.summary-metadata, true, parquet, true",
    "parquet.summary.metadata.level, NONE, parquet, false",
    "parquet.enable.summary-metadata, false, parquet, false",
    "parquet.summary.metadata.level, ALL, json, false",
  })
  void summaryFilesAreRefusedWhereSparkWouldWriteThem(
      String name, String value, String format, boolean isRefused) throws CommitException {
    if (isRefused) {
      refused("BAD_SETTING", "parquet.summary.metadata.level=NONE", () -> write(name, value, format));
    } else {
      assertNotNull(write(name, value, format));
    }
  }

  /** Such a write has files beside its own, which its tasks would be refused one by one. */
  @ParameterizedTest
  @CsvSource({
    "footer.key, false, parquet, true",
    "column.keys, false, parquet, true",
    "uniform.key, false, parquet, true",
    "footer.key, true, parquet, false",
    "footer.key, , parquet, false",
    "footer.key, false, json, false",
    "kms.instance.id, false, parquet, false",
  })
  void filesOfKeysAreRefusedWhereParquetWouldWriteThem(
      String key, String isInternal, String format, boolean isRefused) throws CommitException {
    Statements.Write write =
        session -> {
          Map<String, String> options = new HashMap<>();
          options.put("parquet.crypto.factory.class", "org.apache.parquet.crypto.keytools.Own");
          options.put("parquet.encryption." + key, "k1:id");
          if (isInternal != null) {
            options.put("parquet.encryption.key.material.store.internally", isInternal);
          }
          session.range(1).write().options(options).mode("append").format(format)
              .save(Statements.PATH.toString());
        };
    if (isRefused) {
      refused("BAD_SETTING", "store.internally=true", () -> Statements.of(write));
    } else {
      assertNotNull(Statements.of(write));
    }
  }

  /** They are not in this class path, so Spark could not begin such a write here. */
  @ParameterizedTest
  @ValueSource(strings = {
    "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter",
    "com.amazon.emr.committer.EmrOptimizedSparkSqlParquetOutputCommitter",
  })
  void aCommitterThatAPlatformSetsIsReplaced(String committer) throws CommitException {
    Configuration conf = new Configuration(false);
    conf.set(OF_ALL, committer);
    Committers.check(conf);
  }
}
