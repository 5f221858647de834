"""Synthesizing once for each state of the sources."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from s3commit.local import LocalRuntimeError, synth
from s3commit.local.synth import assembly_for, synthesize

APP = """
import os, pathlib
out = pathlib.Path(os.environ["CDK_OUTDIR"])
assert os.environ["JSII_NODE"]
(out / "manifest.json").write_text("{}")
log = pathlib.Path("runs.log")
log.write_text((log.read_text() if log.exists() else "") + "x")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "one.py").write_text("1")
    return tmp_path


def runs(project: Path) -> int:
    return len((project / "runs.log").read_text())


def test_it_is_made_anew_after_a_change(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = project / "out"
    assert synthesize(project, out) == out
    monkeypatch.setenv("CDK_CONTEXT_JSON", "{}")
    synthesize(project, out)
    assert runs(project) == 1
    (project / "stacks" / "one.py").write_text("2")
    synthesize(project, out)
    assert runs(project) == 2
    monkeypatch.setenv("CDK_CONTEXT_JSON", '{"s3commit:versioned": true}')
    synthesize(project, out)
    synthesize(project, out)
    assert runs(project) == 3


def test_of_two_at_a_time_one_makes_it_and_the_other_waits(project: Path) -> None:
    out = project / "out"
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda _: synthesize(project, out), range(2))) == [out, out]
    assert runs(project) == 1


def test_without_a_checkout_the_packed_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synth, "SHIPPED", tmp_path / "app.zip")
    with pytest.raises(LocalRuntimeError, match="built without `make wheel`"):
        assembly_for(tmp_path)
    (tmp_path / "made" / "asset.1").mkdir(parents=True)
    (tmp_path / "made" / "asset.1" / "decide.py").write_text("x = 1")
    shutil.make_archive(str(tmp_path / "app"), "zip", tmp_path / "made")
    assert (assembly_for(tmp_path) / "asset.1" / "decide.py").read_text() == "x = 1"


def test_an_app_that_fails_is_one_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "app.py").write_text("import sys; print('some detail'); sys.exit('no stack today')")
    with pytest.raises(LocalRuntimeError, match=r"app\.py failed \(exit 1\): no stack today"):
        synthesize(project, project / "out")
    assert "some detail" in capsys.readouterr().err
    (project / "app.py").write_text(APP)
    synthesize(project, project / "out")
    assert runs(project) == 1
