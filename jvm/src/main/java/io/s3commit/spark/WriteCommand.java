package io.s3commit.spark;

import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTablePartition;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
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
import scala.collection.JavaConverters;

/**
 * What the command that writes says, and Spark tells a commit protocol too late or not at all.
 *
 * <p>Spark asks for a delete only of what exists: the first overwrite of a partition would be an
 * append to the table, and two of them would both be kept. It tells of a partition elsewhere when a
 * task writes to it. So the driver looks at the command that runs, as that command itself does.
 *
 * @param output the directory of the path or table
 * @param replaces by its mode: nothing, all of the table or of a partition, or what it writes; a mode
 *     of Spark's that refuses files that are there is the job's, too
 * @param columns the partition columns, named as in their directories' names
 * @param partition the static one, {@code dt=2026-11-21/}, or empty
 * @param options those of the command, by their names as they were given
 * @param isRepeated whether another insert of the statement is to do the same
 * @param table null for a write to a path
 */
@SuppressWarnings("deprecation") // Scala 2.12 has nothing newer than JavaConverters
record WriteCommand(
    Path output,
    Job.Replaces replaces,
    List<String> columns,
    String partition,
    Map<String, String> options,
    boolean isRepeated,
    Table table) {

  /**
   * A table of a catalog, or a temporary view of files, which has its options as a table has.
   *
   * @param created whether the statement creates it, {@code AS SELECT}
   * @param isHives whether the statement creates it in Hive's way: the table first, then its files
   * @param form what {@code USING} names
   * @param partitioned whether the catalog has its partitions
   * @param options its stored {@code OPTIONS}
   * @param properties its {@code TBLPROPERTIES}
   * @param known the partitions that the catalog has, of those that the static one leaves
   * @param places those of them whose directories have other names than Spark would give them
   */
  record Table(
      String name,
      boolean created,
      boolean isHives,
      String form,
      boolean partitioned,
      Map<String, String> options,
      Map<String, String> properties,
      Set<String> known,
      Map<String, Path> places) {}

  static final String EXECUTION = "spark.sql.execution.id";
  private static final String ROOT_EXECUTION = "spark.sql.execution.root.id";
  private static final long NONE = -1; // no execution has this id
  private static final String HIVES_CREATION = "CreateHiveTableAsSelectCommand"; // not in each Spark
  private static final String SPARKS_CATALOG = "spark_catalog.";

  /** The insert into {@code output} that runs now. Raises {@link CommitException} if none is seen. */
  static WriteCommand running(Path output, boolean dynamic) throws CommitException {
    QueryExecution query = execution();
    WriteCommand found = query == null ? null : in(query, output, dynamic);
    if (found == null) {
      throw new CommitException(
          "UNKNOWN_WRITE",
          "files for " + output + " are not written by a command that s3commit knows: let another"
              + " protocol commit them, with " + Setting.OURS + Setting.PREFIXES + ". Nothing was"
              + " written.");
    }
    return found;
  }

  /** What runs in this thread; null if it is no execution of SQL. */
  static QueryExecution execution() {
    return SQLExecution.getQueryExecution(property(EXECUTION, NONE));
  }

  /**
   * The insert into {@code output} of a statement; null if it has none.
   *
   * <p>Refuses a statement that writes to one place in two ways: Spark 4 runs {@code FROM … INSERT …
   * INSERT …} as one plan, and does not tell which of its inserts calls.
   */
  static WriteCommand in(QueryExecution query, Path output, boolean dynamic)
      throws CommitException {
    Map<Path, WriteCommand> first = new HashMap<>();
    WriteCommand found = null;
    for (InsertIntoHadoopFsRelationCommand command : insertsIn(query.analyzed(), new ArrayList<>())) {
      WriteCommand one = of(command, false, null);
      WriteCommand before = first.putIfAbsent(one.output, one);
      if (before != null && !before.equals(one)) {
        throw new CommitException(
            "SEVERAL_INSERTS",
            "the statement writes to " + one.output + " in two modes, or to two partitions by name:"
                + " make a statement of each INSERT. This one wrote nothing.");
      }
      boolean isDynamic = one.replaces == Job.Replaces.PARTITIONS;
      if (one.output.equals(output) && isDynamic == dynamic) {
        refuseHidden(command);
        found = of(command, before != null, table(query, command));
      }
    }
    return found;
  }

  private static void refuseHidden(InsertIntoHadoopFsRelationCommand command)
      throws CommitException {
    for (Attribute column : JavaConverters.seqAsJavaList(command.partitionColumns())) {
      if (Setting.isHidden(new Path("/" + column.name() + "="))) {
        throw new CommitException(
            "HIDDEN_PARTITION",
            "the partition column " + column.name() + " starts with a dot, so Spark and other readers"
                + " skip its directories: rename it. Nothing was written.");
      }
    }
  }

  private static long property(String name, long otherwise) {
    String value = SparkContext.getOrCreate().getLocalProperty(name);
    return value == null ? otherwise : Long.parseLong(value);
  }

  private static List<InsertIntoHadoopFsRelationCommand> insertsIn(
      LogicalPlan plan, List<InsertIntoHadoopFsRelationCommand> found) {
    if (plan instanceof InsertIntoHadoopFsRelationCommand) {
      found.add((InsertIntoHadoopFsRelationCommand) plan);
    } else {
      for (LogicalPlan child : JavaConverters.seqAsJavaList(plan.children())) {
        insertsIn(child, found);
      }
    }
    return found;
  }

  private static WriteCommand of(
      InsertIntoHadoopFsRelationCommand command, boolean isRepeated, Table table) {
    return new WriteCommand(
        command.outputPath(),
        replaces(command),
        columns(command),
        partition(command),
        JavaConverters.mapAsJavaMap(command.options()),
        isRepeated,
        table);
  }

  private static Job.Replaces replaces(InsertIntoHadoopFsRelationCommand command) {
    if (command.mode() == SaveMode.Overwrite) {
      return command.dynamicPartitionOverwrite() ? Job.Replaces.PARTITIONS : Job.Replaces.DIRECTORY;
    }
    if (command.mode() == SaveMode.Append) {
      return Job.Replaces.NOTHING;
    }
    // Spark has looked, and so has another writer who began at the same time.
    return command.mode() == SaveMode.Ignore
        ? Job.Replaces.IGNORED_IF_ANY
        : Job.Replaces.NONE_MAY_BE;
  }

  private static List<String> columns(InsertIntoHadoopFsRelationCommand command) {
    return JavaConverters.seqAsJavaList(command.partitionColumns()).stream()
        .map(column -> ExternalCatalogUtils.escapePathName(column.name()))
        .toList();
  }

  private static String partition(InsertIntoHadoopFsRelationCommand command) {
    StringBuilder path = new StringBuilder();
    for (Attribute column : JavaConverters.seqAsJavaList(command.partitionColumns())) {
      String name = column.name();
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
      return table(table, isHives, isHives, partitions(query, command, table), command.outputPath());
    }
    if (command.fileIndex().isDefined()) { // of the relation that a view stands for
      String name = "a view of " + command.outputPath();
      return new Table(name, false, false, "", false, Map.of(), Map.of(), Set.of(), Map.of());
    }
    for (CatalogTable created : created(false)) {
      if (qualified(location(created, query), command.outputPath()).equals(command.outputPath())) {
        return table(created, true, false, Map.of(), command.outputPath());
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
    long own = property(EXECUTION, NONE);
    long root = property(ROOT_EXECUTION, own);
    for (long id = root; id <= own; id++) {
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

  /** Where each partition is by the catalog, by the name that Spark would give its directory. */
  private static Map<String, Path> partitions(
      QueryExecution query, InsertIntoHadoopFsRelationCommand command, CatalogTable table) {
    Map<String, Path> found = new TreeMap<>();
    if (table.partitionColumnNames().isEmpty() || !isTracked(table)) {
      return found;
    }
    SessionCatalog catalog = stateOf(query).catalog();
    for (CatalogTablePartition one :
        JavaConverters.seqAsJavaList(
            catalog.listPartitions(
                table.identifier(), Option.apply(command.staticPartitions())))) {
      String name = PartitioningUtils.getPathFragment(one.spec(), table.partitionSchema()) + "/";
      found.put(name, qualified(one.location(), command.outputPath()));
    }
    return found;
  }

  private static Path qualified(URI location, Path output) {
    return new Path(location).makeQualified(output.toUri(), output);
  }

  /** Spark 4 has another class of sessions than Spark 3. */
  static SessionState stateOf(QueryExecution query) {
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
      CatalogTable table,
      boolean created,
      boolean isHives,
      Map<String, Path> partitions,
      Path output) {
    Map<String, Path> places = new TreeMap<>(partitions);
    places.entrySet().removeIf(one -> one.getKey().equals(Target.relative(output, one.getValue())));
    String name = table.identifier().unquotedString();
    return new Table(
        name.startsWith(SPARKS_CATALOG) ? name.substring(SPARKS_CATALOG.length()) : name,
        created,
        isHives,
        table.provider().getOrElse(() -> "parquet"),
        !table.partitionColumnNames().isEmpty() && (created || isTracked(table)),
        JavaConverters.mapAsJavaMap(table.storage().properties()),
        JavaConverters.mapAsJavaMap(table.properties()),
        partitions.keySet(),
        places);
  }

  private static boolean isTracked(CatalogTable table) {
    return table.tracksPartitionsInCatalog() && SQLConf.get().manageFilesourcePartitions();
  }
}
