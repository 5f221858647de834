"""Notes each call of AWS that a Python program makes, and ends the program at one of them.

Python imports a module of this name at its start. Each line has service, operation and the end of
the user agent.
"""

import itertools
import os
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
