package io.s3commit.spark;

import org.apache.spark.sql.execution.QueryExecutionException;

/**
 * A {@link CommitException} as Spark's callers get it.
 *
 * <p>PySpark shows an exception of this base by its message alone, and of an {@code IOException} all
 * of Java's stack traces ({@code convert_exception} in pyspark/errors/exceptions/captured.py).
 */
public final class WriteException extends QueryExecutionException {
  private static final long serialVersionUID = 1L;

  WriteException(CommitException failed) {
    super(failed.getMessage(), failed);
  }

  /** The code, as docs/codes.md lists it. */
  public String code() {
    return ((CommitException) getCause()).code();
  }
}
