"""The wheel in an empty environment is a trial: no checkout, no Node, no CDK."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.install.installed import ROOT

WRITE = """
import os, s3commit
with s3commit.open_job(f"s3://{os.environ['BUCKET']}/sales/") as job:
    with job.task("t0") as task, task.open("a.csv") as file:
        file.write(b"1,2")
    print(job.commit([task.counted]).files, "file")
"""


@pytest.fixture
def bin_directory(tmp_path: Path) -> Path:
    """Of a virtual environment that has the wheel with its extra ``local`` alone."""
    subprocess.run(["make", "--silent", "wheel"], cwd=ROOT, check=True)
    (wheel,) = (ROOT / "dist").glob("s3commit-*.whl")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    commands = tmp_path / "venv" / "bin"
    install = [str(commands / "pip"), "install", "--quiet", "-c", str(ROOT / "constraints.txt")]
    subprocess.run([*install, f"{wheel}[local]"], check=True)
    return commands


@pytest.mark.long  # it downloads 300 MB into the environment
def test_the_wheel_alone_runs_the_pipeline_and_commits_a_job(
    bin_directory: Path, tmp_path: Path
) -> None:
    here = tmp_path / "empty"
    here.mkdir()
    environment = {"PATH": str(bin_directory), "HOME": str(here)}
    command = [str(bin_directory / "s3commit"), "local", "up"]
    with (
        (tmp_path / "told").open("w+") as told,
        subprocess.Popen(
            command, cwd=here, env=environment, text=True, stdout=subprocess.PIPE, stderr=told
        ) as up,
    ):
        try:
            assert up.stdout is not None
            ready = json.loads(up.stdout.readline())
            script = 'eval "$(s3commit local env)" && python -c "$WRITE" && s3commit status --all'
            done = subprocess.run(
                ["/bin/sh", "-c", script],
                cwd=here,
                env={**environment, "WRITE": WRITE},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            assert done.stdout.startswith("1 file\n")
            assert "COMMITTED" in done.stdout
        finally:
            os.kill(up.pid, signal.SIGINT)
        assert up.wait(30) == 0
        told.seek(0)
        assert f"up at {ready['endpoint']}, its bucket is s3://{ready['bucket']}/" in told.read()
