package io.s3commit.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.Comparator;
import java.util.List;
import org.apache.commons.codec.digest.DigestUtils;

/** The documents that client and pipeline exchange (docs/protocol.md, "Formats"). */
final class Documents {
  private static final ObjectMapper JSON =
      new ObjectMapper().enable(DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES);
  private static final Comparator<CountedAttempt> BY_TASK =
      Comparator.comparing(CountedAttempt::taskId);
  private static final String CLIENT = "s3commit-native/" + version();

  private Documents() {}

  static byte[] job(Job job, String createdAt, Writer who) {
    ObjectNode node = versioned(1, job.id());
    node.put("destination", job.directory().destinationUri());
    node.put("conflict", job.target().replaces().conflict);
    node.put("scope", job.target().replaces().scope);
    node.putArray("partitionBy");
    Options options = job.target().options();
    String key = options.idempotencyKey(); // whoever reads it must not learn the keys that follow
    node.put("idempotencyKey", key == null ? null : DigestUtils.sha256Hex(key));
    node.put("createdAt", createdAt);
    node.put("client", CLIENT);
    ObjectNode conditions = node.putObject("conditions");
    if (options.minFiles() > 0) {
      conditions.put("minFiles", options.minFiles());
    }
    node.set("who", JSON.valueToTree(who));
    if (!options.note().isEmpty()) {
      node.put("note", options.note());
    }
    if (!options.labels().isEmpty()) {
      node.set("labels", JSON.valueToTree(options.labels()));
    }
    return bytes(node);
  }

  static byte[] commit(String jobId, String jobDigest, List<CountedAttempt> counted) {
    ObjectNode node = versioned(1, jobId);
    node.put("action", "commit");
    node.put("jobDigest", jobDigest);
    node.set("attempts", JSON.valueToTree(counted.stream().sorted(BY_TASK).toList()));
    return bytes(node);
  }

  /** What a task sends to its driver: bytes, since Kryo can't serialize every class. */
  static byte[] message(TaskEnd end) {
    return bytes(end);
  }

  /** The reverse of {@link #message}. */
  static TaskEnd taskEnd(byte[] message) throws IOException {
    return JSON.readValue(message, TaskEnd.class);
  }

  static byte[] abort(String jobId, String reason) {
    ObjectNode node = versioned(1, jobId);
    node.put("action", "abort");
    node.put("reason", reason.substring(0, Math.min(reason.length(), Limits.TEXT_CHARACTERS)));
    return bytes(node);
  }

  /** The manifest of one task attempt: Hadoop's PendingSet. */
  static byte[] pendingset(
      JobDirectory at, String taskId, String attemptId, List<PendingFile.Done> files) {
    ObjectNode node = versioned(3, at.jobId());
    node.put("taskId", taskId);
    node.put("attemptId", attemptId);
    ArrayNode commits = node.putArray("commits");
    for (PendingFile.Done file : files) {
      ObjectNode commit = commits.addObject();
      commit.put("version", 2);
      commit.putNull("filename");
      commit.put("uri", "s3a://" + at.bucket() + "/" + file.key());
      commit.put("uploadId", file.uploadId());
      commit.put("bucket", at.bucket());
      commit.put("destinationKey", file.key());
      commit.put("created", 0);
      commit.put("saved", 0);
      commit.putNull("date");
      commit.put("jobId", at.jobId());
      commit.put("taskId", taskId);
      commit.put("attemptId", attemptId);
      commit.put("text", "");
      ArrayNode etags = commit.putArray("etags");
      file.etags().forEach(etag -> etags.addObject().put("etag", etag));
      commit.putObject("extraData");
      commit.put("length", file.length());
      commit.put("partCount", file.etags().size());
      statistics(commit);
    }
    statistics(node);
    return bytes(node);
  }

  /** The document as a tree. Raises an {@code IOException} for what is no JSON object. */
  static JsonNode read(byte[] body) throws IOException {
    JsonNode node = JSON.readTree(body);
    if (node == null || !node.isObject()) {
      throw new IOException("no JSON object");
    }
    return node;
  }

  private static ObjectNode versioned(int version, String jobId) {
    return JSON.createObjectNode().put("version", version).put("jobId", jobId);
  }

  private static void statistics(ObjectNode node) {
    ObjectNode statistics = node.putObject("iostatistics");
    for (String kind :
        new String[] {"counters", "gauges", "minimums", "maximums", "meanstatistics"}) {
      statistics.putObject(kind);
    }
  }

  private static byte[] bytes(Object document) {
    try {
      return JSON.writeValueAsBytes(document);
    } catch (JsonProcessingException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  private static String version() {
    String version = Documents.class.getPackage().getImplementationVersion();
    return version == null ? "unpackaged" : version;
  }
}
