"""AWS's own language service over the synthesized definition of each variant."""

import json

from tests.engines.judges.tools import node, npm
from tests.engines.judges.variants import VARIANTS, Variant

SERVICE = "amazon-states-language-service@1.16.1"


def judge() -> tuple[str, list[str]]:
    """What was judged, and each diagnostic."""
    definitions = [json.dumps(Variant(one).definition(), indent=2) for one in VARIANTS.values()]
    said = node("states.cjs", npm(SERVICE), definitions)
    states = len(json.loads(definitions[0])["States"])
    pairs = zip(VARIANTS, said, strict=True)
    wrong = [f"{name}, {line}" for name, lines in pairs for line in lines]
    return f"{SERVICE}: {len(said)} definitions of {states} states", wrong
