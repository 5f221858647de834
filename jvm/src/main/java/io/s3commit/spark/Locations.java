package io.s3commit.spark;

import java.net.URI;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTablePartition;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.PartitioningUtils;
import org.apache.spark.sql.internal.SessionState;
import scala.Option;
import scala.collection.Iterator;

/**
 * The partitions of a table that its catalog has outside of the table's directory.
 *
 * <p>Spark tells a commit protocol of one when a task writes to it. That is too late for {@code
 * job.json}, so the driver looks at the command that runs, as that command itself does.
 */
final class Locations {
  private static final String EXECUTION = "spark.sql.execution.id";

  private Locations() {}

  /** By partition, {@code dt=2026-11-21/}; none if the write is not to a table of a catalog. */
  static Map<String, Path> of(Path output) {
    Map<String, Path> found = new TreeMap<>();
    String id = SparkContext.getOrCreate().getLocalProperty(EXECUTION);
    QueryExecution query = id == null ? null : SQLExecution.getQueryExecution(Long.parseLong(id));
    InsertIntoHadoopFsRelationCommand insert = query == null ? null : find(query.analyzed(), output);
    if (insert == null || insert.catalogTable().isEmpty()) {
      return found;
    }
    CatalogTable table = insert.catalogTable().get();
    if (table.partitionColumnNames().isEmpty() || !table.tracksPartitionsInCatalog()) {
      return found;
    }
    Iterator<CatalogTablePartition> partitions =
        stateOf(query).catalog().listPartitions(table.identifier(), Option.empty()).iterator();
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
