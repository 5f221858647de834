"""Packs a synthesized app into one zip: ``python -m stacks.pack cdk.out app.zip``.

The wheel carries it for `s3commit local up`, and `cdk deploy --app` takes it unpacked. Its bytes
depend on the files alone.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Final

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can hold


def pack(assembly: Path, target: Path) -> None:
    """Write all files of ``assembly`` to the zip ``target``."""
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(assembly.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(path.relative_to(assembly).as_posix(), _EPOCH)
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    pack(Path(sys.argv[1]), Path(sys.argv[2]))
