"""Prints the picture of the states in docs/protocol.md, from the table in the code."""

import sys

from s3commit.core.model.states import ENDED, TRANSITIONS, JobState


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {JobState.OPEN}"]
    for source, targets in TRANSITIONS.items():
        lines += [f"    {source} --> {target}" for target in sorted(targets)]
    lines += [f"    {state} --> [*]" for state in TRANSITIONS if state in ENDED]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(diagram() + "\n")
