package io.s3commit.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.file.AccessDeniedException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
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
   * where it would not, would add one without files, or leaves one that an earlier run has emptied.
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
        throw new CommitException(
            "KEY_TAKEN",
            "the data of this key was committed to " + table.name() + " before, but its partition " + one
                + " has no files any more. Nothing was added: write the data again under another key.");
      }
    }
    if (insert.replaces() != Job.Replaces.DIRECTORY) {
      return;
    }
    List<String> others =
        table.known().stream().filter(one -> !written.contains(one.replaceFirst("/$", ""))).toList();
    int full = 0;
    for (String one : others) {
      Path usual = new Path(insert.output(), one);
      full += hasFiles(fs, table.places().getOrDefault(one, usual)) ? 1 : 0;
    }
    // Of partitions without files Spark would drop none if it leaves others, and rightly all if not.
    boolean isMixed = full > 0 && full < others.size();
    if (isMixed || full > 0 && !keepOthers(insert.output())) {
      throw new CommitException(
          "ALREADY_COMMITTED",
          "the data of this key was committed to " + table.name() + " before, and nothing was added. This"
              + " error keeps Spark from dropping the partitions of others from the catalog: "
              + (isMixed
                  ? "run MSCK REPAIR TABLE " + table.name() + " SYNC PARTITIONS, then this again."
                  : "the data is there, and there is nothing to do."));
    }
  }

  /** Whoever may not list is not asked: Spark's own readers could not either. */
  private static boolean hasFiles(FileSystem fs, Path partition) throws IOException {
    try {
      RemoteIterator<FileStatus> listed = fs.listStatusIterator(partition);
      while (listed.hasNext()) {
        FileStatus one = listed.next();
        if (one.isFile() && Place.isVisible(one)) {
          return true;
        }
      }
      return false;
    } catch (FileNotFoundException none) {
      return false;
    } catch (AccessDeniedException denied) {
      return true;
    }
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
