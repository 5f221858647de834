/**
 * A commit protocol for Spark's own file writers: each write of files to S3 becomes a job of s3commit.
 *
 * <p>Tasks upload their files straight to the final keys and complete none of the uploads. The driver
 * asks for the commit and waits for the pipeline's answer. The formats of the documents are those of
 * docs/protocol.md.
 */
package io.s3commit.spark;
