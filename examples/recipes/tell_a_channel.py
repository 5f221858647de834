"""Tell a chat channel of each job that was not committed: a Lambda function.

The rule's pattern is ``{"source": ["s3commit"], "detail": {"outcome": [{"anything-but":
"COMMITTED"}]}}``.
The environment has the WEBHOOK, an address of Slack's or another that takes ``{"text": "..."}``.

Rights: none. The function needs a way to the internet.
"""

import json
import os
from shlex import quote
from typing import Any
from urllib.request import Request, urlopen


def handler(event: dict[str, Any], _context: object) -> None:
    """Post one line. An error of the webhook is raised, so that Lambda tries again.

    A rerun whose rows an earlier job with its key has committed is no failure.
    """
    detail = event["detail"]
    if detail["code"] == "ALREADY_COMMITTED":
        return
    text = (
        f"{detail['outcome']} {detail['code']}: {detail['table']} has none of the job's files."
        f" Why: s3commit show {quote('s3://' + detail['bucket'] + '/' + detail['directory'])}"
    )
    body = json.dumps({"text": text}).encode()
    address = os.environ["WEBHOOK"]
    with urlopen(Request(address, body, {"Content-Type": "application/json"}), timeout=10):
        pass
