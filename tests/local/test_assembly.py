"""Reading a cloud assembly."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest

from s3commit.local import LocalRuntimeError, UnsupportedTemplateError
from s3commit.local.assembly import Asset, load_assembly
from tests.local import templates


def test_a_folder_becomes_the_same_zip_each_time(tmp_path: Path) -> None:
    for name in ("b.py", "sub/a.py", "__pycache__/a.pyc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    asset = Asset("bucket", "key", tmp_path)
    first = asset.read()
    (tmp_path / "b.py").touch()
    assert asset.read() == first
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        assert archive.namelist() == ["b.py", "sub/a.py"]


def test_what_is_no_assembly_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(LocalRuntimeError, match="is this a synthesized assembly"):
        load_assembly(tmp_path)
    (tmp_path / "manifest.json").write_text('{"artifacts": {}}')
    with pytest.raises(LocalRuntimeError, match="holds no stack"):
        load_assembly(tmp_path)
    with pytest.raises(LocalRuntimeError, match="is missing: synthesize again"):
        Asset("bucket", "key", tmp_path / "gone").read()


def test_an_artifact_that_is_not_known_is_refused(tmp_path: Path) -> None:
    manifest = {"artifacts": {"Nested": {"type": "cdk:cloud-assembly"}}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UnsupportedTemplateError, match="Nested has the unknown type cdk:cloud-a"):
        load_assembly(tmp_path)


def test_an_asset_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    directory = templates.write(tmp_path / "out", templates.storage(), templates.pipeline())
    path = directory / "Pipeline.assets.json"
    path.write_text(path.read_text().replace('"packaging": "zip"', '"packaging": "file"'))
    with pytest.raises(UnsupportedTemplateError, match=r"Pipeline\.assets\.json has an asset"):
        load_assembly(directory)
