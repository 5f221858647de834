package io.s3commit.spark;

import static io.s3commit.spark.Asserts.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Whose options count for which write, and which are refused. */
class OptionsTest {
  private static final long DEFAULT_SECONDS = 75 * 60;
  private static final Map<String, String> NO_SETTINGS = Map.of();

  private static final WriteCommand.Table PLAIN = table(Map.of());

  /** A table with these options stored. */
  private static WriteCommand.Table table(Map<String, String> options) {
    return new WriteCommand.Table("db.t", false, false, "orc", false, options, Map.of(), Set.of(), Map.of());
  }

  private static Options ofPath(Map<String, String> options, Map<String, String> settings)
      throws CommitException {
    return Options.of(
        new WriteCommand(
            Statements.PATH, Job.Replaces.NOTHING, List.of(), "", options, false, null),
        settings);
  }

  private static Options ofTable(WriteCommand.Table table, Map<String, String> settings)
      throws CommitException {
    return Options.of(
        new WriteCommand(
            Statements.TABLE, Job.Replaces.NOTHING, List.of(), "", Map.of(), false, table),
        settings);
  }

  @Test
  void aPathsOptionsAreItsOwnInAnyCase() throws CommitException {
    Map<String, String> options =
        Map.of(
            "IDEMPOTENCYKEY", "day", "Conditions.minfiles", "3", "committimeout", "2min", "path", "x",
            "checkpartitions", "False", "Note", "a note", "LABELS", "dag=sales, Run=7,");
    Options wanted = new Options("day", 3, false, false, 120, "a note", List.of("dag=sales", "Run=7"));
    assertEquals(wanted, ofPath(options, NO_SETTINGS));
    assertEquals(new Options(null, 0, true, false, DEFAULT_SECONDS, "", List.of()), ofPath(Map.of(), NO_SETTINGS));
  }

  @Test
  void anOptionOfAPathComesBeforeTheSetting() throws CommitException {
    Map<String, String> settings =
        Map.of("idempotencyKey", "session", "commitTimeout", "5s", "prefixes", "s3://", "otherwise", "x");
    assertEquals(new Options("session", 0, true, false, 5, "", List.of()), ofPath(Map.of(), settings));
    assertEquals(new Options("own", 0, true, false, 5, "", List.of()), ofPath(Map.of("idempotencykey", "own"), settings));
  }

  @Test
  void aTablesOptionsAreTheSessions() throws CommitException {
    Map<String, String> settings = Map.of("idempotencyKey", "day", "conditions.minFiles", "2");
    assertEquals(new Options("day", 2, true, false, DEFAULT_SECONDS, "", List.of()), ofTable(PLAIN, settings));
  }

  @ParameterizedTest
  @ValueSource(strings = {
    "idempotencyKy", "idempotency_key", "idempotence", "dempotencyKey", "minFiles", "minFilesOfJob",
    "condition.minFiles", "conditions.minRows", "commitTimout", "commit-timeout",
  })
  void aNameThatWasMeantToBeOursIsRefused(String name) {
    String words =
        "unknown option " + name
            + "; use one of: idempotencyKey, conditions.minFiles, checkPartitions, checkSchema, commitTimeout,"
            + " note, labels.";
    refused("BAD_OPTIONS", words, () -> ofPath(Map.of(name, "1"), NO_SETTINGS));
    refused("BAD_OPTIONS", "no such setting", () -> ofPath(Map.of(), Map.of(name, "1")));
    refused("BAD_OPTIONS", words, () -> ofTable(table(Map.of(name, "1")), NO_SETTINGS));
  }

  @ParameterizedTest
  @ValueSource(strings = {
    "compression", "path", "mergeSchema", "timestampFormat", "columnNameOfCorruptRecord", "minFileSize",
    "quote", "mode", "label",
  })
  void anotherOptionIsNoneOfOurs(String name) throws CommitException {
    assertEquals(new Options(null, 0, true, false, DEFAULT_SECONDS, "", List.of()), ofPath(Map.of(name, "1"), NO_SETTINGS));
    refused("BAD_OPTIONS", "no such setting", () -> ofPath(Map.of(), Map.of(name, "1")));
  }

  @ParameterizedTest
  @CsvSource({
    "conditions.minFiles, many",
    "conditions.minFiles, -1",
    "conditions.minFiles, 3000000000",
    "checkPartitions, perhaps",
    "checkSchema, perhaps",
    "commitTimeout, soon",
    "commitTimeout, 0",
    "commitTimeout, -5s",
    "note, 'a\nb'",
    "note, 'a\u0085b'",
    "note, '\ud83d'",
    "labels, dag",
    "labels, =",
    "labels, 'd g=1'",
    "labels, 'dag=a\tb'",
    "labels, 'dag=1,dag=2'",
    "labels, 'a=,b=,c=,d=,e=,f=,g=,h=,i=,j=,k='",
  })
  void aValueThatCanNotBeObeyed(String name, String value) {
    refused("BAD_OPTIONS", name + "=", () -> ofPath(Map.of(name, value), NO_SETTINGS));
    refused("BAD_OPTIONS", name + "=", () -> ofTable(PLAIN, Map.of(name, value)));
  }

  @Test
  void aKeyHasSomeCharactersButNotTooMany() throws CommitException {
    String longest = "\ud83d\ude00".repeat(Limits.KEY_CHARACTERS); // as the pipeline counts
    assertEquals(longest, ofPath(Map.of("idempotencyKey", longest), NO_SETTINGS).idempotencyKey());
    for (String bad : new String[] {longest + "x", ""}) {
      refused("BAD_OPTIONS", "1 to 1024 characters", () -> ofPath(Map.of("idempotencyKey", bad), NO_SETTINGS));
      refused("BAD_OPTIONS", "1 to 1024 characters", () -> ofTable(PLAIN, Map.of("idempotencyKey", bad)));
    }
  }

  @Test
  void aNoteAndALabelHaveSoManyCharacters() throws CommitException {
    String wide = "\ud83d\ude00"; // as the pipeline counts
    for (String[] one :
        new String[][] {
          {"note", wide.repeat(500), "x"},
          {"labels", "n".repeat(64) + "=" + wide.repeat(256), "x"},
          {"labels", "a=,b=,c=,d=,e=,f=,g=,h=,i=," + "n".repeat(64) + "=", "n=,k="},
        }) {
      ofPath(Map.of(one[0], one[1]), NO_SETTINGS);
      refused("BAD_OPTIONS", one[0] + "=", () -> ofPath(Map.of(one[0], one[1] + one[2]), NO_SETTINGS));
    }
  }

  /** A table's own property may be named so. */
  @Test
  void aTablesNoteIsNoneOfOurs() throws CommitException {
    assertEquals("", ofTable(table(Map.of("note", "of the table", "labels", "x")), NO_SETTINGS).note());
  }

  @Test
  void aSettingInAnotherCaseIsRefused() {
    refused(
        "BAD_OPTIONS", "spark.s3commit.idempotencykey=stale: there is no such setting",
        () -> ofTable(PLAIN, Map.of("idempotencyKey", "today", "idempotencykey", "stale")));
  }
}
