package io.s3commit.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.function.Executable;

/** What several tests expect. */
final class Asserts {
  private Asserts() {}

  /** That the action is refused with this code, in a line that has these words. */
  static void refused(String code, String words, Executable action) {
    CommitException refused = assertThrows(CommitException.class, action);
    assertEquals(code, refused.code(), refused.getMessage());
    assertTrue(refused.getMessage().contains(words), refused.getMessage());
  }
}
