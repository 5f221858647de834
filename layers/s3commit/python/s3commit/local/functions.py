"""Moto's functions as the executor sees them."""

# ruff: noqa: PLC0415 - moto takes half a second: who only reads this module does not pay
from __future__ import annotations

from functools import partial
from typing import Any

from s3commit.local.packages import PackageStore
from s3commit.local.worker import FunctionSpec


def spec_of(function: Any, store: PackageStore) -> FunctionSpec:
    """The spec of moto's ``LambdaFunction``; its code and layers are unpacked if need be."""
    layers = []
    for layer in function.layers:
        version = _layer_version(function, layer["Arn"])
        layers.append(store.unpack(version.code_sha_256, partial(getattr, version, "code_bytes")))
    environment = {str(key): str(value) for key, value in function.environment_vars.items()}
    return FunctionSpec(
        name=function.function_name,
        arn=function.function_arn,
        handler=function.handler,
        timeout=float(function.timeout),
        memory=int(function.memory_size),
        runtime=str(function.run_time),
        environment=tuple(sorted(environment.items())),
        code=store.unpack(function.code_sha_256, lambda: function.code_bytes),
        layers=tuple(layers),
    )


def _layer_version(function: Any, arn: str) -> Any:
    from moto.awslambda.models import lambda_backends

    return lambda_backends[function.account_id][function.region].layers_versions_by_arn(arn)
