package io.s3commit.spark;

import java.util.concurrent.TimeUnit;

/** The pauses between tries of one request, which grow from 20 ms to 1 s, until a deadline. */
final class Pause {
  private static final long FIRST_MILLIS = 20;
  private static final long LONGEST_MILLIS = 1_000;
  private static final double GROWTH = 1.2; // the answer is late by a fifth of the wait at most
  private static final long REMIND_SECONDS = 60;

  private final long deadline;
  private final long reminder = System.nanoTime() + TimeUnit.SECONDS.toNanos(REMIND_SECONDS);
  private long millis = FIRST_MILLIS;
  private boolean reminded;

  Pause(long deadline) {
    this.deadline = deadline;
  }

  static long deadline(long seconds) {
    return System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
  }

  /** False, without a rest, when the time is over. */
  boolean rest() throws InterruptedException {
    long left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
    if (left <= 0) {
      return false;
    }
    Thread.sleep(Math.min(millis, left));
    millis = Math.min((long) Math.ceil(GROWTH * millis), LONGEST_MILLIS);
    return true;
  }

  /** True once, when the tries have taken a minute. */
  boolean isLong() {
    if (reminded || System.nanoTime() < reminder) {
      return false;
    }
    reminded = true;
    return true;
  }
}
