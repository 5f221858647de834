"""What is published, as `make release` puts it into dist/: wheel, jars and app, each by itself."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from s3commit.version import __version__
from tests.install.installed import ROOT
from tests.native import s3a
from tests.servers import ran

pytestmark = pytest.mark.long  # it builds all, and downloads 300 MB into an environment

TRIAL = """
import os, s3commit
with s3commit.open_job(f"s3://{os.environ['BUCKET']}/sales/") as job:
    with job.task("t0") as task, task.open("a.csv") as file:
        file.write(b"1,2")
    print(job.commit([task.counted]).files, "file")
"""

ASSEMBLY = """
import os, sys
from pathlib import Path
from s3commit.local.runtime import LocalRuntime
with LocalRuntime(Path(sys.argv[1])) as runtime:
    os.environ.update(runtime.environment(), BUCKET=runtime.bucket)
    exec(os.environ["TRIAL"])
"""

SPARK = """
import os
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.range(3).coalesce(1).write.csv(f"s3a://{os.environ['BUCKET']}/native/")
print(spark.read.csv(f"s3a://{os.environ['BUCKET']}/native/").count(), "rows")
"""


@pytest.fixture(scope="module")
def dist() -> Path:
    """The directory of what is published; it is built here unless it is given."""
    given = os.environ.get("S3COMMIT_DIST")
    if given is None:
        subprocess.run(["make", "--silent", "release"], cwd=ROOT, check=True)
    return Path(given) if given else ROOT / "dist"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty directory, which is the user's home and where the commands run."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def commands(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Those of a virtual environment that has the wheel with its extra ``local`` alone."""
    (wheel,) = dist.glob("s3commit-*.whl")
    venv = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    install = [str(venv / "bin" / "pip"), "install", "--quiet", "-c", str(ROOT / "constraints.txt")]
    subprocess.run([*install, f"{wheel}[local]"], check=True)
    return venv / "bin"


@pytest.fixture(scope="module")
def laptop(commands: Path, home: Path) -> Iterator[dict[str, str]]:
    """The environment of a terminal beside `s3commit local up`, which ends by Ctrl-C."""
    environment = {"PATH": str(commands), "HOME": str(home), "TRIAL": TRIAL}
    told = home / "told"
    with (
        told.open("w") as stderr,
        subprocess.Popen(
            [str(commands / "s3commit"), "local", "up"],
            cwd=home,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=stderr,
        ) as up,
    ):
        try:
            assert up.stdout is not None
            ready = json.loads(up.stdout.readline())
            yield environment
        finally:
            os.kill(up.pid, signal.SIGINT)
        assert up.wait(30) == 0
    assert f"running at {ready['endpoint']}, bucket s3://{ready['bucket']}/" in told.read_text()


def test_the_wheel_alone_runs_and_commits_a_job(laptop: dict[str, str], home: Path) -> None:
    script = 'eval "$(s3commit local env)" && python -c "$TRIAL" && s3commit status --all'
    done = ran("/bin/sh", "-c", script, cwd=home, env=laptop)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 file\n")
    assert "COMMITTED" in done.stdout


def only_pom(folder: Path) -> str:
    (pom,) = folder.glob("*.pom")
    return pom.read_text()


def test_the_jar_comes_by_its_coordinates(dist: Path, laptop: dict[str, str], home: Path) -> None:
    repository = home / "repository"
    for scala in ("2.12", "2.13"):
        folder = repository / "io" / "s3commit" / f"s3commit-spark_{scala}" / __version__
        folder.mkdir(parents=True)
        for ending in ("jar", "pom"):
            shutil.copy(dist / f"s3commit-spark_{scala}-{__version__}.{ending}", folder)
        assert f"<artifactId>s3commit-spark_{scala}</artifactId>" in only_pom(folder)
        assert f"<version>{__version__}</version>" in only_pom(folder)
    (home / "job.py").write_text(SPARK)
    assert s3a.jars(), "there is no S3A: run python tests/native/s3a.py"
    submit = [
        str(Path(sys.executable).with_name("spark-submit")),
        f"--packages io.s3commit:s3commit-spark_2.13:{__version__}",
        f"--repositories {repository.as_uri()} --conf spark.jars.ivy={home}/ivy",
        f"--jars {','.join(map(str, s3a.jars()))} --conf spark.ui.enabled=false",
        "--conf spark.sql.sources.commitProtocolClass=io.s3commit.spark.S3CommitProtocol job.py",
    ]
    path = f"{laptop['PATH']}:{os.environ['PATH']}"
    outside = {name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ}
    done = ran(
        "/bin/sh",
        "-c",
        f'eval "$(s3commit local env)" && {" ".join(submit)} && s3commit log "s3://$BUCKET/native/"',
        cwd=home,
        env={**laptop, **outside, "PATH": path, "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("3 rows\n")
    assert "COMMITTED" in done.stdout


def test_the_app_has_all_for_cdk(dist: Path, commands: Path, home: Path, tmp_path: Path) -> None:
    """Its stacks, and their functions with all that they import."""
    app = tmp_path / "app"
    archive = dist / f"s3commit-app-{__version__}.zip"
    subprocess.run([sys.executable, "-m", "zipfile", "-e", archive, app], check=True)
    listed = ran("make", "--silent", "cdk", f"ARGS=ls --app {app}", cwd=ROOT)
    assert listed.stdout.split() == ["S3CommitStorage", "S3CommitPipeline"], listed.stderr
    environment = {"PATH": str(commands), "HOME": str(home), "TRIAL": TRIAL}
    done = ran(str(commands / "python"), "-c", ASSEMBLY, str(app), cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "1 file"
