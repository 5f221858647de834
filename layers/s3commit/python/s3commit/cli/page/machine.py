"""The drawing of the state machine, its boxes marked by what an execution has done."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from markupsafe import Markup

# `make pictures` draws it, from the definition that is deployed.
DRAWING = Path(__file__).with_name("workflow.svg")
_NODE = re.compile(r'class="node">\n<title>(\w+)</title>')


@cache
def _drawing() -> str:
    """The picture as a part of a page. Its colours are attributes, and give way to a style's."""
    _, _, picture = DRAWING.read_text().partition("<svg ")
    sized = re.sub(r'width="\d+pt" height="\d+pt"', 'role="img" class="machine"', picture, count=1)
    return f"<svg {sized}"


def draw(did: Mapping[str, str]) -> Markup:
    """The picture; ``did`` has a word for each state that is to be marked, and for no other."""

    def mark(found: re.Match[str]) -> str:
        word = did.get(found[1])
        if word not in {"done", "now", "failed", "tried"}:
            return found[0]
        return f'class="node {word}">\n<title>{found[1]}: {word}</title>'

    return Markup(_NODE.sub(mark, _drawing()))  # noqa: S704 - the drawing's text and our words
