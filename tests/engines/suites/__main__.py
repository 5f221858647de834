"""Spark's own test suites by the jar: ``make spark-suites``, or ``ARGS="--own InsertSuite"``.

The default file system is the embedded runtime's bucket, so tables and paths without a scheme lie
there. What a test looks at by `java.io.File` it does not find: such tests fail with Spark's own
protocol too. ``differences.json`` has them, and those that fail by the jar alone, with the code.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from s3commit.spark.native import JARS
from tests.e2e.conftest import Deployed, runtime
from tests.engines.suites.report import Suite, problems, read
from tests.native import s3a

HERE = Path(__file__).parent
POM = HERE / "pom.xml"
CLASS_PATH = s3a.ROOT / ".build" / "spark-suites" / "class-path"
SECONDS = 1800  # for one suite
LOG = """rootLogger.level = error
rootLogger.appenderRef.stdout.ref = console
appender.console.type = Console
appender.console.name = console
"""
OURS = "io.s3commit.spark.S3CommitProtocol"
OPENED = (
    *("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util", "util.concurrent"),
    "util.concurrent.atomic",
)
OPENED_OF_SUN = ("sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar")


def main() -> int:
    """1 if a suite ended otherwise than it should."""
    parser = argparse.ArgumentParser("make spark-suites ARGS=…", description=__doc__)
    parser.add_argument("--own", action="store_true", help="by Spark's own protocol, on that S3")
    parser.add_argument("suites", nargs="*", help="names, or their ends; all if none is given")
    arguments = parser.parse_args()
    known: dict[str, Any] = json.loads((HERE / "differences.json").read_text())
    wanted = tuple(arguments.suites) or ("",)
    suites = [Suite(name, **about) for name, about in known.items() if name.endswith(wanted)]
    libraries = class_path()
    with runtime() as deployed, ThreadPoolExecutor(2) as threads:
        one = partial(run, deployed, libraries, own=arguments.own)
        found = list(threads.map(one, suites))
    return int(any(found))


def class_path() -> str:
    """All jars of the suites; Maven resolves them once for each state of the POMs."""
    newest = max(pom.stat().st_mtime for pom in (POM, s3a.POM))
    if not CLASS_PATH.exists() or CLASS_PATH.stat().st_mtime < newest:
        generation, sdk = s3a.SDKS["3.4.2"]
        s3a.maven(
            *("--file", str(POM), "-P", generation, f"-Dsdk.version={sdk}"),
            *("dependency:build-classpath", f"-Dmdep.outputFile={CLASS_PATH}"),
        )
    (jar,) = JARS.glob("s3commit-spark_2.13-*.jar")
    return f"{jar}:{CLASS_PATH.read_text()}"


def run(deployed: Deployed, libraries: str, suite: Suite, *, own: bool) -> list[str]:
    """Run one suite in a JVM of its own, and print how it ended. Returns what is wrong."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as work:
        command = [
            *("nice", "-n", "10", "java", "-Xmx2g", "-Xss4m", "-XX:TieredStopAtLevel=1"),
            *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in OPENED),
            *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED_OF_SUN),
            *(f"-D{name}={value}" for name, value in properties(deployed, work, own=own).items()),
            *("-cp", libraries, "org.scalatest.tools.Runner", "-R", ".", "-u", "reports", "-oDW"),
            *("-s", suite.name),
        ]
        Path(work, "log4j2.properties").write_text(LOG)
        log = CLASS_PATH.parent / f"{suite.short}.log"
        try:
            with log.open("wb") as out:
                subprocess.run(
                    command,
                    cwd=work,
                    env=os.environ | {"SPARK_TESTING": "1", "SPARK_LOCAL_IP": "127.0.0.1"},
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    timeout=SECONDS,
                    check=False,
                )
        except subprocess.TimeoutExpired:
            print(f"{suite.short}: no end after {SECONDS} s")
        found = read(Path(work, "reports"))
    wrong = list(problems(suite, found, own=own))
    failed = sum(why is not None for why in found.values())
    print(
        f"{suite.short}: {len(found)} tests, {failed} differ, {time.monotonic() - begun:.0f} s",
        *(f"  {line}" for line in wrong),
        *([f"  its output is in {log}"] if wrong else []),
        sep="\n",
        flush=True,
    )
    return wrong


def properties(deployed: Deployed, work: str, *, own: bool) -> dict[str, str]:
    """The JVM's properties, which are Spark's settings, too."""
    s3 = s3a.settings(deployed.endpoint)
    del s3["spark.jars"]
    found = {
        **s3,
        "spark.hadoop.fs.s3a.access.key": deployed.accessKey,
        "spark.hadoop.fs.s3a.secret.key": deployed.secretKey,
        "spark.hadoop.fs.defaultFS": f"s3a://{deployed.bucket}/",
        "spark.sql.warehouse.dir": f"s3a://{deployed.bucket}/warehouse-{Path(work).name}",
        "spark.testing": "1",
        "spark.test.home": work,
        "spark.ui.enabled": "false",
        "java.io.tmpdir": work,
        "log4j2.configurationFile": f"{work}/log4j2.properties",
    }
    return found if own else found | {"spark.sql.sources.commitProtocolClass": OURS}


if __name__ == "__main__":
    sys.exit(main())
