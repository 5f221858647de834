"""Names that the stacks and the handlers share. Imports nothing: synth reads it too."""

from __future__ import annotations

from typing import Final

TABLE: Final = "S3COMMIT_TABLE"
BUCKET: Final = "S3COMMIT_BUCKET"
STATE_MACHINE: Final = "S3COMMIT_STATE_MACHINE"
LEDGER_TTL_DAYS: Final = "S3COMMIT_LEDGER_TTL_DAYS"
REPLACE_BELOW: Final = "S3COMMIT_REPLACE_BELOW"

# Read by Powertools itself, not by our settings.
POWERTOOLS_SERVICE_NAME: Final = "POWERTOOLS_SERVICE_NAME"
POWERTOOLS_METRICS_NAMESPACE: Final = "POWERTOOLS_METRICS_NAMESPACE"
POWERTOOLS_LOG_LEVEL: Final = "POWERTOOLS_LOG_LEVEL"

# The stacks, and those of their outputs that the command reads.
STORAGE_STACK: Final = "S3CommitStorage"
PIPELINE_STACK: Final = "S3CommitPipeline"
BUCKET_OUTPUT: Final = "BucketName"
VERSION_OUTPUT: Final = "Version"
CONCURRENCY_OUTPUT: Final = "LambdaConcurrency"

SERVICE: Final = "s3commit"
METRICS_NAMESPACE: Final = "s3commit"

# Metrics: their only dimension is the service; ids and prefixes are log fields. Each value of a
# dimension is a metric of its own, for 0.30 USD a month (https://aws.amazon.com/cloudwatch/pricing/),
# and whoever may write below one prefix could make up any number of them.
JOBS_COMMITTED: Final = "JobsCommitted"
JOBS_ABORTED: Final = "JobsAborted"
JOBS_ROLLED_BACK: Final = "JobsRolledBack"
FILES_COMPLETED: Final = "FilesCompleted"
BYTES_COMMITTED: Final = "BytesCommitted"
UPLOADS_ABORTED: Final = "UploadsAborted"
MANIFESTS_RECORDED: Final = "ManifestsRecorded"
DOCUMENTS_REFUSED: Final = "DocumentsRefused"
JOBS_ABANDONED: Final = "JobsAbandoned"
JOBS_RESUMED: Final = "JobsResumed"
SWEEP_FAILURES: Final = "SweepFailures"

# The line that goes with a refused document, and the field that says below which prefix it lies.
REFUSED_MESSAGE: Final = "document refused"
REFUSED_PREFIX: Final = "prefix"

EVENT_SOURCE: Final = "s3commit"
EVENT_DETAIL_TYPE: Final = "s3commit job ended"
