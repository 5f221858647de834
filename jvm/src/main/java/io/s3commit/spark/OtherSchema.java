package io.s3commit.spark;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetToSparkSchemaConverter;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
import org.apache.spark.sql.execution.datasources.parquet.SparkToParquetSchemaConverter;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Compares the columns of a write with those of a table's newest Parquet file: other types, or the
 * same name in other capitals, keep readers from reading both. New and missing columns don't.
 *
 * <p>The clients in Python compare more ({@code s3commit/arrow/other_schema.py}).
 */
final class OtherSchema {
  private static final Logger LOG = LoggerFactory.getLogger(OtherSchema.class);

  private OtherSchema() {}

  /**
   * Raise {@link CommitException} if the types differ. Of a write of another format nothing is
   * compared, nor with a file that is none of Parquet's, is encrypted or can't be read.
   */
  static void check(FileStatus file, Configuration job) throws CommitException {
    String written = job.get(ParquetWriteSupport.SPARK_ROW_SCHEMA());
    if (written == null) {
      return;
    }
    String difference;
    SQLConf session = SQLConf.get();
    ParquetToSparkSchemaConverter types = new ParquetToSparkSchemaConverter(session);
    try (ParquetFileReader reader = ParquetFileReader.open(HadoopInputFile.fromStatus(file, job))) {
      StructType old = types.convert(reader.getFooter().getFileMetaData().getSchema());
      StructType columns = (StructType) DataType.fromJson(written);
      // As readers get it back: Parquet does not have all types of Spark.
      StructType read = types.convert(new SparkToParquetSchemaConverter(session).convert(columns));
      difference = inStruct(old, read, "");
    } catch (IOException | RuntimeException | LinkageError unreadable) {
      LOG.debug("the types of {} are not compared", file.getPath(), unreadable);
      return;
    }
    if (difference != null) {
      throw new CommitException(
          "OTHER_SCHEMA",
          difference + " in " + file.getPath() + ", and not every reader could read both: change the"
              + " column, replace all files, or set checkSchema=false. Nothing was written.");
    }
  }

  private static String inStruct(StructType old, StructType written, String above) {
    for (StructField field : written.fields()) {
      String path = above + field.name();
      StructField found = null;
      for (StructField one : old.fields()) {
        boolean isIt = one.name().equalsIgnoreCase(field.name());
        found = isIt && (found == null || one.name().equals(field.name())) ? one : found;
      }
      String difference = null;
      if (found != null && !found.name().equals(field.name())) {
        difference = "column " + path + " is spelled " + found.name();
      } else if (found != null) {
        difference = inType(found.dataType(), field.dataType(), path);
      }
      if (difference != null) {
        return difference;
      }
    }
    return null;
  }

  private static String inType(DataType old, DataType written, String path) {
    if (old instanceof StructType was && written instanceof StructType is) {
      return inStruct(was, is, path + ".");
    }
    if (old instanceof ArrayType was && written instanceof ArrayType is) {
      return inType(was.elementType(), is.elementType(), path + "[]");
    }
    if (old instanceof MapType was && written instanceof MapType is) {
      String keys = inType(was.keyType(), is.keyType(), path + ".key");
      return keys != null ? keys : inType(was.valueType(), is.valueType(), path + ".value");
    }
    return old.equals(written)
        ? null
        : "column " + path + " has the type " + written.simpleString() + " here and " + old.simpleString();
  }
}
