package io.s3commit.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/** The documents that client and pipeline exchange (docs/protocol.md, "Formats"). */
final class Documents {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Comparator<Counted> BY_TASK = Comparator.comparing(Counted::taskId);
  private static final String CLIENT = "s3commit-native/" + version();

  private Documents() {}

  static byte[] job(Job job, String createdAt, Who who) {
    ObjectNode node = versioned(1, job.id());
    node.put("destination", job.directory().destinationUri());
    node.put("conflict", job.conflict());
    node.put("scope", job.scope());
    node.putArray("partitionBy");
    node.put("idempotencyKey", keyDigest(job.options().idempotencyKey()));
    node.put("createdAt", createdAt);
    node.put("client", CLIENT);
    ObjectNode conditions = node.putObject("conditions");
    if (job.options().minFiles() > 0) {
      conditions.put("minFiles", job.options().minFiles());
    }
    who.put(node.putObject("who"));
    return bytes(node);
  }

  /** Nobody who reads a job's documents learns the keys that follow. */
  private static String keyDigest(String key) {
    return key == null ? null : sha256(key.getBytes(StandardCharsets.UTF_8));
  }

  static byte[] commit(String jobId, String jobDigest, List<Counted> counted) {
    ObjectNode node = versioned(1, jobId);
    node.put("action", "commit");
    node.put("jobDigest", jobDigest);
    ArrayNode attempts = node.putArray("attempts");
    counted.stream().sorted(BY_TASK).forEach(one -> put(attempts.addObject(), one));
    return bytes(node);
  }

  private static void put(ObjectNode attempt, Counted one) {
    attempt.put("taskId", one.taskId());
    attempt.put("attemptId", one.attemptId());
    attempt.put("manifest", one.manifest());
    attempt.put("sha256", one.sha256());
    attempt.put("files", one.files());
    attempt.put("bytes", one.bytes());
  }

  /** What a task sends to its driver: bytes, since Kryo can't serialize every class. */
  static byte[] message(List<Counted> counted) {
    ArrayNode attempts = JSON.createArrayNode();
    counted.forEach(one -> put(attempts.addObject(), one));
    return bytes(attempts);
  }

  /** The reverse of {@link #message}. */
  static List<Counted> counted(byte[] message) throws IOException {
    List<Counted> all = new ArrayList<>();
    for (JsonNode one : JSON.readTree(message)) {
      all.add(
          new Counted(
              one.required("taskId").asText(),
              one.required("attemptId").asText(),
              one.required("manifest").asText(),
              one.required("sha256").asText(),
              one.required("files").intValue(),
              one.required("bytes").longValue()));
    }
    return all;
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

  static String sha256(byte[] body) {
    try {
      byte[] digest = MessageDigest.getInstance("SHA-256").digest(body);
      return String.format(Locale.ROOT, "%064x", new BigInteger(1, digest));
    } catch (NoSuchAlgorithmException impossible) {
      throw new IllegalStateException(impossible);
    }
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

  private static byte[] bytes(JsonNode node) {
    try {
      return JSON.writeValueAsBytes(node);
    } catch (JsonProcessingException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  private static String version() {
    String version = Documents.class.getPackage().getImplementationVersion();
    return version == null ? "unpackaged" : version;
  }
}
