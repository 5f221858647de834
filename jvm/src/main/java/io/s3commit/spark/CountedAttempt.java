package io.s3commit.spark;

/**
 * A task attempt that Spark counts: what its task tells the driver of its manifest.
 *
 * @param manifest the manifest's key, relative to the job directory
 * @param sha256 the digest of the manifest's bytes
 */
record CountedAttempt(
    String taskId, String attemptId, String manifest, String sha256, int files, long bytes) {}
