"""Zips of code and layers, unpacked once each, by content; and what a function runs with."""

# ruff: noqa: PLC0415 - moto takes half a second: who only reads this module does not pay

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import distribution
from io import BytesIO
from pathlib import Path
from typing import Any

from s3commit.local.worker import FunctionSpec

_KEEP_SECONDS = 14 * 24 * 3600
# The runtime interface client and what it needs (Lambda brings it, no layer does).
_RUNTIME_DISTRIBUTIONS = ("awslambdaric", "simplejson", "snapshot-restore-py")


def cache_directory() -> Path:
    """Where unpacked packages are kept from run to run (with their compiled modules)."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "s3commit" / "local"


class PackageStore:
    """A directory for each zip, named by its digest; safe for several processes at a time."""

    def __init__(self, directory: Path | None = None) -> None:
        self._root = (directory or cache_directory()) / "packages"
        self._root.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._forget_old()

    def unpack(self, digest: str, read: Callable[[], bytes]) -> Path:
        """The directory with the content of the zip; ``read`` is called if it is not there yet."""
        name = digest.replace("/", "_").replace("+", "-").rstrip("=")
        target = self._root / name
        with self._lock:
            if not target.is_dir():
                self._unpack(read(), target)
            os.utime(target)
        return target

    def _unpack(self, body: bytes, target: Path) -> None:
        scratch = Path(tempfile.mkdtemp(dir=self._root, prefix="new-"))
        with zipfile.ZipFile(BytesIO(body)) as archive:
            archive.extractall(scratch)
        try:
            scratch.rename(target)
        except OSError:  # another process was faster
            shutil.rmtree(scratch)

    def _forget_old(self) -> None:
        limit = time.time() - _KEEP_SECONDS
        for path in self._root.iterdir():
            with suppress(FileNotFoundError):  # another process has just renamed or removed it
                if path.stat().st_mtime < limit:
                    shutil.rmtree(path, ignore_errors=True)


def link_runtime(directory: Path) -> Path:
    """A directory that holds the runtime interface client and nothing else of this environment."""
    target = directory / "runtime"
    target.mkdir(parents=True, exist_ok=True)
    for name in _RUNTIME_DISTRIBUTIONS:
        found = distribution(name)
        roots = {file.parts[0] for file in found.files or () if file.parts[0] != ".."}
        for root in roots:
            link = target / root
            if not link.exists():
                link.symlink_to(Path(str(found.locate_file(root))))
    return target


def spec_of(function: Any, store: PackageStore) -> FunctionSpec:
    """The spec of moto's ``LambdaFunction``; its code and layers are unpacked if need be."""
    from moto.awslambda.models import lambda_backends

    backend = lambda_backends[function.account_id][function.region]
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
        code=_unpacked(store, function),
        layers=tuple(_unpacked(store, version) for version in versions),
    )


def _unpacked(store: PackageStore, packed: Any) -> Path:
    return store.unpack(packed.code_sha_256, lambda: packed.code_bytes)
