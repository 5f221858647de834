"""The layer is for any processor, the same each time, and enough for the handlers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stacks.layers import (
    REQUIREMENTS,
    ROOT,
    SERVICES,
    LayerBuildError,
    dependencies_layer,
    function_code,
)
from tests.stacks.synthesized import digests


@pytest.fixture(scope="module")
def layer() -> Path:
    return dependencies_layer()


def test_nothing_in_it_is_for_one_processor(layer: Path) -> None:
    files = [path for path in layer.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if path.suffix in {".so", ".pyd", ".dylib"}]
    assert not [path for path in files if path.read_bytes()[:4] == b"\x7fELF"]


def test_every_pin_is_exact_and_has_a_digest() -> None:
    lines = [line for line in REQUIREMENTS.read_text().splitlines() if line and line[0] != "#"]
    assert len(lines) >= 10
    for line in lines:
        assert re.fullmatch(r"[a-z0-9-]+==[0-9a-z.]+ --hash=sha256:[0-9a-f]{64}", line)


def test_a_second_build_gives_the_same_bytes(layer: Path, tmp_path: Path) -> None:
    again = dependencies_layer(build=tmp_path)
    assert digests(again) == digests(layer)
    assert [path.name for path in tmp_path.iterdir()] == [layer.name]  # no scratch is left


def test_a_digest_that_does_not_match_is_refused(tmp_path: Path) -> None:
    forged = tmp_path / "requirements.txt"
    forged.write_text(f"six==1.17.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(LayerBuildError, match="could not install requirements"):
        dependencies_layer(forged, build=tmp_path / "build")
    assert list((tmp_path / "build").iterdir()) == []


def test_handlers_import_and_call_aws_with_their_code_and_the_layer_alone(
    layer: Path, tmp_path: Path
) -> None:
    """In a process that sees nothing of this virtual environment."""
    handlers = sorted(path.stem for path in (ROOT / "lambdas").glob("[a-z]*.py"))
    code = f"""
import importlib, sys, boto3
for service in {sorted(SERVICES)!r}:
    assert boto3.client(service, region_name="eu-central-1").meta.service_model.operation_names
for name in {handlers!r}:
    assert callable(importlib.import_module(name).handler)
foreign = [name for name in ("moto", "pyarrow", "pydantic", "click") if name in sys.modules]
assert not foreign, foreign
assert "site-packages" not in boto3.__file__
"""
    path = [layer / "python", function_code(tmp_path / "code")]
    done = subprocess.run(
        [sys.executable, "-S", "-B", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "AWS_REGION": "eu-central-1",
            "AWS_DEFAULT_REGION": "eu-central-1",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "S3COMMIT_TABLE": "ledger",
            "S3COMMIT_BUCKET": "lake",
            "S3COMMIT_LEDGER_TTL_DAYS": "30",
            "S3COMMIT_REPLACE_BELOW": "[]",
            "S3COMMIT_WORKERS": "[1, 1]",
            "S3COMMIT_STATE_MACHINE": "arn:aws:states:eu-central-1:111122223333:stateMachine:x",
        },
    )
    assert done.returncode == 0, done.stderr
