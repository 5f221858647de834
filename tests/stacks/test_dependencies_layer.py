"""The layer is for any processor, the same each time, and enough for the handlers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stacks.layers import REQUIREMENTS, LayerBuildError, dependencies_layer
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
