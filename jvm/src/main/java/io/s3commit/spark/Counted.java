package io.s3commit.spark;

/**
 * A task attempt that Spark counts: what its task tells the driver of one of its manifests.
 *
 * @param manifest the manifest's key, relative to the job directory
 * @param sha256 the digest of the manifest's bytes
 * @param location the prefix of the location where the files lie, "" for the destination
 */
record Counted(
    String taskId,
    String attemptId,
    String manifest,
    String sha256,
    int files,
    long bytes,
    String location) {}
