"""Where a search that is not told begins."""

import random


def first_seed(given: int | None) -> int:
    """The seed that was given, or one by chance: else each search would look at the same again."""
    seed = given if given is not None else random.SystemRandom().randrange(10**9)
    print(f"from seed {seed} on", flush=True)
    return seed
