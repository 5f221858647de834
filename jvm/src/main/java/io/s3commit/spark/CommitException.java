package io.s3commit.spark;

import java.io.IOException;

/** What a user of s3commit reads in one line: what is guaranteed, and what to do next. */
public class CommitException extends IOException {
  private static final long serialVersionUID = 1L;

  private final String code;

  CommitException(String code, String message) {
    this(code, message, null);
  }

  CommitException(String code, String message, Throwable cause) {
    super(message + " [" + code + "]", cause);
    this.code = code;
  }

  /** The code, as docs/codes.md lists it. */
  public String code() {
    return code;
  }

  /** To raise {@code failed} where Scala declares no exceptions, for Spark's callers to show. */
  @SuppressWarnings("unchecked")
  static <E extends Throwable> E asUnchecked(Throwable failed) throws E {
    throw (E) (failed instanceof CommitException ours ? new WriteException(ours) : failed);
  }
}
