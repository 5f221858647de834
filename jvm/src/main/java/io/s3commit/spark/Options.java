package io.s3commit.spark;

import java.io.Serializable;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.network.util.JavaUtils;

/**
 * What a write may say of its job: options of the DataFrame's writer, or settings of the session.
 *
 * @param idempotencyKey null if the write has none
 * @param minFiles 0 if there is no such condition
 * @param timeoutSeconds how long the driver waits for the outcome
 */
record Options(String idempotencyKey, int minFiles, long timeoutSeconds) implements Serializable {
  /** Longer than a job waits for its destination, an hour. */
  static final String DEFAULT_TIMEOUT = "75min";

  private static final String KEY = "idempotencyKey";
  private static final String CONDITIONS = "conditions.";
  private static final String MIN_FILES = CONDITIONS + "minFiles";

  /** Spark puts both the options and the session's settings into {@code conf}. */
  static Options of(Configuration conf) throws CommitException {
    int minFiles = 0;
    for (Map.Entry<String, String> entry : conf.getPropsWithPrefix(CONDITIONS).entrySet()) {
      String name = CONDITIONS + entry.getKey();
      if (!name.equals(MIN_FILES)) {
        throw bad(name, entry.getValue(), "rows are not counted here: use s3commit.spark.write()");
      }
      minFiles = number(entry.getValue());
    }
    String key = conf.get(KEY);
    if (key != null && key.isEmpty()) {
      throw bad(KEY, key, "give a key, or none");
    }
    String text = conf.getTrimmed("commitTimeout", conf.getTrimmed(Setting.TIMEOUT, DEFAULT_TIMEOUT));
    return new Options(key, minFiles, seconds(text));
  }

  private static int number(String text) throws CommitException {
    try {
      return Integer.parseUnsignedInt(text.trim());
    } catch (NumberFormatException failed) {
      throw bad(MIN_FILES, text, "give a number of files");
    }
  }

  private static long seconds(String text) throws CommitException {
    try {
      return JavaUtils.timeStringAsSec(text);
    } catch (NumberFormatException failed) {
      throw bad("commitTimeout", text, "give a time such as 120s or 75min");
    }
  }

  private static CommitException bad(String name, String value, String advice) {
    return new CommitException(
        "BAD_OPTIONS", name + "=" + value + ": " + advice + ". Nothing was written.");
  }
}
