"""By atheris, which looks for the bytes that reach new code.

``python -m tests.engines.fuzz.guided 10``: the number is for how many minutes. It wants atheris
installed, and the pipeline's own packages; everything else of the fuzzing runs without.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any


def main() -> None:
    """Fuzz; atheris ends the process, and says what it has found."""
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["s3commit.core", "json"]):
        targets: Any = importlib.import_module("tests.engines.fuzz.targets")

    def one(data: bytes) -> None:
        if data:
            targets.read(targets.KINDS[data[0] % len(targets.KINDS)], data[1:])

    with tempfile.TemporaryDirectory() as name:
        for number, body in enumerate(targets.SOUND):  # it begins with what is sound
            Path(name, str(number)).write_bytes(bytes([number]) + body)
        limits = [f"-max_total_time={60 * float(sys.argv[1]):.0f}", "-max_len=8192", "-timeout=5"]
        found = [f"-artifact_prefix={name}/", "-rss_limit_mb=1024", "-print_final_stats=1"]
        atheris.Setup([sys.argv[0], *limits, *found, name], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
