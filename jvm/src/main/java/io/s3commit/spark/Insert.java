package io.s3commit.spark;

import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
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
import org.apache.spark.sql.execution.command.CreateDataSourceTableAsSelectCommand;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.PartitioningUtils;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SessionState;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;

/**
 * What the command that writes says, and Spark tells a commit protocol too late or not at all.
 *
 * <p>Spark asks for a delete only of what exists: the first overwrite of a partition would be an
 * append to the table, and two of them would both be kept. It tells of a partition elsewhere when a
 * task writes to it. So the driver looks at the command that runs, as that command itself does.
 *
 * @param output the directory of the path or table
 * @param overwrites whether the mode is overwrite
 * @param dynamic whether that is of the partitions that are written, and no others
 * @param partition the static one, {@code dt=2026-11-21/}, or empty
 * @param options those of the command, by their names as they were given
 * @param table null for a write to a path
 */
record Insert(
    Path output,
    boolean overwrites,
    boolean dynamic,
    String partition,
    Map<String, String> options,
    Table table) {

  /**
   * A table of a catalog.
   *
   * @param created whether the statement creates it, {@code AS SELECT}
   * @param isHives whether the statement creates it in Hive's way: the table first, then its files
   * @param form what {@code USING} names
   * @param partitioned whether the catalog has its partitions
   * @param options its stored {@code OPTIONS}
   * @param properties its {@code TBLPROPERTIES}
   * @param places the partitions, of those that the static one leaves, whose directories have other
   *     names than Spark would give them
   */
  record Table(
      String name,
      boolean created,
      boolean isHives,
      String form,
      boolean partitioned,
      Map<String, String> options,
      Map<String, String> properties,
      Map<String, Path> places) {}

  private static final String EXECUTION = "spark.sql.execution.id";
  private static final String ROOT_EXECUTION = "spark.sql.execution.root.id";
  private static final String HIVES_CREATION = "CreateHiveTableAsSelectCommand"; // not in each Spark
  private static final String SPARKS_CATALOG = "spark_catalog.";

  /** The insert into {@code output} that runs now. Raises {@link CommitException} if none is seen. */
  static Insert running(Path output, boolean dynamic) throws CommitException {
    Long id = property(EXECUTION);
    QueryExecution query = id == null ? null : SQLExecution.getQueryExecution(id);
    List<Insert> all = new ArrayList<>();
    Insert found = null;
    if (query != null) {
      for (InsertIntoHadoopFsRelationCommand one : insertsIn(query.analyzed(), new ArrayList<>())) {
        Insert insert = of(one, null);
        all.add(insert);
        if (insert.output.equals(output) && insert.dynamic == dynamic && found == null) {
          found = of(one, table(query, one));
        }
      }
    }
    if (found == null) {
      throw new CommitException(
          "UNKNOWN_WRITE",
          "files for " + output + " are not written by a command that s3commit knows: have another"
              + " protocol commit them, by " + Setting.OURS + Setting.PREFIXES + ". Nothing was"
              + " written.");
    }
    refuseDifferent(all);
    return found;
  }

  /**
   * Refuse a statement that writes to one table in two ways. Spark 4 runs {@code FROM … INSERT …
   * INSERT …} as one plan, and does not tell which of its inserts calls.
   */
  static void refuseDifferent(List<Insert> all) throws CommitException {
    Map<Path, Insert> first = new HashMap<>();
    for (Insert one : all) {
      Insert before = first.putIfAbsent(one.output, one);
      boolean isSame =
          before == null
              || before.overwrites == one.overwrites
                  && before.dynamic == one.dynamic
                  && before.partition.equals(one.partition);
      if (!isSame) {
        throw new CommitException(
            "SEVERAL_INSERTS",
            "the statement writes to " + one.output + " in two modes, or to two partitions by name:"
                + " make a statement of each INSERT. This one wrote nothing.");
      }
    }
  }

  private static Long property(String name) {
    String value = SparkContext.getOrCreate().getLocalProperty(name);
    return value == null ? null : Long.valueOf(value);
  }

  private static List<InsertIntoHadoopFsRelationCommand> insertsIn(
      LogicalPlan plan, List<InsertIntoHadoopFsRelationCommand> found) {
    if (plan instanceof InsertIntoHadoopFsRelationCommand) {
      found.add((InsertIntoHadoopFsRelationCommand) plan);
    } else {
      Iterator<LogicalPlan> children = plan.children().iterator();
      while (children.hasNext()) {
        insertsIn(children.next(), found);
      }
    }
    return found;
  }

  private static Insert of(InsertIntoHadoopFsRelationCommand command, Table table) {
    return new Insert(
        command.outputPath(),
        command.mode() == SaveMode.Overwrite,
        command.dynamicPartitionOverwrite(),
        partition(command),
        asJava(command.options()),
        table);
  }

  private static String partition(InsertIntoHadoopFsRelationCommand command) {
    StringBuilder path = new StringBuilder();
    Iterator<Attribute> columns = command.partitionColumns().iterator();
    while (columns.hasNext()) {
      String name = columns.next().name();
      Option<String> value = command.staticPartitions().get(name);
      if (value.isDefined()) {
        path.append(ExternalCatalogUtils.getPartitionPathString(name, value.get())).append('/');
      }
    }
    return path.toString();
  }

  private static Table table(QueryExecution query, InsertIntoHadoopFsRelationCommand command) {
    CatalogTable table = command.catalogTable().getOrElse(() -> null);
    if (table != null) {
      boolean isHives =
          created(true).stream().anyMatch(one -> one.identifier().equals(table.identifier()));
      return table(table, isHives, isHives, places(query, command, table));
    }
    for (CatalogTable created : created(false)) {
      if (qualified(location(created, query), command.outputPath()).equals(command.outputPath())) {
        return table(created, true, false, Map.of());
      }
    }
    return null;
  }

  /**
   * The tables of each {@code CREATE TABLE … AS SELECT} that runs now. The write of such a statement is an
   * execution of its own inside it, which does not name the table.
   */
  private static List<CatalogTable> created(boolean inHivesWay) {
    List<CatalogTable> found = new ArrayList<>();
    Long root = property(ROOT_EXECUTION);
    Long own = property(EXECUTION);
    for (long id = root == null ? own : root; id <= own; id++) {
      QueryExecution query = SQLExecution.getQueryExecution(id);
      LogicalPlan plan = query == null ? null : query.analyzed();
      if (!inHivesWay && plan instanceof CreateDataSourceTableAsSelectCommand) {
        found.add(((CreateDataSourceTableAsSelectCommand) plan).table());
      } else if (inHivesWay && plan != null && plan.getClass().getSimpleName().equals(HIVES_CREATION)) {
        found.add((CatalogTable) call(plan, "tableDesc"));
      }
    }
    return found;
  }

  private static URI location(CatalogTable table, QueryExecution query) {
    return table.storage().locationUri().isDefined()
        ? table.storage().locationUri().get()
        : stateOf(query).catalog().defaultTablePath(table.identifier());
  }

  private static Map<String, Path> places(
      QueryExecution query, InsertIntoHadoopFsRelationCommand command, CatalogTable table) {
    Map<String, Path> found = new TreeMap<>();
    if (table.partitionColumnNames().isEmpty() || !isTracked(table)) {
      return found;
    }
    Iterator<CatalogTablePartition> partitions =
        stateOf(query)
            .catalog()
            .listPartitions(table.identifier(), Option.apply(command.staticPartitions()))
            .iterator();
    while (partitions.hasNext()) {
      CatalogTablePartition one = partitions.next();
      String name = PartitioningUtils.getPathFragment(one.spec(), table.partitionSchema()) + "/";
      Path place = qualified(one.location(), command.outputPath());
      if (!name.equals(Target.relative(command.outputPath(), place))) {
        found.put(name, place);
      }
    }
    return found;
  }

  private static Path qualified(URI location, Path output) {
    return new Path(location).makeQualified(output.toUri(), output);
  }

  private static Map<String, String> asJava(scala.collection.immutable.Map<String, String> map) {
    Map<String, String> found = new TreeMap<>();
    Iterator<Tuple2<String, String>> entries = map.iterator();
    while (entries.hasNext()) {
      Tuple2<String, String> one = entries.next();
      found.put(one._1(), one._2());
    }
    return found;
  }

  /** Spark 4 has another class of sessions than Spark 3. */
  private static SessionState stateOf(QueryExecution query) {
    return (SessionState) call(call(query, "sparkSession"), "sessionState");
  }

  private static Object call(Object object, String method) {
    try {
      return object.getClass().getMethod(method).invoke(object);
    } catch (ReflectiveOperationException failed) {
      throw new IllegalStateException("this release of Spark was not tested", failed);
    }
  }

  private static Table table(
      CatalogTable table, boolean created, boolean isHives, Map<String, Path> places) {
    String name = table.identifier().unquotedString();
    return new Table(
        name.startsWith(SPARKS_CATALOG) ? name.substring(SPARKS_CATALOG.length()) : name,
        created,
        isHives,
        table.provider().getOrElse(() -> "parquet"),
        !table.partitionColumnNames().isEmpty() && (created || isTracked(table)),
        asJava(table.storage().properties()),
        asJava(table.properties()),
        places);
  }

  private static boolean isTracked(CatalogTable table) {
    return table.tracksPartitionsInCatalog() && SQLConf.get().manageFilesourcePartitions();
  }
}
