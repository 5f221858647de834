"""Names and numbers that the stacks share with handlers and command. Imports nothing of ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

TABLE: Final = "S3COMMIT_TABLE"
LEDGER: Final = "S3COMMIT_LEDGER"  # the table's ARN, by which a bucket's owner is known
BUCKET: Final = "S3COMMIT_BUCKET"
STATE_MACHINE: Final = "S3COMMIT_STATE_MACHINE"
LEDGER_TTL_DAYS: Final = "S3COMMIT_LEDGER_TTL_DAYS"
REPLACE_BELOW: Final = "S3COMMIT_REPLACE_BELOW"
WORKERS: Final = "S3COMMIT_WORKERS"
PREFIXES: Final = "S3COMMIT_PREFIXES"  # that the functions have rights to; none: all
FRESH_TABLES: Final = "S3COMMIT_FRESH_TABLES"  # those with an alarm of their own; perhaps none
LISTENS: Final = "S3COMMIT_LISTENS"  # as the output
CATALOGS: Final = "S3COMMIT_CATALOGS"  # of the function that notifies them, alone
ENCRYPTION: Final = "S3COMMIT_ENCRYPTION"  # of the pipeline's own puts; none: the bucket's default
ENCRYPTION_KEY: Final = "S3COMMIT_ENCRYPTION_KEY"

# Set where the embedded runtime has the app synthesized: the parameters in cdk.json are those of a
# deployment on AWS, whose imported bucket and subnets are not here.
LOCAL: Final = "S3COMMIT_LOCAL"

# The stacks, and those of their outputs that the command reads.
STORAGE_STACK: Final = "S3CommitStorage"
PIPELINE_STACK: Final = "S3CommitPipeline"
BUCKET_OUTPUT: Final = "BucketName"
BUCKET_EXPORT: Final = "S3CommitBucketArn"  # and the deployment's name behind it
TABLE_OUTPUT: Final = "TableName"
BY_STATE: Final = "by-state"  # the table's index
STATE_MACHINE_OUTPUT: Final = "StateMachineArn"
VERSION_OUTPUT: Final = "Version"
CONCURRENCY_OUTPUT: Final = "LambdaConcurrency"
SWEEP_RULE_OUTPUT: Final = "SweepRule"
# The queues by what they take; that of committed jobs is there where catalogs are notified.
INBOXES: Final = ("Ingest", "Request", "Catalogs")
PAUSED: Final = ("Ingest", "Request")
# Which of them receives the events of objects whose keys end so.
NOTIFIED: Final = {".pendingset": "Ingest", "/_job.json": "Ingest", "/_request.json": "Request"}
LISTENS_OUTPUT: Final = "Listens"  # of each its queue's ARN and its rule, perhaps empty, as JSON
MAPPING_OUTPUTS: Final = {name: f"{name}Mapping" for name in INBOXES}
DEAD_LETTERS_OUTPUTS: Final = {name: f"{name}DeadLetters" for name in INBOXES}
CATALOG_ROLE_OUTPUT: Final = "CatalogRole"  # of that function, where it is deployed
PARAMETERS_OUTPUT: Final = "Parameters"  # those that were given, as JSON

ALARM: Final = "{}/{}"  # the stack's name, and the alarm's in docs/operations.md

SERVICE: Final = "s3commit"
METRICS_NAMESPACE: Final = "s3commit"  # and, behind a slash, the deployment's name

# Commits of a table that the deployer has listed: the one metric with a second dimension.
TABLE_COMMITS: Final = "TableCommits"
DIMENSION_TABLE: Final = "table"

# Metrics: their only dimension is the service; ids and prefixes are log fields. Each value of a
# dimension is a metric of its own, for 0.30 USD a month (https://aws.amazon.com/cloudwatch/pricing/),
# and a client with one prefix could make up any number of them.
JOBS_COMMITTED: Final = "JobsCommitted"
JOBS_ABORTED: Final = "JobsAborted"
JOBS_ROLLED_BACK: Final = "JobsRolledBack"
FILES_COMPLETED: Final = "FilesCompleted"
BYTES_COMMITTED: Final = "BytesCommitted"
REQUEST_TO_RESULT: Final = "RequestToResult"  # seconds of a committed job
MANIFESTS_RECORDED: Final = "ManifestsRecorded"
DOCUMENTS_REFUSED: Final = "DocumentsRefused"
JOBS_ABANDONED: Final = "JobsAbandoned"
JOBS_RESUMED: Final = "JobsResumed"
SWEEP_FAILURES: Final = "SweepFailures"

# The line that goes with a refused document, and the field that says below which prefix it is.
REFUSED_MESSAGE: Final = "document refused"
REFUSED_PREFIX: Final = "prefix"
# The line of a step, and for how many seconds the machine now waits: of a SEALED job, for others.
DONE_MESSAGE: Final = "step done"
PAUSE: Final = "pause"

EVENT_SOURCE: Final = "s3commit"
EVENT_DETAIL_TYPE: Final = "s3commit job ended"

# When the sweep takes something for left behind, unless a parameter says so.
SWEEP_LIMITS: Final = {"stuckMinutes": 15, "abandonedHours": 24, "retentionDays": 30}

# For which an event of a job comes again while an empty ledger heals: 25 minutes in which nothing
# is done (`core.jobs.healing`), and half an hour of its walk. A message that waits longer is put
# aside.
HEALING_SECONDS: Final = 3_600

# How many functions run in parallel. Nothing is reserved unless the deployer says so: an account
# whose quota is low has nothing that could be. Instead each source of calls has a limit of its own,
# and together they stay below what the deployment may use. A queue with a higher limit would have
# its messages throttled, and after five times put aside:
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html

# With so many workers, of `core.model.limits.COMPLETE_WORKERS` completions each, one job stays
# below what S3 takes below a prefix; more would meet 503 (docs/scale.md has the arithmetic).
MOST_WORKERS: Final = 40
MOST_REQUESTS: Final = 5
MOST_MANIFESTS: Final = 20
# The least that AWS accepts for a queue.
LEAST_OF_A_QUEUE: Final = 2
# The steps of jobs at work, and the sweep's.
STEPS: Final = 3

# Half of what an ordinary account may run; the other half is other people's.
DEFAULT: Final = 500
LEAST: Final = 2 * LEAST_OF_A_QUEUE + 1 + STEPS


class Catalog(NamedTuple):
    """A table of the Glue Data Catalog and its location, as the parameter ``catalogs`` says."""

    prefix: str
    table: str
    drops_empty: bool  # a partition goes from the catalog with its last file

    @classmethod
    def of(cls, parameter: str) -> Catalog:
        """Read ``sales/=analytics.sales`` or ``sales/=analytics.sales dropEmpty``."""
        prefix, _, table = parameter.rpartition("=")
        return cls(prefix, table.partition(" ")[0], " " in table)

    def rights(self, arn: str) -> tuple[list[str], list[str]]:
        """The actions on the table, and on which ARNs; ``arn`` is how those of Glue begin.

        https://docs.aws.amazon.com/glue/latest/dg/glue-specifying-resource-arns.html
        """
        database, _, table = self.table.partition(".")
        drops = ["glue:GetPartitions", "glue:BatchDeletePartition"] if self.drops_empty else []
        places = ("catalog", f"database/{database}", f"table/{database}/{table}")
        return (
            ["glue:GetTable", "glue:BatchCreatePartition", *drops],
            [f"{arn}:{place}" for place in places],
        )


@dataclass(frozen=True, slots=True)
class Shares:
    """Limits of concurrent calls: for requests, for manifests, and for the units of all jobs."""

    requests: int
    manifests: int
    workers: int


def shares(total: int) -> Shares:
    """Share out ``total`` concurrent functions, at least `LEAST`."""
    requests = min(MOST_REQUESTS, max(LEAST_OF_A_QUEUE, total // 5))
    manifests = min(MOST_MANIFESTS, max(LEAST_OF_A_QUEUE, total * 3 // 10))
    return Shares(requests, manifests, total - requests - manifests - STEPS)
