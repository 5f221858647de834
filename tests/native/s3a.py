"""The jars that the tests of the native protocol need beside PySpark's own: S3A, Avro, cloud.

As a program, once for each release of PySpark: copy them from Maven to where `jars` finds them.
"""

import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyspark

ROOT = Path(__file__).parents[2]
POM = ROOT / "jvm" / "s3a" / "pom.xml"
PYSPARK_JARS = Path(pyspark.__file__).parent / "jars"
# Hadoop's release: the generation of AWS's SDK that its S3A is written for, and a release of it.
S3A = "org.apache.hadoop.fs.s3a"
SDKS = {
    "3.3.4": ("sdk-1", "1.12.262"),
    "3.4.1": ("sdk-2", "2.25.0"),
    "3.4.2": ("sdk-2", "2.29.52"),
    "3.5.0": ("sdk-2", "2.35.4"),
}


def folder() -> Path:
    """Where the jars are for the PySpark that runs."""
    return ROOT / ".build" / f"s3a-{pyspark.__version__}"


def jars() -> list[Path]:
    """The jars; none if this program was not run."""
    return sorted(folder().glob("*.jar"))


def settings(endpoint: str) -> dict[str, str]:
    """What a program says of S3, as ever, and the jars."""
    prefix = "spark.hadoop.fs.s3a."
    return {
        "spark.jars": ",".join(map(str, jars())),
        prefix + "endpoint": endpoint,
        prefix + "endpoint.region": "us-east-1",
        prefix + "path.style.access": "true",
        prefix + "connection.ssl.enabled": "false",
        prefix + "access.key": "testing",
        prefix + "secret.key": "testing",
        prefix
        + "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        prefix + "multipart.size": "5M",
    }


def release_of(name: str) -> str:
    """The release of one of PySpark's jars."""
    found = next(PYSPARK_JARS.glob(f"{name}-[0-9]*.jar"))
    return re.sub(rf"{name}-(.*)\.jar", r"\1", found.name)


def hadoop() -> tuple[int, ...]:
    """The release of Hadoop that PySpark brings."""
    return tuple(map(int, release_of("hadoop-client-api").split(".")))


def copy() -> None:
    """Copy all to `folder`, and the folder appears when they are whole."""
    release = release_of("hadoop-client-api")
    generation, sdk = SDKS[release]
    new = folder().with_suffix(".new")
    settings = [f"-Dhadoop.version={release}", f"-Dsdk.version={sdk}", f"-DoutputDirectory={new}"]
    maven("--file", str(POM), "-P", generation, "dependency:copy-dependencies", *settings)
    avro = of_spark("spark-avro", pyspark.__version__)
    try:
        maven("dependency:copy", f"-Dartifact={avro}", f"-DoutputDirectory={new}")
    except subprocess.CalledProcessError:
        print(f"{avro} is not to be had: Avro is not tested here")
    new.rename(folder())


def cloud() -> Path:
    """Spark's binding to S3A's committers, which most sessions here do not have; copied at need.

    Where Maven does not have that of the running release, it is 4.1.1's: its classes are the same.
    """
    target = folder().with_name(f"cloud-{pyspark.__version__}")
    for release in (pyspark.__version__, "4.1.1"):
        if not any(target.glob("*.jar")):
            wanted = of_spark("spark-hadoop-cloud", release)
            with suppress(subprocess.CalledProcessError):
                maven("dependency:copy", f"-Dartifact={wanted}", f"-DoutputDirectory={target}")
    return next(target.glob("*.jar"))


def of_spark(name: str, release: str) -> str:
    """The coordinates of a module of Spark, for the Scala of PySpark."""
    scala = ".".join(release_of("scala-library").split(".")[:2])
    return f"org.apache.spark:{name}_{scala}:{release}"


def maven(*arguments: str) -> None:
    """Run Maven."""
    command = ["mvn", "--batch-mode", "--quiet", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)


if __name__ == "__main__":
    if not folder().exists():
        copy()
    cloud()
    sys.exit(0 if jars() else 1)
