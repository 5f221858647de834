"""The layers: their byte code is of the functions' own Python or none, and the same each time."""

import marshal
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from stacks import layers, pipeline
from stacks.functions import RUNTIME
from stacks.layers import (
    REQUIREMENTS,
    LayerBuildError,
    compile_modules,
    dependencies_layer,
    function_code,
    runtime_python,
)
from stacks.pipeline import build
from tests.stacks.synthesized import digests

THIS = sys.executable
HEADER = 16  # bytes of a .pyc before the code
UNCHECKED_HASH = b"\x01\x00\x00\x00"


def test_what_compiles_is_the_functions_python() -> None:
    assert f"python{layers.PYTHON_VERSION}" == RUNTIME.name


def test_a_second_build_elsewhere_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "runtime_python", lambda: THIS)
    one, other = (function_code(tmp_path / name) for name in ("one", "a/longer/name"))
    found = digests(one)
    assert found == digests(other)
    compiled = [name for name in found if name.endswith(".pyc")]
    assert len(compiled) == len([name for name in found if name.endswith(".py")]) > 50


def test_a_function_takes_the_byte_code_whatever_the_time_of_the_source(tmp_path: Path) -> None:
    """A layer's zip sets times of its own; and nothing in a layer ever changes."""
    module = tmp_path / "python" / "told.py"
    module.parent.mkdir()
    module.write_text("WHAT = 'compiled'\n")
    compile_modules(module.parent, THIS, "/opt/python")
    [compiled] = module.parent.rglob("*.pyc")
    assert compiled.read_bytes()[4:8] == UNCHECKED_HASH
    assert marshal.loads(compiled.read_bytes()[HEADER:]).co_filename == "/opt/python/told.py"
    module.write_text("WHAT = 'the source'\n")
    os.utime(module, (0, 0))
    program = f"import sys; sys.path[:0] = [{str(module.parent)!r}]; import told; print(told.WHAT)"
    assert subprocess.check_output([sys.executable, "-I", "-c", program]) == b"compiled\n"


def test_a_module_that_is_no_python_stops_the_build(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def\n")
    with pytest.raises(LayerBuildError, match=r"broken\.py"):
        compile_modules(tmp_path, THIS, "/opt/python")


@pytest.mark.parametrize(
    ("this", "script", "found"),
    [
        (layers.PYTHON_VERSION, "exit 127", THIS),
        ("3.12", "echo /opt/python3.13", "/opt/python3.13"),
        ("3.12", "exit 127", None),  # as pyenv's, which fails where another version is chosen
    ],
)
def test_no_other_python_compiles(
    this: str, script: str, found: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / f"python{layers.PYTHON_VERSION}"
    told.write_text(f"#!/bin/sh\n{script}\n")
    told.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_python_version", lambda: this)
    assert runtime_python.__wrapped__() == found


def test_without_byte_code_one_is_warned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (layers, pipeline):
        monkeypatch.setattr(module, "runtime_python", lambda: None)
    build(outdir=str(tmp_path)).synth()
    assert "no byte code" in (tmp_path / "S3CommitPipeline.metadata.json").read_text()
    assert not list(tmp_path.rglob("*.pyc"))


# The layer of what others have made


def test_nothing_in_it_is_for_one_processor_and_each_build_is_the_same(tmp_path: Path) -> None:
    files = [path for path in dependencies_layer().rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if path.suffix in {".so", ".pyd", ".dylib"}]
    assert not [path for path in files if path.read_bytes()[:4] == b"\x7fELF"]
    layer, again = dependencies_layer(), dependencies_layer(build=tmp_path)
    assert digests(again) == digests(layer)
    assert [path.name for path in tmp_path.iterdir()] == [layer.name]  # no scratch is left


def test_every_pin_is_exact_and_has_a_digest() -> None:
    lines = [line for line in REQUIREMENTS.read_text().splitlines() if line and line[0] != "#"]
    assert len(lines) >= 10
    for line in lines:
        assert re.fullmatch(r"[a-z0-9-]+==[0-9a-z.]+ --hash=sha256:[0-9a-f]{64}", line)


def test_a_digest_that_does_not_match_is_refused(tmp_path: Path) -> None:
    forged = tmp_path / "requirements.txt"
    forged.write_text(f"six==1.17.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(LayerBuildError, match="could not install requirements"):
        dependencies_layer(forged, build=tmp_path / "build")
    assert list((tmp_path / "build").iterdir()) == []
