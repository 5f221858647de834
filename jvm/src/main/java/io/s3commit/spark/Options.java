package io.s3commit.spark;

import java.io.Serializable;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.unsafe.types.UTF8String;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What a write may say of its job.
 *
 * <p>A write to a path says it by its own options, and else by the session's settings. A write to a
 * catalog's table says it by the settings alone: Spark drops the options of such a write, and keeps
 * those with which a table is created for all later writes to it.
 *
 * @param idempotencyKey null if the write has none
 * @param minFiles 0 if there is no such condition
 * @param timeoutSeconds how long the driver waits for the outcome
 */
record Options(String idempotencyKey, int minFiles, long timeoutSeconds) implements Serializable {
  static final String KEY = "idempotencyKey";
  static final String MIN_FILES = "conditions.minFiles";
  static final String TIMEOUT = "commitTimeout";

  private static final Logger LOG = LoggerFactory.getLogger(Options.class);
  private static final List<String> NAMES = List.of(KEY, MIN_FILES, TIMEOUT);
  private static final int SHOWN = 80; // characters of a value
  private static final int TYPING_ERRORS = 2; // in a name that was meant to be one of ours

  /** An option as it was given, by its name there. */
  private record Given(String name, String value) {}

  /** Raises {@link CommitException} for what can't be obeyed. */
  static Options of(Insert insert, Map<String, String> settings) throws CommitException {
    Map<String, Given> all = new HashMap<>();
    for (Map.Entry<String, String> setting : settings.entrySet()) {
      String name = setting.getKey();
      if (!name.equals(Setting.PREFIXES) && !name.equals(Setting.OTHERWISE)) {
        String ours = oursOf(Setting.OURS, name);
        if (ours == null) {
          throw bad(Setting.OURS + name, setting.getValue(), "there is no such setting");
        }
        Given before = all.put(ours, new Given(Setting.OURS + name, setting.getValue()));
        if (before != null) {
          throw bad(Setting.OURS + name, setting.getValue(), "unset this one or " + before.name());
        }
      }
    }
    if (insert.table() == null) {
      all.putAll(oursIn(insert.options()));
    } else {
      refuseTablesOwn(insert.table(), insert.options());
    }
    Given key = all.get(KEY);
    int length = key == null ? 1 : key.value().codePointCount(0, key.value().length());
    if (length < 1 || length > Limits.KEY_CHARACTERS) {
      throw bad(key.name(), key.value(), "give a key of 1 to " + Limits.KEY_CHARACTERS
          + " characters, or none");
    }
    return new Options(
        key == null ? null : key.value(),
        files(all.getOrDefault(MIN_FILES, new Given(MIN_FILES, "0"))),
        seconds(all.getOrDefault(TIMEOUT, new Given(TIMEOUT, Limits.COMMIT_MINUTES + "min"))));
  }

  /** A stored option without a value counts as none, since Spark has no statement to remove it. */
  private static void refuseTablesOwn(Insert.Table table, Map<String, String> options)
      throws CommitException {
    for (Given one : oursIn(table.properties()).values()) {
      throw stored(table, one, "UNSET TBLPROPERTIES ('" + one.name() + "')");
    }
    for (Given one : oursIn(table.options()).values()) {
      if (!one.value().isEmpty()) {
        throw stored(table, one, "SET SERDEPROPERTIES ('" + one.name() + "' = '') and"
            + " REFRESH TABLE " + table.name());
      }
    }
    for (Given one : oursIn(options).values()) {
      if (!one.value().isEmpty()) {
        throw bad(one.name(), one.value(), "a write to " + table.name()
            + " takes no such option: " + setIt(one));
      }
    }
  }

  private static CommitException stored(Insert.Table table, Given one, String statement) {
    String advice = table.created() ? "leave it out" : "run ALTER TABLE " + table.name() + " " + statement;
    return bad(one.name(), one.value(), "as an option of the table " + table.name()
        + " it would be that of every write to it: " + advice + ", and " + setIt(one));
  }

  private static String setIt(Given one) {
    String name = NAMES.stream().filter(one.name()::equalsIgnoreCase).findFirst().orElseThrow();
    return "set " + Setting.OURS + name + " in the session for the statement that needs it";
  }

  private static Map<String, Given> oursIn(Map<String, String> options) throws CommitException {
    Map<String, Given> found = new HashMap<>();
    for (Map.Entry<String, String> option : options.entrySet()) {
      String ours = oursOf("", option.getKey());
      if (ours != null) {
        found.put(ours, new Given(option.getKey(), option.getValue()));
      }
    }
    return found;
  }

  /** Which of our options this is, null if none. Raises {@link CommitException} for a near miss. */
  private static String oursOf(String prefix, String name) throws CommitException {
    String lower = name.toLowerCase(Locale.ROOT);
    for (String ours : NAMES) {
      if (lower.equals(ours.toLowerCase(Locale.ROOT))) {
        return ours;
      }
    }
    UTF8String letters = lettersOf(lower);
    for (String ours : NAMES) {
      boolean isItsEnd = ours.equals(MIN_FILES) && letters.toString().equals("minfiles");
      int changed = letters.levenshteinDistance(lettersOf(ours.toLowerCase(Locale.ROOT)));
      if (isItsEnd || changed <= TYPING_ERRORS) {
        throw unknown(prefix, name, "Did you mean " + prefix + ours + "?");
      }
    }
    if (lower.startsWith("idempot")) {
      throw unknown(prefix, name, "Did you mean " + prefix + KEY + "?");
    }
    if (lower.startsWith("condition")) {
      throw unknown(prefix, name, "The only condition here is " + prefix + MIN_FILES
          + ": rows are not counted, use s3commit.spark.write() for conditions on them.");
    }
    return null;
  }

  private static UTF8String lettersOf(String lower) {
    return UTF8String.fromString(lower.replaceAll("[^a-z]", ""));
  }

  private static CommitException unknown(String prefix, String name, String advice) {
    return new CommitException(
        "BAD_OPTIONS", "there is no option " + prefix + name + ". " + advice + " Nothing was written.");
  }

  private static int files(Given given) throws CommitException {
    try {
      int files = Integer.parseInt(given.value().trim());
      if (files >= 0) {
        return files;
      }
    } catch (NumberFormatException failed) {
      LOG.debug("no number", failed);
    }
    throw bad(given.name(), given.value(), "give a number of files");
  }

  private static long seconds(Given given) throws CommitException {
    try {
      long seconds = JavaUtils.timeStringAsSec(given.value());
      if (seconds > 0) {
        return seconds;
      }
    } catch (NumberFormatException failed) {
      LOG.debug("no time", failed);
    }
    throw bad(given.name(), given.value(), "give a time such as 120s or 75min");
  }

  private static CommitException bad(String name, String value, String advice) {
    String shown = value.length() > SHOWN ? value.substring(0, SHOWN) + "…" : value;
    return new CommitException(
        "BAD_OPTIONS", name + "=" + shown + ": " + advice + ". Nothing was written.");
  }
}
