package io.s3commit.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import org.apache.commons.codec.digest.DigestUtils;

/**
 * What the pipeline says of a job's end, {@code _result.json}.
 *
 * @param code of the error, "" if there is none
 */
record Result(String jobId, String outcome, String code, String message, long files) {
  static final String NAME = "_result.json";

  static Result of(byte[] body) throws IOException {
    JsonNode node = Documents.read(body);
    JsonNode error = node.path("error");
    return new Result(
        node.path("jobId").asText(),
        node.path("outcome").asText(),
        error.path("code").asText(""),
        error.path("message").asText("no reason given"),
        node.path("files").asLong());
  }

  /** With the key as the program gave it: the pipeline knows its digest alone. */
  Result naming(String key) {
    return key == null
        ? this
        : new Result(jobId, outcome, code, message.replace(DigestUtils.sha256Hex(key), key), files);
  }

  boolean isCommitted() {
    return outcome.equals("COMMITTED");
  }

  /** Whether the job has ended, and none of its files is visible. */
  boolean isUndone() {
    return hasFailed() && !code().equals("LISTS_LOST");
  }

  /** Whether the job has ended and is not committed; its message says if a file is visible. */
  boolean hasFailed() {
    return outcome.equals("ABORTED") || outcome.equals("ROLLED_BACK");
  }
}
