"""What the functions have logged of a job."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

from s3commit.aws.failures import translated

MOST_GROUPS: Final = 50  # one request
MOST_PAGES: Final = 5  # of a group; each is what CloudWatch looks through in a second or so
MOST_LINES: Final = 500
# Of a line of Powertools, what stands elsewhere, or says nothing of the job.
_LEFT_OUT: Final = {"level", "message", "step", "job_id", "timestamp", "location", "service"} | {
    *("execution", "cold_start", "xray_trace_id", "exception_name", "stack_trace"),
    *("function_name", "function_arn", "function_memory_size", "function_request_id"),
}


def read_logs(
    client: Any, prefix: str, job_id: str, since: float
) -> tuple[list[dict[str, str]], bool]:
    """The lines with the job's id, by time, of the groups with that prefix; whether that is all.

    Requests: one, and for each group as many as it takes to look through what it has of the time
    since then (seconds since 1970), five at most.
    https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html
    """
    found: list[dict[str, str]] = []
    asked = {"filterPattern": f'"{job_id}"', "startTime": int(since * 1000)}
    with translated(f"reading the logs {prefix}*"):
        groups = client.describe_log_groups(logGroupNamePrefix=prefix, limit=MOST_GROUPS)
        complete = "nextToken" not in groups
        for group in groups["logGroups"]:
            name = group["logGroupName"]
            pages = client.get_paginator("filter_log_events").paginate(logGroupName=name, **asked)
            looked_at = list(islice(pages, MOST_PAGES))
            complete &= not looked_at or "nextToken" not in looked_at[-1]
            found += [_line(name, event) for page in looked_at for event in page["events"]]
    found.sort(key=lambda line: line["at"])
    return found[:MOST_LINES], complete and len(found) <= MOST_LINES


def _line(group: str, event: dict[str, Any]) -> dict[str, str]:
    """Powertools' line of JSON, or another one as it is."""
    text, said = event["message"].strip(), None
    with suppress(ValueError):
        said = json.loads(text)
    said = said if isinstance(said, dict) and "message" in said else {"message": text}
    rest = [f"{name}={value}" for name, value in said.items() if name not in _LEFT_OUT and value]
    return {
        "at": datetime.fromtimestamp(event["timestamp"] / 1000, UTC).isoformat(),
        "function": str(said.get("function_name", group)),
        "level": str(said.get("level", "")),
        "step": str(said.get("step", "")),
        "text": " ".join([str(said["message"]), *rest]),
    }
