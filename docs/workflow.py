"""Prints the state machine of a job for Graphviz, from its definition: `make pictures`."""

import sys
from collections.abc import Iterator
from typing import Any, Final

from stacks.definition import definition
from stacks.functions import FUNCTIONS

SHAPES: Final = {
    "Task": 'shape=box, fillcolor="#e3edf8", color="#2563a8"',
    "Map": 'shape=box, fillcolor="#e3edf8", color="#2563a8", peripheries=2',
    "Choice": 'shape=hexagon, fillcolor="#f3f5f8", color="#747d88", margin="0.11,0"',
    "Wait": 'shape=box, style="rounded,filled", fillcolor="#fdf3dc", color="#b07d1a"',
    "Succeed": 'shape=ellipse, fillcolor="#e3f1e6", color="#5a9367"',
}
HEAD: Final = """digraph "The states of a job" {
  graph [bgcolor=transparent, pad=0.2, nodesep=0.25, ranksep=0.35]
  node [fontname="Helvetica,Arial,sans-serif", fontsize=11]
  node [style=filled, height=0.35, margin="0.18,0.06"]
  edge [fontname="Helvetica,Arial,sans-serif", fontsize=9, arrowsize=0.7]
  edge [color="#747d88", fontcolor="#747d88"]
"""
# It leads to `Superseded` from nearly every state: drawn from the first one alone.
EVERYWHERE, FIRST = "LostRaceError", "SealJob"


def states() -> dict[str, Any]:
    """The states by name, as they are deployed."""
    found: dict[str, Any] = definition(dict.fromkeys(FUNCTIONS, "arn"))["States"]
    return found


def edges() -> Iterator[tuple[str, str, str]]:
    """From where, to where, by which error or none; once each."""
    for name, state in states().items():
        ways = [one["Next"] for one in (state, *state.get("Choices", ())) if "Next" in one]
        for following in dict.fromkeys([*ways, *filter(None, [state.get("Default")])]):
            yield name, following, ""
        for catch in state.get("Catch", ()):
            if name == FIRST or catch["ErrorEquals"] != [EVERYWHERE]:
                yield name, catch["Next"], ", ".join(catch["ErrorEquals"])


def dot() -> str:
    """The picture in Graphviz's language; of the edges to a state one has the error's name."""
    named = {(there, error): here for here, there, error in edges()}
    boxes = (f"  {name} [{SHAPES[state['Type']]}]" for name, state in states().items())
    lines = (
        f"  {here} -> {there} [style={'dashed' if error else 'solid'},"
        f' label="{error * (named[there, error] == here)}"]'
        for here, there, error in edges()
    )
    return HEAD + "\n".join([*boxes, *lines, "}\n"])


if __name__ == "__main__":
    sys.stdout.write(dot())
