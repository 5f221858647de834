package io.s3commit.spark;

import java.io.IOException;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.command.DataWritingCommandExec;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import scala.collection.JavaConverters;

/**
 * What Spark does to a table's partitions in the catalog once a write has ended, where the job added
 * nothing since the data of its key was committed before.
 *
 * <p>Spark takes the partitions that its tasks wrote for the table's: it adds those that the catalog
 * lacks, and after a static overwrite drops all others. But the table has what other jobs have made
 * of it since, which readers would no longer see.
 */
@SuppressWarnings("deprecation") // Scala 2.12 has nothing newer than JavaConverters
final class CatalogUpdate {
  // The command looks at it when it has committed: a dynamic overwrite drops no partition.
  private static final String IS_DYNAMIC = "dynamicPartitionOverwrite";
  // Fields of plans, not children, in which the plan of a command may be.
  private static final List<String> INNER = List.of("executedPlan", "plan", "commandPhysicalPlan");

  private CatalogUpdate() {}

  /**
   * Have Spark leave partitions that it did not write in the catalog. Raises {@link CommitException}
   * if it would not, or would add one without files.
   *
   * @param written the partitions for which its tasks wrote files, {@code dt=2026-11-21}
   */
  static void afterNothing(FileSystem fs, WriteCommand insert, Set<String> written)
      throws IOException {
    WriteCommand.Table table = insert.table();
    if (table == null || table.created() || !table.partitioned()) {
      return;
    }
    for (String one : written) {
      if (!table.known().contains(one + "/") && !hasFiles(fs, new Path(insert.output(), one))) {
        throw refused(
            "KEY_TAKEN", table, "but the partition " + one + " has no files any more. To write the data"
                + " again, use another key");
      }
    }
    boolean isWhole = table.known().stream().allMatch(one -> written.contains(one.replaceFirst("/$", "")));
    boolean drops = insert.replaces() == Job.Replaces.DIRECTORY && !isWhole;
    if (drops && !keepOthers(insert.output())) {
      throw refused(
          "ALREADY_COMMITTED", table, "and this error keeps Spark from dropping the partitions that"
              + " others have added since. Set spark.sql.sources.partitionOverwriteMode=dynamic to have"
              + " none");
    }
  }

  private static CommitException refused(String code, WriteCommand.Table table, String why) {
    return new CommitException(
        code,
        "the data of this key was committed to " + table.name() + " before, and nothing was added, "
            + why + ".");
  }

  private static boolean hasFiles(FileSystem fs, Path partition) throws IOException {
    return Place.namesIn(fs, partition).stream().anyMatch(one -> one.isFile() && Place.isVisible(one));
  }

  /** Whether the running command was found. */
  private static boolean keepOthers(Path output) {
    QueryExecution query = WriteCommand.execution();
    List<InsertIntoHadoopFsRelationCommand> found = new ArrayList<>();
    if (query != null) {
      find(query.executedPlan(), found);
    }
    found.removeIf(one -> !one.outputPath().equals(output));
    try {
      Field isDynamic = InsertIntoHadoopFsRelationCommand.class.getDeclaredField(IS_DYNAMIC);
      isDynamic.setAccessible(true);
      for (InsertIntoHadoopFsRelationCommand one : found) {
        isDynamic.setBoolean(one, true);
        if (!one.dynamicPartitionOverwrite()) {
          return false;
        }
      }
    } catch (ReflectiveOperationException | RuntimeException another) {
      return false;
    }
    return !found.isEmpty();
  }

  /** The commands of a plan: its tree, and what its nodes hold beside their children. */
  private static void find(Object node, List<InsertIntoHadoopFsRelationCommand> found) {
    if (node instanceof DataWritingCommandExec writes
        && writes.cmd() instanceof InsertIntoHadoopFsRelationCommand insert) {
      found.add(insert);
    } else if (node instanceof TreeNode<?> tree) {
      JavaConverters.seqAsJavaList(tree.children()).forEach(one -> find(one, found));
      for (String inner : INNER) {
        try {
          find(tree.getClass().getMethod(inner).invoke(tree), found);
        } catch (ReflectiveOperationException none) {
          continue; // most nodes have none of them
        }
      }
    }
  }
}
