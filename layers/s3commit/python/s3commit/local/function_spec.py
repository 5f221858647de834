"""The packages of a function: its code, its layers, and the runtime interface client."""

# ruff: noqa: PLC0415 - moto takes half a second: who only reads this module does not pay

from __future__ import annotations

import os
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from s3commit.local import ACCOUNT, REGION
from s3commit.local.worker import RUNTIME, FunctionSpec

# The runtime interface client and what it needs (Lambda brings it, no layer does).
_RUNTIME_DISTRIBUTIONS = ("awslambdaric", "simplejson", "snapshot-restore-py")


def link_runtime(directory: Path) -> None:
    """Link the runtime interface client, and nothing else of this environment, below a folder."""
    target = directory / RUNTIME
    target.mkdir()
    for name in _RUNTIME_DISTRIBUTIONS:
        found = distribution(name)
        for root in {file.parts[0] for file in found.files or ()} - {".."}:
            (target / root).symlink_to(Path(str(found.locate_file(root))))


def spec_of(function: Any) -> FunctionSpec:
    """The spec of moto's ``LambdaFunction``."""
    from moto.awslambda.models import lambda_backends

    backend = lambda_backends[ACCOUNT][REGION]
    versions = [backend.layers_versions_by_arn(layer["Arn"]) for layer in function.layers]
    environment = {str(key): str(value) for key, value in function.environment_vars.items()}
    return FunctionSpec(
        name=function.function_name,
        arn=function.function_arn,
        handler=function.handler,
        timeout=float(function.timeout),
        memory=int(function.memory_size),
        runtime=str(function.run_time),
        environment=tuple(sorted(environment.items())),
        code=_folder(function),
        layers=tuple(_folder(version) for version in versions),
    )


def _folder(packed: Any) -> Path:
    """Where code or a layer is: what moto takes for its zip is the path of its folder."""
    return Path(os.fsdecode(packed.code_bytes))
