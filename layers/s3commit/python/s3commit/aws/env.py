"""Names that the stacks and the handlers share. Imports nothing: synth reads it too."""

from __future__ import annotations

from typing import Final

TABLE: Final = "S3COMMIT_TABLE"
STATE_MACHINE: Final = "S3COMMIT_STATE_MACHINE"
LEDGER_TTL_DAYS: Final = "S3COMMIT_LEDGER_TTL_DAYS"

# Read by Powertools itself, not by our settings.
POWERTOOLS_SERVICE_NAME: Final = "POWERTOOLS_SERVICE_NAME"
POWERTOOLS_METRICS_NAMESPACE: Final = "POWERTOOLS_METRICS_NAMESPACE"
POWERTOOLS_LOG_LEVEL: Final = "POWERTOOLS_LOG_LEVEL"

SERVICE: Final = "s3commit"
METRICS_NAMESPACE: Final = "s3commit"

# Metrics: their only dimension is the service, ids are log fields (an id as a dimension costs a
# metric of its own).
JOBS_COMMITTED: Final = "JobsCommitted"
JOBS_ABORTED: Final = "JobsAborted"
JOBS_ROLLED_BACK: Final = "JobsRolledBack"
FILES_COMPLETED: Final = "FilesCompleted"
BYTES_COMMITTED: Final = "BytesCommitted"
UPLOADS_ABORTED: Final = "UploadsAborted"
MANIFESTS_RECORDED: Final = "ManifestsRecorded"
MANIFESTS_REFUSED: Final = "ManifestsRefused"
JOBS_ABANDONED: Final = "JobsAbandoned"
JOBS_RESUMED: Final = "JobsResumed"
BYTES_FREED: Final = "BytesFreed"
S3A_BYTES_LEFT: Final = "S3ABytesLeft"
SWEEP_FAILURES: Final = "SweepFailures"

EVENT_SOURCE: Final = "s3commit"
EVENT_DETAIL_TYPE: Final = "s3commit job ended"
