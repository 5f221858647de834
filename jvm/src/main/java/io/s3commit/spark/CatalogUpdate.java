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
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.command.DataWritingCommandExec;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.PartitioningUtils;
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
   * Have Spark leave partitions that it did not write in the catalog, if they have files. Raises {@link
   * CommitException} where it would not, or would add one without files.
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
    List<String> emptied = new ArrayList<>();
    boolean haveFiles = false; // any of the others
    for (String one : table.known()) {
      Path place = table.places().getOrDefault(one, new Path(insert.output(), one));
      String name = one.replaceFirst("/$", "");
      if (!written.contains(name)) {
        boolean hasFiles = hasFiles(fs, place);
        haveFiles |= hasFiles;
        if (!hasFiles) {
          emptied.add(name);
        }
      }
    }
    // Spark drops all others or none: rightly all, if an earlier run has emptied each of them.
    if (haveFiles && !keepOthers(insert.output(), emptied)) {
      throw new CommitException(
          "ALREADY_COMMITTED",
          "the data of this key was committed to " + table.name() + " before, and nothing was added. This"
              + " error keeps Spark from dropping the partitions of others from the catalog: the data is"
              + " there, and there is nothing to do.");
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

  /** Drop what was emptied, and have Spark drop nothing. Returns whether the running command was found. */
  private static boolean keepOthers(Path output, List<String> emptied) {
    QueryExecution query = WriteCommand.execution();
    List<InsertIntoHadoopFsRelationCommand> found = new ArrayList<>();
    if (query != null) {
      find(query.executedPlan(), found);
    }
    found.removeIf(one -> !one.outputPath().equals(output));
    if (found.isEmpty()) {
      return false;
    }
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
    List<scala.collection.immutable.Map<String, String>> specs = new ArrayList<>();
    emptied.forEach(name -> specs.add(PartitioningUtils.parsePathFragment(name)));
    TableIdentifier table = found.get(0).catalogTable().get().identifier();
    WriteCommand.stateOf(query)
        .catalog()
        .dropPartitions(table, JavaConverters.asScalaBuffer(specs).toSeq(), true, false, true);
    return true;
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
