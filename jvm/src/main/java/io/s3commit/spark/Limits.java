package io.s3commit.spark;

import java.util.List;

/** What the pipeline reads at most, and how long it may take. A test compares these with the pipeline's own. */
final class Limits {
  /** Names of access points and of other kinds of buckets; the pipeline hears of a bucket's own. */
  static final List<String> ALIAS_ENDS =
      List.of("-s3alias", "--ol-s3", "--op-s3", ".mrap", "--x-s3", "--xa-s3", "--table-s3");

  static final int MANIFEST_FILES = 20_000;
  static final int MANIFEST_BYTES = 32 << 20;
  static final int MANIFEST_VALUES = 1_000_000;
  static final int PREFIX_BYTES = 800; // of a destination
  static final int KEY_BYTES = 1024; // S3's own limit
  static final int FILE_PARTS = 10_000; // S3's own limit
  static final int REQUEST_ATTEMPTS = 200_000;
  static final int REQUEST_BYTES = 64 << 20;
  static final int REQUEST_VALUES = 1_800_000;
  static final int RESULT_BYTES = 256 << 10;
  static final int TEXT_CHARACTERS = 1024;
  static final int KEY_CHARACTERS = 1024;
  static final int WHO_CHARACTERS = 256;
  static final int LABELS = 10;
  // In both no control character, and no half of a character.
  static final String NOTE = "[^\\x00-\\x1f\\x7f-\\x9f\\ud800-\\udfff]{0,500}";
  static final String LABEL =
      "[A-Za-z0-9_.:/-]{1,64}=[^\\x00-\\x1f\\x7f-\\x9f\\ud800-\\udfff]{0,256}";
  static final int ASK_AGAIN_SECONDS = 300; // without a result; then after twice the time
  static final int COMMIT_MINUTES = 75; // longer than a job waits for its destination

  private Limits() {}

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
