"""Spark's local file system without a process for each file.

Without Hadoop's native library, which the Python package of Spark does not bring, Hadoop sets the
mode of each file and directory by running ``chmod``: with 400 files that is a good part of the
time, and would flatter whatever is compared with it. Here it is a system call, as with the library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAME: Final = "S3CommitBenchLocal"
_SOURCE: Final = f"""
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public class {_NAME} extends LocalFileSystem {{
  public {_NAME}() {{ super(new Raw()); }}

  public static class Raw extends RawLocalFileSystem {{
    public void setPermission(Path path, FsPermission mode) throws IOException {{
      String text = mode.toString().substring(0, 9);
      Files.setPosixFilePermissions(
          pathToFile(path).toPath(), PosixFilePermissions.fromString(text));
    }}
  }}
}}
"""


def chmod_by_system_call(spark: SparkSession) -> None:
    """Make it the JVM's file system for ``file:``, for all sessions in it."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    compiler = jvm.org.codehaus.janino.SimpleCompiler()  # Spark brings it for its own code
    compiler.cook(_SOURCE)
    hadoop = jvm.org.apache.hadoop
    configuration = hadoop.conf.Configuration(spark.sparkContext._jsc.hadoopConfiguration())
    configuration.setClassLoader(compiler.getClassLoader())
    configuration.set("fs.file.impl", _NAME)
    hadoop.fs.FileSystem.closeAll()
    # Hadoop keeps one instance for each scheme: the first one made.
    made = hadoop.fs.FileSystem.get(jvm.java.net.URI("file:///"), configuration)
    assert made.getClass().getName() == _NAME
