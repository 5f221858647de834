"""Reading a cloud assembly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from s3commit.local import LocalRuntimeError, UnsupportedTemplateError
from s3commit.local.assembly import load_assembly


def test_what_is_no_assembly_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(LocalRuntimeError, match="is this a synthesized assembly"):
        load_assembly(tmp_path)


def test_an_artifact_that_is_not_known_is_refused(tmp_path: Path) -> None:
    manifest = {"artifacts": {"Nested": {"type": "cdk:cloud-assembly"}}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UnsupportedTemplateError, match="Nested has the unknown type cdk:cloud-a"):
        load_assembly(tmp_path)
