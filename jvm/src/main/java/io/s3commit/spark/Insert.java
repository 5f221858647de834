package io.s3commit.spark;

import java.net.URI;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTablePartition;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.PartitioningUtils;
import org.apache.spark.sql.internal.SessionState;
import scala.Option;
import scala.collection.Iterator;

/**
 * What the command that writes says, and Spark tells a commit protocol too late or not at all.
 *
 * <p>Spark asks for a delete only of what exists: the first overwrite of a partition would be an
 * append to the table, and two of them would both be kept. It tells of a partition elsewhere when a
 * task writes to it, which is too late for {@code job.json}. So the driver looks at the command that
 * runs, as that command itself does.
 *
 * @param overwrites whether the mode is overwrite
 * @param partition the static one, {@code dt=2026-11-21/}, or empty
 * @param elsewhere the partitions that the table's catalog has outside of the table's directory,
 *     with their places; none if the write is not to a table of a catalog
 */
record Insert(boolean overwrites, String partition, Map<String, Path> elsewhere) {
  private static final String EXECUTION = "spark.sql.execution.id";

  /** What runs now, or null if it is no insert into {@code output}. */
  static Insert running(Path output) {
    String id = SparkContext.getOrCreate().getLocalProperty(EXECUTION);
    QueryExecution query = id == null ? null : SQLExecution.getQueryExecution(Long.parseLong(id));
    InsertIntoHadoopFsRelationCommand insert = query == null ? null : find(query.analyzed(), output);
    if (insert == null) {
      return null;
    }
    boolean overwrites = insert.mode() == SaveMode.Overwrite;
    return new Insert(overwrites, partition(insert), elsewhere(query, insert, output));
  }

  private static String partition(InsertIntoHadoopFsRelationCommand insert) {
    StringBuilder path = new StringBuilder();
    Iterator<Attribute> columns = insert.partitionColumns().iterator();
    while (columns.hasNext()) {
      String name = columns.next().name();
      Option<String> value = insert.staticPartitions().get(name);
      if (value.isDefined()) {
        path.append(ExternalCatalogUtils.getPartitionPathString(name, value.get())).append('/');
      }
    }
    return path.toString();
  }

  private static Map<String, Path> elsewhere(
      QueryExecution query, InsertIntoHadoopFsRelationCommand insert, Path output) {
    Map<String, Path> found = new TreeMap<>();
    if (insert.catalogTable().isEmpty()) {
      return found;
    }
    CatalogTable table = insert.catalogTable().get();
    if (table.partitionColumnNames().isEmpty() || !table.tracksPartitionsInCatalog()) {
      return found;
    }
    Iterator<CatalogTablePartition> partitions =
        stateOf(query)
            .catalog()
            .listPartitions(table.identifier(), Option.apply(insert.staticPartitions()))
            .iterator();
    while (partitions.hasNext()) {
      CatalogTablePartition one = partitions.next();
      String name = PartitioningUtils.getPathFragment(one.spec(), table.partitionSchema());
      Path place = qualified(one.location(), output);
      if (!place.equals(new Path(output, name))) {
        found.put(name + "/", place);
      }
    }
    return found;
  }

  private static InsertIntoHadoopFsRelationCommand find(LogicalPlan plan, Path output) {
    if (plan instanceof InsertIntoHadoopFsRelationCommand) {
      InsertIntoHadoopFsRelationCommand insert = (InsertIntoHadoopFsRelationCommand) plan;
      return insert.outputPath().equals(output) ? insert : null;
    }
    Iterator<LogicalPlan> children = plan.children().iterator();
    while (children.hasNext()) {
      InsertIntoHadoopFsRelationCommand found = find(children.next(), output);
      if (found != null) {
        return found;
      }
    }
    return null;
  }

  private static Path qualified(URI location, Path output) {
    return new Path(location).makeQualified(output.toUri(), output);
  }

  /** Spark 4 has another class of sessions than Spark 3. */
  private static SessionState stateOf(QueryExecution query) {
    try {
      Object session = query.getClass().getMethod("sparkSession").invoke(query);
      return (SessionState) session.getClass().getMethod("sessionState").invoke(session);
    } catch (ReflectiveOperationException failed) {
      throw new IllegalStateException("this release of Spark was not tested", failed);
    }
  }
}
