"""The log lines of the functions about a job."""

import json
import re
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

from s3commit.aws.failures import translated
from s3commit.core.model.moments import rfc3339

MOST_GROUPS, MOST_PAGES, MOST_LINES = 50, 5, 500  # in one request; of a group; in all
# Members of a line of Powertools that say nothing of the job, or that are shown elsewhere.
_LEFT_OUT: Final = re.compile(
    "level|message|step|job_id|timestamp|location|service|execution|cold_start|function_.+|xray_.+"
    "|exception_name|stack_trace"
)
Line = dict[str, str]


def read_logs(client: Any, prefix: str, job_id: str, since: float) -> tuple[list[Line], bool]:
    """The lines with the job's id, by time, of the groups with that prefix; whether that is all.

    Requests: one, and for each group as many as it takes to look through what it has of the time
    since then (seconds since 1970), five at most.
    https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html
    """
    found: list[Line] = []
    asked = {"filterPattern": f'"{job_id}"', "startTime": int(since * 1000)}
    with translated(f"reading the logs {prefix}*"):
        groups = client.describe_log_groups(logGroupNamePrefix=prefix, limit=MOST_GROUPS)
        complete = "nextToken" not in groups
        for name in (group["logGroupName"] for group in groups["logGroups"]):
            pages = client.get_paginator("filter_log_events").paginate(logGroupName=name, **asked)
            looked_at = list(islice(pages, MOST_PAGES))
            complete &= "nextToken" not in looked_at[-1]
            found += [_line(name, event) for page in looked_at for event in page["events"]]
    found.sort(key=lambda line: line["at"])
    return found[:MOST_LINES], complete and len(found) <= MOST_LINES


def _line(group: str, event: dict[str, Any]) -> Line:
    """Powertools' line of JSON, or another one as it is."""
    said: Any = None
    with suppress(ValueError):
        said = json.loads(event["message"])
    if not isinstance(said, dict):
        said = {"message": event["message"].strip()}
    left = [one for one in said if not _LEFT_OUT.fullmatch(one)]
    text = " ".join([str(said.get("message", "")), *(f"{one}={said[one]}" for one in left)])
    at = rfc3339(datetime.fromtimestamp(event["timestamp"] / 1000, UTC))
    named = {name: str(said.get(name, "")) for name in ("level", "step")}
    return {"at": at, "group": group, "text": text, **named}
