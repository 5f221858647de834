package io.s3commit.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.commons.codec.digest.DigestUtils;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

/**
 * The documents as they are written, byte by byte, and the limits: the pipeline's tests read the
 * same files. {@code mvn -Dgolden.write=true package} writes them anew.
 */
class GoldenTest {
  private static final Path GOLDEN =
      Path.of(System.getProperty("basedir", "."), "..", "tests", "golden", "native");
  private static final String ID = "0b6f6f0e-0000-4000-8000-000000000001";

  private static void is(String name, byte[] written) throws IOException {
    Path path = GOLDEN.resolve(name);
    if (Boolean.getBoolean("golden.write")) {
      Files.createDirectories(GOLDEN);
      Files.write(path, written);
    }
    assertEquals(Files.readString(path), new String(written, StandardCharsets.UTF_8));
  }

  private static Job job(Job.Replaces replaces, Options options) throws CommitException {
    org.apache.hadoop.fs.Path table = new org.apache.hadoop.fs.Path("s3a://lake/sales");
    return new Job(ID, new Target(table, replaces, options, ""));
  }

  @Test
  void jobs() throws IOException {
    String now = "2026-11-21T08:15:00.250Z";
    Writer who = new Writer("application_1_7", "sales, é", "ops", "node-7", "dag/run/task/-1/2");
    String wide = "\ud83d\ude00".repeat(Limits.WHO_CHARACTERS + 1);
    Writer tooLong = new Writer("", wide, "\ud83d", "", "");
    Writer nobody = new Writer("", "", "", "", "");
    Options noted =
        new Options(null, 0, true, false, 60, "backfill, é \ud83d\ude00 7", List.of("dag=a=b", "a.b:c/d-_9="));
    is("append.json", Documents.job(job(Job.Replaces.NOTHING, noted), now, who));
    is(
        "partitions.json",
        Documents.job(job(Job.Replaces.PARTITIONS, new Options("day, é \"21\"", 3, true, false, 60, "", List.of())), now, tooLong));
    is(
        "directory.json",
        Documents.job(job(Job.Replaces.DIRECTORY, new Options(null, 0, true, false, 60, "", List.of())), now, nobody));
  }

  @Test
  void manifestAndRequests() throws IOException {
    JobDirectory at = job(Job.Replaces.NOTHING, new Options(null, 0, true, false, 60, "", List.of())).directory();
    String first = "sales/day=2026-11-21/part-00007-" + ID + ".c000.snappy.parquet";
    String second = "sales/name=a, b/part-00007-" + ID + ".c001.snappy.parquet";
    List<PendingFile.Done> files =
        List.of(
            new PendingFile.Done(first, "upload-1", List.of("\"" + "a1".repeat(16) + "\""), 7),
            new PendingFile.Done(
                second, "upload-2", List.of("\"" + "b2".repeat(16) + "\"", "\"" + "c3".repeat(16) + "\""),
                5 << 20 | 1));
    byte[] manifest = Documents.pendingset(at, "00007", "12-a", files);
    is("manifest.pendingset", manifest);
    CountedAttempt counted =
        new CountedAttempt(
            "00007", "12-a", "_tasks/00007/_12-a.pendingset", DigestUtils.sha256Hex(manifest), 2, 5 << 20 | 8);
    is("commit.json", Documents.commit(ID, "0d".repeat(32), List.of(counted)));
    is("abort.json", Documents.abort(ID, "Spark's job failed"));
  }

  @Test
  void whoWritesIsTheApplicationAndItsAirflowRun() {
    SparkConf conf =
        new SparkConf(false).set("spark.app.id", "application_1_7").set("spark.app.name", "sales");
    Map<String, String> environment =
        Map.of("AIRFLOW_CTX_DAG_ID", "d", "AIRFLOW_CTX_DAG_RUN_ID", "r", "AIRFLOW_CTX_TRY_NUMBER", "2");
    Writer who = Writer.of(conf, "ops", environment);
    assertEquals(new Writer("application_1_7", "sales", "ops", who.host(), "d/r/2"), who);
  }

  @Test
  void limits() throws Exception {
    Map<String, Object> all = new TreeMap<>();
    for (Field limit : Limits.class.getDeclaredFields()) {
      all.put(camelCase(limit.getName()), limit.get(null));
    }
    is("limits.json", new ObjectMapper().writeValueAsBytes(all));
  }

  private static String camelCase(String name) {
    Matcher next = Pattern.compile("_(.)").matcher(name.toLowerCase(Locale.ROOT));
    return next.replaceAll(letter -> letter.group(1).toUpperCase(Locale.ROOT));
  }

  @Test
  void aDocumentIsMeasuredAsThePipelineDoes() {
    byte[] body = "{\"a\":[1,\",,\"]}".getBytes(StandardCharsets.UTF_8); // {, [ and three commas
    assertNull(Limits.tooLarge(body, body.length, 5));
    assertTrue(Limits.tooLarge(body, body.length, 4).contains("5 values"));
    assertTrue(Limits.tooLarge(body, body.length - 1, 5).contains("bytes"));
  }

  @Test
  void aTasksMessageIsReadAsItWasWritten() throws IOException {
    CountedAttempt first =
        new CountedAttempt(
            "00007", "12-a", "_tasks/00007/_12-a.pendingset", "ab".repeat(32), 3, 1L << 40);
    CountedAttempt second =
        new CountedAttempt("00007", "12-a", "_tasks/00007/_12-a.pendingset", "cd".repeat(32), 1, 0);
    for (TaskEnd end :
        List.of(
            new TaskEnd(List.of(first, second), Set.of("dt=a/b=%3A", "dt=b")),
            new TaskEnd(List.of(), Set.of()))) {
      assertEquals(end, Documents.taskEnd(Documents.message(end)));
    }
  }

  @Test
  void aMessageOfAnotherFormIsRefused() {
    for (String other : new String[] {"[]", "{}", "{\"counted\":[{}],\"partitions\":[]}", "not JSON"}) {
      assertThrows(IOException.class, () -> Documents.taskEnd(other.getBytes()));
    }
  }
}
