"""The small worlds that are explored to the end: ``python -m tests.engines.explorer.worlds``."""

import argparse
import sys
import time

from s3commit.core.model.destination import Conflict
from tests.engines.explorer.explorer import Explorer
from tests.engines.explorer.small import Rules, spec, undo
from tests.engines.sim.scheduler import Violation

APPEND, FAIL, REPLACE = Conflict.APPEND, Conflict.FAIL, Conflict.REPLACE

# Two tasks each, of which each has two attempts: one that counts, and a zombie. Those of EVERYDAY
# are explored by `make test`; the others take minutes, and `make test-long` explores them.
EVERYDAY: dict[str, Rules] = {
    "one job, two executions, an upload lost": Rules((spec(1),), (2,), losses=1),
    "one job that replaces, two executions": Rules((spec(1, REPLACE),), (2,)),
    "replace beside replace": Rules((spec(1, REPLACE), spec(2, REPLACE)), (1, 1)),
    "replace, and a later replace": Rules(
        (spec(1, REPLACE), spec(2, REPLACE)), (2, 1), zombies=False, apart=60
    ),
    "fail beside append": Rules((spec(1, FAIL), spec(2)), (1, 1), old=False),
    "two undos of one job": Rules(
        (undo(2), undo(3)), (2, 1), zombies=False, before=(spec(1, REPLACE, idempotency_key="k"),)
    ),
    "one key, two jobs": Rules(
        (spec(1, idempotency_key="k"), spec(2, idempotency_key="k")), (1, 1)
    ),
}
LONG: dict[str, Rules] = {
    "undo beside append, two executions of the undo": Rules(
        (undo(2), spec(3)), (2, 1), zombies=False, before=(spec(1, REPLACE),)
    ),
    "undo beside replace": Rules((undo(2), spec(3, REPLACE)), (1, 1), before=(spec(1, REPLACE),)),
    "undo, and a job with the key that it frees": Rules(
        (undo(2), spec(3, idempotency_key="k")),
        (2, 1),
        zombies=False,
        before=(spec(1, REPLACE, idempotency_key="k"),),
    ),
    "append beside append": Rules((spec(1), spec(2)), (1, 1)),
    "replace beside append": Rules((spec(1, REPLACE), spec(2)), (1, 1)),
    "one job, three executions": Rules((spec(1),), (3,), zombies=False),
    "replace beside replace, two executions of the first": Rules(
        (spec(1, REPLACE), spec(2, REPLACE)), (2, 1)
    ),
    "append beside append, two executions of the first, an upload lost": Rules(
        (spec(1), spec(2)), (2, 1), zombies=False, losses=1
    ),
    "one key, two jobs, two executions of the first, an upload lost": Rules(
        (spec(1, idempotency_key="k"), spec(2, idempotency_key="k")),
        (2, 1),
        zombies=False,
        losses=1,
    ),
    "call by call: replace beside replace": Rules(
        (spec(1, REPLACE), spec(2, REPLACE)), (1, 1), zombies=False, by_call=True
    ),
    "call by call: replace beside append": Rules(
        (spec(1, REPLACE), spec(2)), (1, 1), zombies=False, by_call=True
    ),
    "call by call: one job, two executions, an upload lost": Rules(
        (spec(1),), (2,), zombies=False, losses=1, by_call=True
    ),
}


def main() -> int:
    """Explore all, or those that are named in part; print the counts."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.engines.explorer.worlds", description=__doc__
    )
    parser.add_argument("only", nargs="?", default="", help="those whose name contains this")
    states = 0
    for name, rules in {**EVERYDAY, **LONG}.items():
        if parser.parse_args().only not in name:
            continue
        started = time.monotonic()
        explorer = Explorer(rules)
        try:
            explorer.run()
        except Violation as violation:
            print(f"{name}: {violation}")
            return 1
        states += explorer.states
        took = time.monotonic() - started
        print(
            f"{name}: {explorer.states} states, {explorer.moves} moves, {took:.0f} s,"
            f" ends: {explorer.ends}",
            flush=True,
        )
    print(f"{states} states")
    return 0


if __name__ == "__main__":
    sys.exit(main())
