"""Names that the stacks and the handlers share. Imports nothing: synth reads it too."""

from __future__ import annotations

from typing import Final

TABLE: Final = "S3COMMIT_TABLE"
STATE_MACHINE: Final = "S3COMMIT_STATE_MACHINE"

SERVICE: Final = "s3commit"
METRICS_NAMESPACE: Final = "s3commit"

EVENT_SOURCE: Final = "s3commit"
EVENT_DETAIL_TYPE: Final = "s3commit job ended"
