package io.s3commit.spark;

import java.io.Serializable;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the job of a write is to do: where, what it replaces, and what its user asks of it.
 *
 * @param destination of the job: that of the write, or a partition that it names and overwrites
 * @param catalog what the catalog lacks if the outcome stays unknown to Spark, a sentence or empty
 */
record Target(Path destination, Job.Replaces replaces, Options options, String catalog)
    implements Serializable {
  private static final Logger LOG = LoggerFactory.getLogger(Target.class);

  /**
   * The target of {@code insert}, in whose name Spark has asked to delete {@code deleted}. Raises
   * {@link CommitException} for what a job can't do.
   *
   * <p>A static partition that is overwritten is the destination: all of it is replaced.
   */
  static Target of(WriteCommand insert, List<Path> deleted, Map<String, String> settings)
      throws CommitException {
    Options options = Options.of(insert, settings);
    refuseRepeated(insert, options);
    refuseOutside(insert);
    boolean replacesAll = insert.replaces() == Job.Replaces.DIRECTORY;
    Path usual =
        replacesAll && !insert.partition().isEmpty()
            ? new Path(insert.output() + "/" + insert.partition())
            : insert.output();
    Path destination = replacesAll ? placeOf(insert, usual) : usual;
    if (!usual.equals(destination)) {
      LOG.warn("files at {} stay, if there are any: the partition is at {}", usual, destination);
    }
    for (Map.Entry<String, Path> place : placesOf(insert).entrySet()) {
      if (relative(destination, place.getValue()) == null) {
        throw elsewhere(
            insert, place.getKey(), place.getValue(),
            "the directory that is replaced, " + destination + ": overwrite it by itself, or with"
                + " spark.sql.sources.partitionOverwriteMode=dynamic");
      }
    }
    for (Path one : deleted) {
      boolean isKnown = relative(destination, one) != null || relative(usual, one) != null;
      if (!replacesAll || !isKnown) {
        throw new CommitException(
            "UNKNOWN_WRITE",
            "Spark asks to delete " + one + ", which is not part of what the statement replaces: "
                + destination + ". Nothing was written or deleted.");
      }
    }
    return new Target(destination, insert.replaces(), options, catalog(insert, destination));
  }

  private static void refuseRepeated(WriteCommand insert, Options options) throws CommitException {
    if (insert.isRepeated() && options.idempotencyKey() != null) {
      throw new CommitException(
          "SEVERAL_INSERTS",
          "the statement has several inserts into " + insert.output() + ", of which one alone would"
              + " add its rows under the key " + options.idempotencyKey() + ": make a statement of each"
              + " INSERT, with a key of its own. This one wrote nothing.");
    }
  }

  private static Map<String, Path> placesOf(WriteCommand insert) {
    return insert.table() == null ? Map.of() : insert.table().places();
  }

  /** Where the static partition is by the catalog, in the scheme of its table. */
  private static Path placeOf(WriteCommand insert, Path usual) {
    Path place = placesOf(insert).get(insert.partition());
    return place == null
        ? usual
        : new Path(insert.output() + "/" + relative(insert.output(), place));
  }

  private static void refuseOutside(WriteCommand insert) throws CommitException {
    for (Map.Entry<String, Path> place : placesOf(insert).entrySet()) {
      String below = relative(insert.output(), place.getValue());
      if (below == null || below.isEmpty() || Setting.isHidden(new Path("/" + below))) {
        throw elsewhere(
            insert, place.getKey(), place.getValue(),
            "the table's directory " + insert.output() + ", or hidden in it: name the partition that"
                + " you write to, INSERT … PARTITION (…), or move this one's files into the table's"
                + " directory and update the catalog, ALTER TABLE … PARTITION (…) SET LOCATION");
      }
    }
  }

  private static CommitException elsewhere(
      WriteCommand insert, String partition, Path place, String advice) {
    return new CommitException(
        "PARTITION_ELSEWHERE",
        "partition " + partition.replaceFirst("/$", "") + " of " + insert.table().name() + " is at "
            + place + ", outside of " + advice + ". Nothing was written.");
  }

  private static String catalog(WriteCommand insert, Path destination) {
    WriteCommand.Table table = insert.table();
    if (table == null) {
      return "";
    }
    String repair = "MSCK REPAIR TABLE " + table.name();
    if (table.isHives()) {
      return " Spark drops the table that the statement created, " + table.name()
          + ", with its files: when the job has ended, run the statement again.";
    }
    if (table.created()) {
      return " The catalog has no table " + table.name() + ": if the job was committed, CREATE TABLE "
          + table.name() + " USING " + table.form() + " LOCATION '" + destination + "' makes it"
          + (table.partitioned() ? ", and then " + repair + " its partitions." : ".");
    }
    if (!table.partitioned()) {
      return "";
    }
    return " The catalog does not know of new partitions of " + table.name()
        + ", and readers don't see their rows: if the job was committed, run " + repair
        + (insert.replaces() == Job.Replaces.DIRECTORY ? " SYNC PARTITIONS." : ".");
  }

  /**
   * The path below {@code base} with its {@code /}, "" for itself, null if it is not below. The
   * schemes of S3A are not compared.
   */
  static String relative(Path base, Path path) {
    String above = base.toUri().getPath() + "/";
    String below = path.toUri().getPath() + "/";
    boolean isSame = String.valueOf(base.toUri().getAuthority()).equals(path.toUri().getAuthority());
    return isSame && below.startsWith(above) ? below.substring(above.length()) : null;
  }
}
