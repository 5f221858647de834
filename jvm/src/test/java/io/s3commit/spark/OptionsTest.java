package io.s3commit.spark;

import static io.s3commit.spark.Inserts.PLAIN;
import static io.s3commit.spark.Inserts.assertRefused;
import static io.s3commit.spark.Inserts.created;
import static io.s3commit.spark.Inserts.table;
import static io.s3commit.spark.Inserts.toPath;
import static io.s3commit.spark.Inserts.toTable;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Whose options count for which write, and which are refused. */
class OptionsTest {
  private static final long DEFAULT_SECONDS = 75 * 60;
  private static final Map<String, String> NO_SETTINGS = Map.of();

  private static Options ofPath(Map<String, String> options, Map<String, String> settings)
      throws CommitException {
    return Options.of(toPath(false, false, options), settings);
  }

  private static Options ofTable(Insert.Table table, Map<String, String> settings)
      throws CommitException {
    return Options.of(toTable(table, false, false, ""), settings);
  }

  @Test
  void aPathsOptionsAreItsOwnInAnyCase() throws CommitException {
    Map<String, String> options =
        Map.of("IDEMPOTENCYKEY", "day", "Conditions.minfiles", "3", "committimeout", "2min", "path", "x");
    assertEquals(new Options("day", 3, 120), ofPath(options, NO_SETTINGS));
    assertEquals(new Options(null, 0, DEFAULT_SECONDS), ofPath(Map.of(), NO_SETTINGS));
  }

  @Test
  void anOptionOfAPathComesBeforeTheSetting() throws CommitException {
    Map<String, String> settings =
        Map.of("idempotencyKey", "session", "commitTimeout", "5s", "prefixes", "s3://", "otherwise", "x");
    assertEquals(new Options("session", 0, 5), ofPath(Map.of(), settings));
    assertEquals(new Options("own", 0, 5), ofPath(Map.of("idempotencykey", "own"), settings));
  }

  @Test
  void aTablesOptionsAreTheSessions() throws CommitException {
    Map<String, String> settings = Map.of("idempotencyKey", "day", "conditions.minFiles", "2");
    assertEquals(new Options("day", 2, DEFAULT_SECONDS), ofTable(PLAIN, settings));
  }

  @ParameterizedTest
  @CsvSource({
    "idempotencyKy, Did you mean idempotencyKey?",
    "idempotency_key, Did you mean idempotencyKey?",
    "idempotence, Did you mean idempotencyKey?",
    "minFiles, Did you mean conditions.minFiles?",
    "condition.minFiles, Did you mean conditions.minFiles?",
    "conditions.minRows, rows are not counted",
    "commitTimout, Did you mean commitTimeout?",
    "commit-timeout, Did you mean commitTimeout?",
  })
  void aNearMissIsRefused(String name, String words) {
    assertRefused("BAD_OPTIONS", words, () -> ofPath(Map.of(name, "1"), NO_SETTINGS));
    assertRefused("BAD_OPTIONS", "", () -> ofPath(Map.of(), Map.of(name, "1")));
    assertRefused("BAD_OPTIONS", words, () -> ofTable(table(Map.of(name, "1"), Map.of()), NO_SETTINGS));
  }

  @ParameterizedTest
  @ValueSource(strings = {"compression", "path", "mergeSchema", "timestampFormat", "columnNameOfCorruptRecord"})
  void anotherOptionIsNoneOfOurs(String name) throws CommitException {
    assertEquals(new Options(null, 0, DEFAULT_SECONDS), ofPath(Map.of(name, "1"), NO_SETTINGS));
    assertRefused("BAD_OPTIONS", "no such setting", () -> ofPath(Map.of(), Map.of(name, "1")));
  }

  @ParameterizedTest
  @CsvSource({"idempotencyKey, ''", "conditions.minFiles, many", "conditions.minFiles, -1", "commitTimeout, soon"})
  void aValueThatCanNotBeObeyed(String name, String value) {
    assertRefused("BAD_OPTIONS", name + "=", () -> ofPath(Map.of(name, value), NO_SETTINGS));
    assertRefused(
        "BAD_OPTIONS", "spark.s3commit." + name + "=", () -> ofTable(PLAIN, Map.of(name, value)));
  }

  @Test
  void whatATableHasStoredIsRefusedUntilItIsUnset() throws CommitException {
    assertRefused(
        "BAD_OPTIONS",
        "ALTER TABLE db.t SET SERDEPROPERTIES ('idempotencykey' = '')",
        () -> ofTable(table(Map.of("idempotencykey", "day"), Map.of()), NO_SETTINGS));
    assertRefused(
        "BAD_OPTIONS",
        "ALTER TABLE db.t UNSET TBLPROPERTIES ('conditions.minFiles')",
        () -> ofTable(table(Map.of(), Map.of("conditions.minFiles", "")), NO_SETTINGS));
    Options none = ofTable(table(Map.of("idempotencykey", ""), Map.of()), NO_SETTINGS);
    assertEquals(new Options(null, 0, DEFAULT_SECONDS), none);
  }

  @Test
  void anOptionGivenWithATableIsRefused() {
    assertRefused(
        "BAD_OPTIONS",
        "set spark.s3commit.commitTimeout in the session",
        () -> ofTable(created(false, false, Map.of("commitTimeout", "5s")), NO_SETTINGS));
    Insert given =
        new Insert(Inserts.OUTPUT, false, false, "", Map.of("idempotencyKey", "day"), PLAIN);
    assertRefused(
        "BAD_OPTIONS",
        "set spark.s3commit.idempotencyKey in the session",
        () -> Options.of(given, NO_SETTINGS));
  }
}
