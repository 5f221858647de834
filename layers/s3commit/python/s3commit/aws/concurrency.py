"""How many Lambda functions of the pipeline run at once; the stacks and the command read it.

Nothing is reserved: an account whose quota is low has nothing that could be. Instead each source
of calls has a limit of its own, and together they stay below what the deployment may use. A queue
with a higher limit would have its messages throttled, and after five times put aside:
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# With so many workers, of `core.model.limits.COMPLETE_WORKERS` completions each, one job stays
# below what S3 takes below a prefix; more would meet 503 (docs/operations.md has the arithmetic).
MOST_WORKERS: Final = 40
MOST_REQUESTS: Final = 5
MOST_MANIFESTS: Final = 20
# AWS takes no less for a queue.
LEAST_OF_A_QUEUE: Final = 2
# The steps of jobs at work, and the sweep's.
STEPS: Final = 3

FULL: Final = MOST_REQUESTS + MOST_MANIFESTS + MOST_WORKERS + STEPS
LEAST: Final = 2 * LEAST_OF_A_QUEUE + 1 + STEPS


@dataclass(frozen=True, slots=True)
class Shares:
    """At most so many calls at once: for requests, for manifests, and for the units of a job."""

    requests: int
    manifests: int
    workers: int


def shares(total: int) -> Shares:
    """Share out ``total`` functions at once, at least `LEAST`; more than `FULL` are not used."""
    requests = min(MOST_REQUESTS, max(LEAST_OF_A_QUEUE, total // 5))
    manifests = min(MOST_MANIFESTS, max(LEAST_OF_A_QUEUE, total * 3 // 10))
    return Shares(requests, manifests, min(MOST_WORKERS, total - requests - manifests - STEPS))
