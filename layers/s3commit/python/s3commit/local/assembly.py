"""Reads a CDK cloud assembly: its stacks, in the order of their dependencies.

Format: https://github.com/aws/aws-cdk-cli/tree/main/packages/@aws-cdk/cloud-assembly-schema
(`manifest.json`, `*.template.json`). Nothing is resolved here.
"""

import json
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from s3commit.local import LocalRuntimeError, UnsupportedTemplateError

Json = dict[str, Any]

STACK_ARTIFACT = "aws:cloudformation:stack"
IGNORED_ARTIFACTS = frozenset({"cdk:asset-manifest", "cdk:tree", "cdk:feature-flag-report"})


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack: its template as it was written, and the assembly's directory."""

    name: str
    template: Json
    directory: Path

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

    def folder(self, key: str) -> Path:
        """The folder of an asset, which the CDK would publish as the object ``key``."""
        return self.directory / f"asset.{key.removesuffix('.zip')}"


def load_assembly(directory: Path) -> tuple[Stack, ...]:
    """The stacks of the assembly in ``directory``, each after those that it depends on.

    Raises `LocalRuntimeError` if there is none, `UnsupportedTemplateError` for a kind of artifact
    that the runtime does not know.
    """
    try:
        manifest = json.loads((directory / "manifest.json").read_text())
    except FileNotFoundError as error:
        raise LocalRuntimeError(
            f"{error.filename} is missing: is this a synthesized assembly?"
        ) from error
    artifacts: dict[str, Json] = manifest["artifacts"]
    for name, artifact in artifacts.items():
        if artifact["type"] not in {STACK_ARTIFACT, *IGNORED_ARTIFACTS}:
            raise UnsupportedTemplateError(
                f"artifact {name} has the unknown type {artifact['type']}"
            )
    needs = {name: artifact.get("dependencies", ()) for name, artifact in artifacts.items()}
    files = {
        name: directory / artifacts[name]["properties"]["templateFile"]
        for name in TopologicalSorter(needs).static_order()
        if artifacts[name]["type"] == STACK_ARTIFACT
    }
    return tuple(Stack(name, json.loads(at.read_text()), directory) for name, at in files.items())
