"""The function of the tests: does what its event says."""

import importlib
import json
import logging
import os
import sys
import time
from typing import Any

Event = dict[str, Any]
logging.getLogger().setLevel("INFO")


class TransientError(Exception):
    pass


def handler(event: Event, context: Any) -> Any:
    do = event.get("do", "echo")
    if do == "raise":
        raise TransientError(event["message"])
    if do == "exit":
        os._exit(event["status"])
    if do == "sleep":
        time.sleep(event["seconds"])
        return {"slept": event["seconds"]}
    if do == "describe":
        return {"pid": os.getpid(), "environment": dict(os.environ), "path": sys.path}
    if do == "import":
        return {"file": importlib.import_module(event["name"]).__file__}
    if do == "log":
        print("printed line")
        logging.info("an info line")
        logging.error("an error line")
        return None
    return {"echo": event}


def batch(event: Event, context: Any) -> Any:
    failures = []
    for record in event["Records"]:
        body = json.loads(record["body"])
        if body.get("fail"):
            failures.append({"itemIdentifier": record["messageId"]})
    print(json.dumps({"batch": event["Records"]}))
    return {"batchItemFailures": failures}
