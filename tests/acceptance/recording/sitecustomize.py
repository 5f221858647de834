"""Notes each call of AWS that a Python program makes, and ends the program at one of them.

Python imports a module of this name at its start. Each line has service, operation and the end of
the user agent. The assembly is a copy of the one that the tests keep (`tests.stacks.synthesized`).
"""

import hashlib
import itertools
import os
import shutil
import signal
from pathlib import Path
from typing import Any

if "ACCEPTANCE_CALLS" in os.environ:
    from botocore.client import BaseClient

    notes = Path(os.environ["ACCEPTANCE_CALLS"])
    moment, _, how = os.environ.pop("ACCEPTANCE_DIES", "").partition(":")  # not its programs
    numbers = itertools.count(1)
    call: Any = vars(BaseClient)["_make_api_call"]

    def noting(self: Any, operation: str, parameters: Any) -> Any:
        """Make the call, unless the program dies now."""
        agent = self.meta.config.user_agent_extra or "own"
        with notes.open("a") as file:
            file.write(f"{self.meta.service_model.service_name} {operation} {agent}\n")
        if moment and next(numbers) == int(moment):
            signal.raise_signal(signal.Signals[how])
        return call(self, operation, parameters)

    BaseClient._make_api_call = noting  # type: ignore[attr-defined]

if "CDK_CONTEXT_JSON" in os.environ:
    from s3commit.local import synth

    made = synth.synthesize

    def copied(project: Path, out: Path) -> Path:
        """A run removes its own."""
        digest = hashlib.sha256(os.environ["CDK_CONTEXT_JSON"].encode()).hexdigest()[:16]
        kept = made(project, project / ".s3commit" / f"assembly-{digest}")
        return Path(shutil.copytree(kept, out, symlinks=True, dirs_exist_ok=True))

    synth.synthesize = copied
