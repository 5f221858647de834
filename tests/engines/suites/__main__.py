"""Spark's own test suites by the jar: ``make spark-suites``, or ``ARGS="--own InsertSuite"``.

The default file system is the embedded runtime's bucket, so tables and paths without a scheme lie
there. What a test looks at by `java.io.File` it does not find: such tests fail with Spark's own
protocol too. ``differences.json`` has them, and those that fail by the jar alone, with the code.

Each suite is run whole, in a JVM of its own: its tests lean on each other, and a suite of Hive's
takes the default file system from the next. Where others fail, Spark's own protocol is the control.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from s3commit.core.formats.layout import is_hidden
from s3commit.spark.native import JARS
from tests.e2e.conftest import Deployed, runtime
from tests.engines.suites.report import Results, Suite, odd, problems, read, shared
from tests.native import s3a

HERE = Path(__file__).parent
POM = HERE / "pom.xml"
CLASS_PATH = s3a.ROOT / ".build" / "spark-suites" / "class-path"
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
    parser.add_argument("--piece", default="1/1", help="2/3: of three parts the second")
    parser.add_argument("--minutes", type=int, default=30, help="for one suite")
    parser.add_argument("suites", nargs="*", help="names, or their ends; all if none is given")
    arguments = parser.parse_args()
    known: dict[str, Any] = json.loads((HERE / "differences.json").read_text())
    wanted = tuple(arguments.suites) or ("",)
    suites = [Suite(name, **about) for name, about in known.items() if name.endswith(wanted)]
    piece, pieces = map(int, arguments.piece.split("/"))
    libraries = class_path()
    with runtime() as deployed, ThreadPoolExecutor(2) as threads:
        run = partial(results, deployed, libraries, arguments.minutes)
        judged = partial(judge, run, own=arguments.own)
        wrong = list(threads.map(judged, suites[piece - 1 :: pieces]))
    return int(any(wrong))


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


def judge(run: Callable[..., Results], suite: Suite, *, own: bool) -> list[str]:
    """Run one suite, and print how it ended. Returns what is wrong."""
    begun = time.monotonic()
    found = run(suite, own=own)
    control = run(suite, own=True) if odd(suite, found, own=own) and not own else None
    wrong = list(problems(suite, found, own=own, control=control))
    failed = sum(why is not None for why in found.values())
    print(
        f"{suite.short}: {len(found)} tests, {failed} differ, {time.monotonic() - begun:.0f} s",
        *(f"  {line}" for line in (*wrong, *shared(suite, found, control or {}))),
        *([f"  its output is in {CLASS_PATH.parent}"] if wrong else []),
        sep="\n",
        flush=True,
    )
    return wrong


def results(
    deployed: Deployed, libraries: str, minutes: int, suite: Suite, *, own: bool
) -> Results:
    """Run one suite in a JVM of its own, and read what its report has by then."""
    with tempfile.TemporaryDirectory() as work:
        # What is hidden is not ours to commit: the suite would test Spark alone.
        assert not is_hidden(f"{work}/file"), f"{work} is hidden: set TMPDIR"
        command = [
            *("nice", "-n", "10", "java", "-Xmx2g", "-Xss4m", "-XX:TieredStopAtLevel=1"),
            *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in OPENED),
            *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED_OF_SUN),
            *(f"-D{name}={value}" for name, value in properties(deployed, work, own=own).items()),
            *("-cp", libraries, "org.scalatest.tools.Runner", "-R", "."),
            *("-oDW", "-fW", "report", "-s", suite.name),
        ]
        Path(work, "log4j2.properties").write_text(LOG)
        (report := Path(work, "report")).touch()
        log = CLASS_PATH.parent / f"{suite.short}{'.own' * own}.log"
        try:
            with log.open("wb") as out:
                subprocess.run(
                    command,
                    cwd=work,
                    env=os.environ | {"SPARK_TESTING": "1", "SPARK_LOCAL_IP": "127.0.0.1"},
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    timeout=minutes * 60,
                    check=False,
                )
        except subprocess.TimeoutExpired:
            print(f"{suite.short}: no end after {minutes} min")
        return read(report.read_text())


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
