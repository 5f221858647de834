package io.s3commit.spark;

import java.util.List;
import java.util.Set;

/**
 * What a task tells its driver.
 *
 * @param counted its attempt; empty if it has no files
 * @param partitions for which it wrote, as Spark names them: {@code dt=2026-11-21}
 */
record TaskEnd(List<CountedAttempt> counted, Set<String> partitions) {}
