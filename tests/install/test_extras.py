"""What each extra brings is enough for its role, and no more."""

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from s3commit.version import __version__
from stacks.layers import REQUIREMENTS
from tests.contract.conftest import create_table
from tests.install.installed import ROOT, Machine, closure, declared, install, modules_of
from tests.lake import Lake, lake_on
from tests.stacks.synthesized import synthesize

MACHINE = "arn:aws:states:eu-central-1:123456789012:stateMachine:x"
IMPORT = "import importlib\nfor name in {names!r}: importlib.import_module(name)\n"

WRITE = """
import s3commit
with s3commit.open_job({uri!r}) as job:
    with job.task("0") as task, task.open("a.csv") as file:
        file.write(b"1,2")
    print(job.commit([task.counted]).files, "file")
"""

# What `write` does, in one process: a job, a task, the commit.
SPARK = """
from functools import partial
import pyarrow as pa
from pyspark.sql.types import LongType, StructField, StructType
from s3commit.arrow import other_schema
from s3commit.spark.schema import check_schema
from s3commit.spark.tasks import SparkJob
from s3commit.writer.options import make_options
from s3commit.writer.table_write import begin, commit

options = make_options({uri!r})
schema = check_schema(StructType([StructField("id", LongType())]), ())
like = partial(other_schema.check_schema, schema.of_files(None), ())
job, check_left = begin(options, like, "test")
batches = iter([pa.record_batch({{"id": [1, 2, 3]}})])
attempt, rows = SparkJob(job.task("0"), schema).write(batches, 0, 0)
print(commit(job, [attempt], rows, check_left).rows, "rows")
"""

LOCAL = """
import os
from pathlib import Path
from s3commit.local.runtime import LocalRuntime

with LocalRuntime(Path({assembly!r})) as runtime:
    os.environ.update(runtime.environment())
    exec({write!r}.format(uri=f"s3://{{runtime.bucket}}/t/"))
"""


Installed = Callable[..., Machine]


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    """Install extras of this package, and what is there already (``beside``)."""

    def make(*extras: str, beside: tuple[str, ...] = ()) -> Machine:
        into = tmp_path / "site"
        into.mkdir()
        return install(into, [*declared(*extras), *beside])

    return make


@pytest.fixture
def lake(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    """A bucket whose pipeline runs beside the programs of the test."""
    over = threading.Event()
    with lake_on(moto_endpoint, monkeypatch) as lake, ThreadPoolExecutor(1) as threads:

        def serve() -> None:
            while not over.wait(0.05):
                lake.run_pipeline()

        served = threads.submit(serve)
        yield lake
        over.set()
        served.result()


def does(machine: Machine, code: str, *more: Path, **environment: str) -> str:
    done = machine.run(code, *more, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_is_not_declared_is_not_there(installed: Installed) -> None:
    """Else the tests below would prove nothing."""
    done = installed().run("import boto3, pynamodb")
    assert "No module named 'pynamodb'" in done.stderr


def test_a_writer_needs_boto3_alone(installed: Installed, lake: Lake) -> None:
    assert [Requirement(text).name for text in declared()] == ["boto3"]
    code = IMPORT.format(names=modules_of("core", "writer"))
    told = does(installed(), code + WRITE.format(uri=f"s3://{lake.bucket}/t/"))
    assert (told, len(lake.visible())) == ("1 file\n", 1)


def test_a_spark_job_needs_pyarrow_beside_spark(installed: Installed, lake: Lake) -> None:
    code = IMPORT.format(names=modules_of("spark"))
    machine = installed("spark", beside=("pyspark",))
    assert does(machine, code + SPARK.format(uri=f"s3://{lake.bucket}/t/")) == "3 rows\n"
    assert len(lake.visible()) == 1


def test_no_extra_brings_a_spark_of_its_own(installed: Installed) -> None:
    """It would cover the cluster's."""
    extras = ("spark", "cli", "pipeline", "local")
    assert "pyspark" not in closure(declared(*extras))
    done = installed("spark").run(
        "from s3commit.spark import write\n"
        "try: write(None, 's3://b/t/')\nexcept Exception as error: print(error)\n"
    )
    assert "pyspark is not installed here: run this with the cluster's Python" in done.stdout


def test_wheel_and_jar_have_one_version() -> None:
    pom = (ROOT / "jvm" / "pom.xml").read_text()
    assert f"</artifactId>\n  <version>{__version__}</version>" in pom


def test_the_layer_pins_what_the_pipeline_declares() -> None:
    pinned = {
        canonicalize_name(found[1])
        for line in REQUIREMENTS.read_text().splitlines()
        if (found := re.match(r"([a-z0-9-]+)==", line))
    }
    assert pinned == closure(declared("pipeline"))


def test_the_command_needs_cli(installed: Installed, lake: Lake, moto_endpoint: str) -> None:
    machine = installed("cli")
    names = [name for name in modules_of("cli") if ".page" not in name]
    does(machine, IMPORT.format(names=names))
    create_table(lake.bucket, moto_endpoint)
    place, table = f"s3://{lake.bucket}/t/", f"--table {lake.bucket}"
    for arguments in (
        "--help",
        f"status {table}",
        f"log {place} {table}",
        "sweep --dry-run --stuck-after 1h --abandoned-after 1d --retention 30d"
        f" --state-machine {MACHINE} {table}",
    ):
        done = machine.run(arguments, module="s3commit")
        assert done.returncode == 0, (arguments, done.stderr)
    up = machine.run("local up", module="s3commit")
    assert "the embedded runtime needs moto, flask, waitress, awslambdaric" in up.stderr
    page = machine.run("ui", module="s3commit")
    assert "the page needs flask, waitress: pip install" in page.stderr


def test_the_page_needs_ui(installed: Installed) -> None:
    does(installed("ui"), IMPORT.format(names=modules_of("cli")))


def test_the_embedded_runtime_needs_local(installed: Installed) -> None:
    machine = installed("local")
    code = IMPORT.format(names=[name for name in modules_of("local") if "bootstrap" not in name])
    told = does(machine, code + LOCAL.format(assembly=str(synthesize().directory), write=WRITE))
    assert told.splitlines()[-1] == "1 file"
