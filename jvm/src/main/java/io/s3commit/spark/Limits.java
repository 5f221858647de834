package io.s3commit.spark;

import java.util.Map;
import java.util.TreeMap;

/** What the pipeline reads at most. A test compares these with the pipeline's own. */
final class Limits {
  static final int MANIFEST_FILES = 20_000;
  static final int MANIFEST_BYTES = 32 << 20;
  static final int MANIFEST_VALUES = 1_000_000;
  static final int FILE_PARTS = 10_000; // S3's own limit
  static final int REQUEST_ATTEMPTS = 200_000;
  static final int REQUEST_BYTES = 64 << 20;
  static final int REQUEST_VALUES = 1_800_000;
  static final int RESULT_BYTES = 256 << 10;
  static final int TEXT_CHARACTERS = 1024;
  static final int KEY_CHARACTERS = 1024;
  static final int WHO_CHARACTERS = 256;

  private Limits() {}

  static Map<String, Integer> all() {
    Map<String, Integer> all = new TreeMap<>();
    all.put("manifestFiles", MANIFEST_FILES);
    all.put("manifestBytes", MANIFEST_BYTES);
    all.put("manifestValues", MANIFEST_VALUES);
    all.put("fileParts", FILE_PARTS);
    all.put("prefixBytes", JobDirectory.MAX_PREFIX_BYTES);
    all.put("requestAttempts", REQUEST_ATTEMPTS);
    all.put("requestBytes", REQUEST_BYTES);
    all.put("requestValues", REQUEST_VALUES);
    all.put("resultBytes", RESULT_BYTES);
    all.put("textCharacters", TEXT_CHARACTERS);
    all.put("keyCharacters", KEY_CHARACTERS);
    all.put("whoCharacters", WHO_CHARACTERS);
    return all;
  }

  /** Why the pipeline would refuse to read the document, or null. */
  static String tooLarge(byte[] body, int bytes, int values) {
    if (body.length > bytes) {
      return body.length + " bytes, of which at most " + bytes + " are read";
    }
    int found = 0; // the signs before values, in texts too, as the pipeline counts
    for (byte one : body) {
      if (one == ',' || one == '[' || one == '{') {
        found++;
      }
    }
    return found > values ? "about " + found + " values, of which at most " + values + " are read" : null;
  }
}
