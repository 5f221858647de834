"""Reads a CDK cloud assembly: stacks in the order of their dependencies, and their assets.

Format: https://github.com/aws/aws-cdk-cli/tree/main/packages/@aws-cdk/cloud-assembly-schema
(`manifest.json`, `*.assets.json`, `*.template.json`). Nothing is resolved here.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from io import BytesIO
from pathlib import Path
from typing import Any

from s3commit.local import LocalRuntimeError, UnsupportedTemplateError

Json = dict[str, Any]

STACK_ARTIFACT = "aws:cloudformation:stack"
ASSETS_ARTIFACT = "cdk:asset-manifest"
IGNORED_ARTIFACTS = frozenset({"cdk:tree", "cdk:feature-flag-report"})
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time a zip can hold: same content, same bytes


@dataclass(frozen=True, slots=True)
class Asset:
    """A file asset: ``bucket`` is still the template's text, ``key`` is the object's key."""

    bucket: str
    key: str
    source: Path

    def read(self) -> bytes:
        """The bytes that are published: the folder as a zip.

        Entries are stored without compression and in name order with a fixed time, so the bytes
        depend on the content alone. Raises `LocalRuntimeError` if the source is missing.
        """
        if not self.source.exists():
            raise LocalRuntimeError(f"asset {self.source} is missing: synthesize again")
        buffer = BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            for path in sorted(self.source.rglob("*")):
                if path.is_dir() or "__pycache__" in path.parts:
                    continue
                entry = zipfile.ZipInfo(path.relative_to(self.source).as_posix(), _EPOCH)
                entry.external_attr = (path.stat().st_mode & 0o777) << 16
                archive.writestr(entry, path.read_bytes())
        return buffer.getvalue()


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack: its template as it was written, and the file assets it publishes."""

    name: str
    template: Json
    assets: tuple[Asset, ...] = ()

    @property
    def resources(self) -> dict[str, Json]:
        """Logical id → resource, as in the template."""
        resources: dict[str, Json] = self.template.get("Resources", {})
        return resources

    @property
    def outputs(self) -> dict[str, Json]:
        """Output name → output, as in the template."""
        outputs: dict[str, Json] = self.template.get("Outputs", {})
        return outputs


def load_assembly(directory: Path) -> tuple[Stack, ...]:
    """The stacks of the assembly in ``directory``, each after those that it depends on.

    Raises `LocalRuntimeError` if there is none or it is damaged, `UnsupportedTemplateError` for a
    kind of artifact that the runtime does not know.
    """
    artifacts: dict[str, Json] = _read_json(directory / "manifest.json").get("artifacts", {})
    for name, artifact in artifacts.items():
        if artifact.get("type") not in {STACK_ARTIFACT, ASSETS_ARTIFACT, *IGNORED_ARTIFACTS}:
            raise UnsupportedTemplateError(
                f"artifact {name} has the unknown type {artifact.get('type')}"
            )
    stacks = _of_kind(artifacts, STACK_ARTIFACT, artifacts)
    if not stacks:
        raise LocalRuntimeError(f"{directory} holds no stack")
    needs = {
        name: _of_kind(artifacts, STACK_ARTIFACT, artifacts[name].get("dependencies", []))
        for name in stacks
    }
    try:
        order = list(TopologicalSorter(needs).static_order())
    except CycleError as error:
        raise LocalRuntimeError(f"the stacks depend on each other: {error.args[1]}") from error
    return tuple(_stack(directory, name, artifacts) for name in order)


def _of_kind(artifacts: dict[str, Json], kind: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if artifacts.get(name, {}).get("type") == kind]


def _stack(directory: Path, name: str, artifacts: dict[str, Json]) -> Stack:
    properties = artifacts[name].get("properties", {})
    published = _of_kind(artifacts, ASSETS_ARTIFACT, artifacts[name].get("dependencies", []))
    files = [artifacts[each]["properties"]["file"] for each in published]
    return Stack(
        name=properties.get("stackName", name),
        template=_read_json(directory / properties["templateFile"]),
        assets=tuple(asset for file in files for asset in _assets(directory, file)),
    )


def _assets(directory: Path, file: str) -> list[Asset]:
    manifest = _read_json(directory / file)
    if manifest.get("dockerImages"):
        raise UnsupportedTemplateError(f"{file} has container images, which do not run here")
    assets = []
    for entry in manifest.get("files", {}).values():
        source = entry["source"]
        if source.get("path", "").endswith(".template.json"):
            continue
        if "path" not in source or source.get("packaging") != "zip":
            raise UnsupportedTemplateError(f"{file} has an asset that is no folder")
        for destination in entry["destinations"].values():
            assets.append(
                Asset(
                    bucket=destination["bucketName"],
                    key=destination["objectKey"],
                    source=directory / source["path"],
                )
            )
    return assets


def _read_json(path: Path) -> Json:
    try:
        document: Json = json.loads(path.read_text())
    except FileNotFoundError as error:
        raise LocalRuntimeError(f"{path} is missing: is this a synthesized assembly?") from error
    except json.JSONDecodeError as error:
        raise LocalRuntimeError(f"{path} is no JSON: {error}") from error
    return document
