package io.s3commit.spark;

import static io.s3commit.spark.Asserts.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Which writes are ours, and at which destinations no job can be. */
class SettingTest {
  @ParameterizedTest
  @CsvSource({
    "s3a://lake/t, true",
    "s3://lake/t, true",
    "s3n://lake/t, true", // S3A's on EMR
    "file:/tmp/t, false",
    "gs://lake/t, false",
    "s3a://lake/.hive-staging/t, false",
    "s3a://lake/_temporary/t, false",
    "s3a://lake/_day=1/t, true",
  })
  void allOfS3IsOursWithoutPrefixes(String path, boolean isOurs) throws CommitException {
    assertEquals(isOurs, Setting.isOurs(new Path(path), Map.of()));
  }

  @ParameterizedTest
  @CsvSource({
    "s3a://lake/in/t, true",
    "s3://lake/in, true",
    "s3n://lake/in, true",
    "s3a://lake/inside/t, false",
    "s3a://other/t, true",
    "s3a://others/t, false",
  })
  void aPrefixIsOneInAllSchemes(String path, boolean isOurs) throws CommitException {
    for (String prefixes : new String[] {"s3a://lake/in/, s3://other", "s3://lake/in,,s3a://other/"}) {
      assertEquals(isOurs, Setting.isOurs(new Path(path), Map.of("prefixes", prefixes)));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"gs://lake/", "lake/t", "s3a:/lake", "s3n://lake/", "s3a://La ke/", "s3a://lake/,hdfs://x"})
  void aPrefixThatNoPathCanHaveIsRefused(String prefixes) {
    Map<String, String> settings = Map.of("prefixes", prefixes);
    refused("BAD_SETTING", "s3a://bucket/prefix/",
        () -> Setting.isOurs(new Path("file:/tmp/t"), settings));
  }

  @ParameterizedTest
  @ValueSource(strings = {
    "spark.S3Commit.idempotencyKey", "s3commit.idempotencyKey", "spark.hadoop.spark.s3commit.idempotencyKey",
    "spark.hadoop.s3commit.idempotencyKey",
  })
  void aSettingUnderAnotherPrefixIsRefused(String name) {
    refused("BAD_SETTING", name + ": unset it. Did you mean spark.s3commit.idempotencyKey?",
        () -> Statements.with(name, "day", "INSERT OVERWRITE DIRECTORY 's3a://lake/t' USING csv SELECT 1"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"S3commit.idempotencyKey", "spark.S3Commit.idempotencyKey", "spark.hadoop.s3commit.idempotencyKey"})
  void aThreadsSettingUnderAnotherPrefixIsRefused(String name) {
    Statements.setForThread(name, "day");
    try {
      refused("BAD_SETTING", name + ": unset it. Did you mean s3commit.idempotencyKey?",
          () -> Statements.of(STATEMENT));
    } finally {
      Statements.setForThread(name, null);
    }
  }

  private static final String STATEMENT =
      "INSERT OVERWRITE DIRECTORY 's3a://lake/t' USING csv SELECT 1";

  /** Each setting that acts on one statement, with two values of it. */
  @ParameterizedTest
  @CsvSource({
    "idempotencyKey, k-1, k-2",
    "conditions.minFiles, 1, 2",
    "checkPartitions, false, true",
    "checkSchema, true, false",
    "commitTimeout, 60s, 70s",
    "note, one, another",
    "labels, run=1, run=2",
  })
  void aStatementHasTheSettingsOfItsBeginningAndOfItsThread(String name, String own, String others)
      throws CommitException {
    String setting = Setting.OURS + name;
    Options none = Statements.of(STATEMENT).options();
    Options wanted = Statements.with(setting, own, STATEMENT).options();
    assertNotEquals(none, wanted);
    try {
      Statements.set(setting, own);
      for (String later : new String[] {others, null}) { // by another thread of the session
        Target target = Statements.during(() -> Statements.set(setting, later), STATEMENT);
        assertEquals(wanted, target.options());
        Statements.set(setting, own);
      }
      Statements.set(setting, null);
      Target target = Statements.during(() -> Statements.set(setting, others), STATEMENT);
      assertEquals(none, target.options());
      for (String sessions : new String[] {others, null}) { // the thread's goes before it
        Statements.set(setting, sessions);
        Statements.setForThread(Setting.THREADS + name, own);
        assertEquals(wanted, Statements.of(STATEMENT).options());
        Statements.setForThread(Setting.THREADS + name, null);
      }
      Statements.setForThread("sql.streaming.queryId", "a-query"); // as in a batch that began with one
      Statements.setForThread(setting, others);
      assertEquals(none, Statements.of(STATEMENT).options());
    } finally {
      Statements.set(setting, null);
      for (String one : new String[] {setting, Setting.THREADS + name, "sql.streaming.queryId"}) {
        Statements.setForThread(one, null);
      }
    }
    assertEquals(none, Statements.of(STATEMENT).options());
  }

  @Test
  void aDestinationThatNoPipelineReadsIsRefused() throws CommitException {
    String longest = "x".repeat(800);
    assertEquals(longest, JobDirectory.of(new Path("s3a://lake/" + longest), "id").prefix());
    refused("BAD_PATH", "more than 800 bytes",
        () -> JobDirectory.of(new Path("s3a://lake/" + longest + "x"), "id"));
    refused("BAD_PATH", "more than 800 bytes",
        () -> JobDirectory.of(new Path("s3a://lake/" + "ü".repeat(401)), "id"));
    refused("BAD_PATH", "whole bucket", () -> JobDirectory.of(new Path("s3a://lake/"), "id"));
    refused("BAD_PATH", "control character",
        () -> JobDirectory.of(new Path("s3a", "lake", "/a\u0001b"), "id"));
    refused("BAD_PATH", "not a bucket name",
        () -> JobDirectory.of(new Path("s3a://My_Lake/t"), "id"));
  }
}
