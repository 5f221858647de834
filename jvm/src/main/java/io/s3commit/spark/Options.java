package io.s3commit.spark;

import java.io.Serializable;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.ToLongFunction;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * What a write may say of its job.
 *
 * <p>A write to a path says it by its own options, and else by the session's settings. A write to a
 * catalog's table says it by the settings alone: Spark drops the options of such a write, and keeps
 * those with which a table is created for all later writes to it.
 *
 * @param idempotencyKey null if the write has none
 * @param minFiles 0 if there is no such condition
 * @param checkPartitions whether the files that stay must have the same partition columns
 * @param checkSchema whether the newest of them must have the same types
 * @param timeoutSeconds how long the driver waits for the outcome
 * @param note for people, "" if the write has none; no rule reads it, nor the next
 * @param labels each as {@code name=value}
 */
record Options(
    String idempotencyKey,
    int minFiles,
    boolean checkPartitions,
    boolean checkSchema,
    long timeoutSeconds,
    String note,
    List<String> labels)
    implements Serializable {
  private static final String KEY = "idempotencyKey";
  private static final String MIN_FILES = "conditions.minFiles";
  private static final String CHECK_PARTITIONS = "checkPartitions";
  private static final String CHECK_SCHEMA = "checkSchema";
  private static final String TIMEOUT = "commitTimeout";
  private static final List<String> NAMES =
      List.of(KEY, MIN_FILES, CHECK_PARTITIONS, CHECK_SCHEMA, TIMEOUT);
  // Of a path's options their very names alone: another may be so named, or nearly, such as "quote".
  private static final String NOTE = "note";
  private static final String LABELS = "labels";
  private static final List<String> OTHER_SETTINGS =
      List.of(Setting.PREFIXES, Setting.OTHERWISE, NOTE, LABELS);

  private static final Pattern LIKE_OURS = Pattern.compile("idempot|condition|minfiles(?!ize)");
  private static final int TYPING_ERRORS = 2; // in a name that was meant to be one of ours
  private static final int SHOWN = 80; // characters of a value

  /** Raises {@link CommitException} for what can't be obeyed. */
  static Options of(WriteCommand insert, Map<String, String> settings) throws CommitException {
    for (Map.Entry<String, String> one : settings.entrySet()) {
      if (!NAMES.contains(one.getKey()) && !OTHER_SETTINGS.contains(one.getKey())) {
        throw bad(Setting.OURS + one.getKey(), one.getValue(), "there is no such setting");
      }
    }
    Map<String, String> all = new HashMap<>(settings);
    if (insert.table() == null) {
      for (Map.Entry<String, String> one : insert.options().entrySet()) {
        String name = one.getKey().toLowerCase(Locale.ROOT);
        String ours = name.equals(NOTE) || name.equals(LABELS) ? name : oursOf(one.getKey());
        if (ours != null) {
          all.put(ours, one.getValue());
        }
      }
    } else {
      refuseTablesOwn(insert.table(), insert.options());
    }
    String key = all.get(KEY);
    int length = key == null ? 1 : key.codePointCount(0, key.length());
    if (length < 1 || length > Limits.KEY_CHARACTERS) {
      throw bad(KEY, key, "give a key of 1 to " + Limits.KEY_CHARACTERS + " characters, or none");
    }
    return new Options(
        key,
        (int) number(all, MIN_FILES, "0", Integer::parseInt, 0, "a number of files"),
        isTrue(all, CHECK_PARTITIONS, "true"),
        isTrue(all, CHECK_SCHEMA, "false"),
        number(
            all, TIMEOUT, Limits.COMMIT_MINUTES + "min", JavaUtils::timeStringAsSec, 1,
            "a time such as 120s or 75min"),
        note(all.getOrDefault(NOTE, "")),
        labels(all.getOrDefault(LABELS, "")));
  }

  private static String note(String value) throws CommitException {
    if (!value.matches(Limits.NOTE)) {
      throw bad(NOTE, value, "give a text that matches " + Limits.NOTE);
    }
    return value;
  }

  private static List<String> labels(String value) throws CommitException {
    List<String> found =
        Arrays.stream(value.split(",")).map(String::trim).filter(one -> !one.isEmpty()).toList();
    if (found.size() > Limits.LABELS
        || !found.stream().allMatch(one -> one.matches(Limits.LABEL))
        || found.stream().map(one -> one.split("=")[0]).distinct().count() < found.size()) {
      throw bad(
          LABELS, value,
          "give at most " + Limits.LABELS + " names with values, such as dag=sales,run=7, each"
              + " matching " + Limits.LABEL);
    }
    return found;
  }

  private static boolean isTrue(Map<String, String> all, String name, String usual)
      throws CommitException {
    String value = all.getOrDefault(name, usual).trim().toLowerCase(Locale.ROOT);
    if (!value.equals("true") && !value.equals("false")) {
      throw bad(name, value, "give true or false");
    }
    return value.equals("true");
  }

  private static long number(
      Map<String, String> all, String name, String usual, ToLongFunction<String> parse, long least,
      String form)
      throws CommitException {
    String value = all.getOrDefault(name, usual);
    try {
      long number = parse.applyAsLong(value.trim());
      if (number >= least) {
        return number;
      }
    } catch (NumberFormatException none) {
      // It is refused, too.
    }
    throw bad(name, value, "give " + form);
  }

  private static void refuseTablesOwn(WriteCommand.Table table, Map<String, String> options)
      throws CommitException {
    UnaryOperator<String> stored =
        statement ->
            "as an option of the table " + table.name() + " it would be that of every write to it: "
                + (table.created() ? "leave it out" : "run ALTER TABLE " + table.name() + statement);
    refuse(table.properties(), name -> stored.apply(" UNSET TBLPROPERTIES ('" + name + "')"));
    refuse(
        table.options(),
        name ->
            stored.apply(
                " SET SERDEPROPERTIES ('" + name + "' = '') and REFRESH TABLE " + table.name()));
    refuse(options, name -> "a write to " + table.name() + " does not accept this option");
  }

  /** An option without a value counts as none, since Spark can't remove one that a table stores. */
  private static void refuse(Map<String, String> options, UnaryOperator<String> advice)
      throws CommitException {
    for (Map.Entry<String, String> one : options.entrySet()) {
      String ours = oursOf(one.getKey());
      if (ours != null && !one.getValue().isEmpty()) {
        throw bad(one.getKey(), one.getValue(), advice.apply(one.getKey()) + ", and set "
            + Setting.OURS + ours + " in the session for the statement that needs it");
      }
    }
  }

  /**
   * Which of our options this is, null if none. Raises {@link CommitException} for a name that was
   * meant to be one.
   */
  private static String oursOf(String name) throws CommitException {
    String letters = lettersOf(name);
    boolean isMeant = LIKE_OURS.matcher(letters).lookingAt();
    for (String ours : NAMES) {
      if (name.equalsIgnoreCase(ours)) {
        return ours;
      }
      UTF8String right = UTF8String.fromString(lettersOf(ours));
      isMeant |= UTF8String.fromString(letters).levenshteinDistance(right) <= TYPING_ERRORS;
    }
    if (isMeant) {
      throw new CommitException(
          "BAD_OPTIONS",
          "unknown option " + name + "; use one of: " + String.join(", ", NAMES) + ", " + NOTE + ", " + LABELS
              + ". Nothing was written.");
    }
    return null;
  }

  private static String lettersOf(String name) {
    return name.toLowerCase(Locale.ROOT).replaceAll("[^a-z]", "");
  }

  private static CommitException bad(String name, String value, String advice) {
    String shown = value.length() > SHOWN ? value.substring(0, SHOWN) + "…" : value;
    return new CommitException(
        "BAD_OPTIONS", name + "=" + shown + ": " + advice + ". Nothing was written.");
  }
}
