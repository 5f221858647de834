package io.s3commit.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Where a job is, as people type it. */
class JobDirectoryTest {
  private static final String ID = "7c9e6679-7425-40de-944b-e07fc1f90ae7";

  private static JobDirectory at(String prefix) throws CommitException {
    return JobDirectory.of(new Path("s3a", "lake", "/" + prefix), ID);
  }

  @Test
  void anOrdinaryUriIsTypedAsItIs() throws CommitException {
    String uri = "s3://lake/sales/dt=1/__magic_job-" + ID + "/";
    assertEquals(uri, at("sales/dt=1").typed());
  }

  @ParameterizedTest
  @ValueSource(strings = {"a b", "$(id)", "`id`", "a;b", "a&b", "*", "\"", "\\", "é"})
  void whatAShellWouldTakeApartIsQuoted(String name) throws CommitException {
    assertEquals("'s3://lake/" + name + "/__magic_job-" + ID + "/'", at(name).typed());
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"-s3alias", "--ol-s3", "--op-s3", ".mrap", "--x-s3", "--xa-s3", "--table-s3"})
  void anAliasIsRefused(String end) {
    Path path = new Path("s3a", "lake" + end, "/sales");
    CommitException refused =
        assertThrows(CommitException.class, () -> JobDirectory.of(path, ID));
    assertTrue(refused.getMessage().contains("give the general purpose bucket's name"));
  }

  @Test
  void anApostropheDoesNotEndTheQuotes() throws CommitException {
    assertEquals(
        "'s3://lake/it'\"'\"'s/__magic_job-" + ID + "/'", at("it's").typed());
  }
}
