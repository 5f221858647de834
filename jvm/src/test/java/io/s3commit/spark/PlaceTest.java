package io.s3commit.spark;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * What lies at a destination, by the table that the tests of Python's clients read, too
 * ({@code tests/places.py}). In the modes {@code error} and {@code ignore} Spark itself looks.
 */
class PlaceTest {
  private static final File TABLE =
      new File(System.getProperty("basedir", "."), "../tests/golden/places.json");
  private static final Map<String, Job.Replaces> MODES =
      Map.of(
          "append", Job.Replaces.NOTHING,
          "overwrite", Job.Replaces.DIRECTORY,
          "overwrite dynamic", Job.Replaces.PARTITIONS);

  static Stream<Arguments> cells() throws IOException {
    JsonNode places = new ObjectMapper().readTree(TABLE).get("places");
    return StreamSupport.stream(places.spliterator(), false)
        .flatMap(
            place ->
                MODES.keySet().stream()
                    .filter(place::has)
                    .map(mode -> Arguments.of(place.get("place").asText(), mode, place)));
  }

  @ParameterizedTest(name = "{0}, {1}")
  @MethodSource("cells")
  void aPlaceIsRefusedBeforeTheFirstTaskOrNot(String name, String mode, JsonNode place)
      throws IOException {
    Path above = new Path("s3a://lake/places/" + Math.abs((name + mode).hashCode()));
    FileSystem fs = new Statements.Disk();
    fs.initialize(above.toUri(), new Configuration());
    for (JsonNode key : place.get("keys")) {
      Path path = new Path(above, key.asText());
      assertTrue(
          key.asText().endsWith("/") ? fs.mkdirs(path) : fs.createNewFile(path), path::toString);
    }
    List<String> by = new ArrayList<>();
    place.get("by").forEach(one -> by.add(one.asText()));
    WriteCommand insert =
        new WriteCommand(new Path(above, "t"), MODES.get(mode), by, "", Map.of(), false, null);
    Target target = Target.of(insert, List.of(), Map.of());
    JsonNode answer = place.get(mode);
    if (answer.isTextual()) {
      Asserts.refused(
          answer.asText(), "Nothing was written", () -> Place.check(fs, insert, target));
    } else {
      Place.check(fs, insert, target);
    }
  }

  @Test
  void aNewTableIsNotListedToTheEnd() throws Exception {
    CountDownLatch over = new CountDownLatch(1);
    FileSystem fs =
        new Statements.Disk() {
          @Override
          public RemoteIterator<FileStatus> listStatusIterator(Path path) throws IOException {
            try {
              over.await();
            } catch (InterruptedException failed) {
              Thread.currentThread().interrupt();
            }
            return super.listStatusIterator(path);
          }
        };
    Path table = new Path("s3a://lake/new/t");
    fs.initialize(table.toUri(), new Configuration());
    WriteCommand insert =
        new WriteCommand(table, Job.Replaces.NOTHING, List.of(), "", Map.of(), false, null);
    Target target = Target.of(insert, List.of(), Map.of());
    try {
      assertNull(
          assertTimeoutPreemptively(
              Duration.ofSeconds(30), () -> Place.check(fs, insert, target)));
    } finally {
      over.countDown();
    }
  }
}
