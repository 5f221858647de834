"""The numbers of docs/scale.md that are not ours to choose: published, measured or assumed.

Step Functions gives three regions (us-east-1, us-west-2, eu-west-1) more; these are the others'.
"""

from typing import Final, Self

_AWS: Final = "<https://docs.aws.amazon.com/"
PREFIXES: Final = f"{_AWS}AmazonS3/latest/userguide/optimizing-performance.html>"
QUOTAS: Final = f"{_AWS}step-functions/latest/dg/service-quotas.html>"
SCALING: Final = f"{_AWS}lambda/latest/dg/scaling-behavior.html>"
QUEUES: Final = f"{_AWS}lambda/latest/dg/services-sqs-scaling.html>"
EVENTS: Final = f"{_AWS}AmazonS3/latest/userguide/EventNotifications.html>"
ON_DEMAND: Final = f"{_AWS}amazondynamodb/latest/developerguide/on-demand-capacity-mode.html>"
PARTITIONS: Final = f"{_AWS}amazondynamodb/latest/developerguide/bp-partition-key-design.html>"
MEASURED: Final = "measured: `python -m bench.steps`"
NOWHERE: Final = "assumed: AWS publishes no figure"


class Fact(float):
    """A number that knows what it counts and how it is known: a page, a measurement, or neither."""

    what: str
    source: str

    def __new__(cls, value: float, what: str, source: str) -> Self:
        """Make it; ``source`` begins with "measured", "assumed", or is a page in brackets."""
        fact = super().__new__(cls, value)
        fact.what, fact.source = what, source
        return fact


# "At least 3,500 PUT/COPY/POST/DELETE or 5,500 GET/HEAD requests per second per partitioned
# prefix";
# "consistent small object latencies [...] of roughly 100-200 milliseconds".
S3_WRITES = Fact(3_500, "S3: writes a second below a prefix that is not split", PREFIXES)
S3_READS = Fact(5_500, "S3: reads a second below it", PREFIXES)
LATENCY = Fact(0.15, "S3: seconds of a small request; the middle of 0.1 to 0.2", PREFIXES)
# "Event notifications are delivered in seconds but can sometimes take a minute or longer".
EVENT = Fact(2, "seconds from S3 through SQS to Lambda", f"assumed; «in seconds»: {EVENTS}")
ACCOUNT = Fact(
    1_000,
    "Lambda: functions at once, of an account",
    f"{_AWS}lambda/latest/dg/lambda-concurrency.html>",
)
# "1,000 execution environment instances every 10 seconds (or 10,000 requests per second every 10
# seconds)".
NEW = Fact(1_000, "Lambda: new environments of a function in ten seconds", SCALING)
POLLERS = Fact(5, "Lambda: batches of a queue at once at first; 300 more each minute", QUEUES)
WHOLE = Fact(
    1_769,
    "Lambda: MB that buy a whole processor",
    f"{_AWS}lambda/latest/dg/configuration-memory.html>",
)
STARTED = Fact(150, "Step Functions: StartExecution a second, once 800 are used up", QUOTAS)
TRANSITIONS = Fact(800, "Step Functions: state transitions a second", QUOTAS)
MAP_RUNS = Fact(1_000, "Step Functions: open Map Runs; further ones wait", QUOTAS)
CHILDREN = Fact(10_000, "Step Functions: children of a Map Run at once", QUOTAS)
PAYLOAD = Fact(262_144, "Step Functions: bytes of an input or a result", QUOTAS)
TABLE_WRITES = Fact(4_000, "DynamoDB: write units a second of a new table", ON_DEMAND)
PARTITION_WRITES = Fact(1_000, "DynamoDB: write units a second of a partition", PARTITIONS)
# As others quote AWS's page, which a browser fills in.

COMPLETION = Fact(0.00151, "CPU seconds of a completion", MEASURED)
REQUEST = Fact(0.00145, "CPU seconds of a small request", MEASURED)
LISTED = Fact(0.0346, "CPU seconds of a page of 1,000 uploads", MEASURED)
VERIFIED = Fact(0.0306, "CPU seconds of VerifyManifests for 1,000 files", MEASURED)
PUBLISHED = Fact(0.0363, "CPU seconds of publishing 1,000 files", MEASURED)
COLD = Fact(
    1.16, "seconds of all cold functions of a job", "measured: `python -m bench --only cold`"
)

TRANSITION = Fact(0.05, "seconds of a state transition", NOWHERE)
MAP_RUN = Fact(1, "seconds until a Map Run begins, and after it", NOWHERE)
CHILD = Fact(0.1, "seconds of an Express child beside its function", NOWHERE)
ITEM = Fact(0.01, "seconds of a write to the ledger", "assumed; published: single-digit ms")
START = Fact(0.1, "seconds of a StartExecution", NOWHERE)
ALL: Final = tuple(one for one in globals().values() if isinstance(one, Fact))
