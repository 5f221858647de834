"""The events of a bucket, and if they reach the deployment.

It is judged by the way this deployment listens: what else the bucket sends, and to whom, proves
nothing. `unheard` is the one rule, for the sweep, `doctor`, `status` and the writers.
https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketNotificationConfiguration.html
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from s3commit.aws.clients import S3Client
from s3commit.aws.env import NOTIFIED
from s3commit.aws.failures import translated
from s3commit.core.formats.layout import REQUEST_FILE
from s3commit.core.model.errors import AccessError, NotFoundError, TransientError

REQUEST_SUFFIX: Final = f"/{REQUEST_FILE}"
SUFFIXES: Final = tuple(NOTIFIED)
EVENT_BRIDGE: Final = "EventBridgeConfiguration"  # there, and empty, if all events go there
_PUTS: Final = {"s3:ObjectCreated:*", "s3:ObjectCreated:Put"}


class Ear(NamedTuple):
    """A queue of the deployment: its ARN, and which rule of EventBridge fills it.

    ``rule`` is empty if the bucket itself notifies the queue. ``wrong`` says why nothing can come
    in, whatever the bucket sends; ``unseen`` why that was not looked at.
    """

    queue: str
    rule: str = ""
    wrong: str = ""
    unseen: str = ""


def listening(connect: Callable[[str], Any], told: str) -> dict[str, Ear]:
    """The deployment's queues by name, each looked at with its rule: two requests a queue.

    ``told`` is the stack's output of `s3commit.aws.env.LISTENS_OUTPUT`. A queue or rule that the
    caller has no right to see, or whose endpoint can't be reached, counts as being there.
    """
    return {name: _look(connect, *each) for name, each in json.loads(told).items()}


def _look(connect: Callable[[str], Any], queue: str, rule: str) -> Ear:
    name = queue.rpartition(":")[2]
    unseen: list[str] = []
    asked: dict[str, Callable[[], Any]] = {
        f"queue {name}": lambda: connect("sqs").get_queue_url(QueueName=name)
    }
    if rule:
        asked[f"rule {rule}"] = lambda: connect("events").describe_rule(Name=rule)
    for what, ask in asked.items():
        try:
            with translated(f"looking at {what}"):
                found = ask()
        except NotFoundError:
            return Ear(queue, rule, wrong=f"{what} was deleted")
        except (AccessError, TransientError) as error:
            unseen.append(error.message)
        else:
            if found.get("State") == "DISABLED":
                return Ear(queue, rule, wrong=f"{what} is disabled")
    return Ear(queue, rule, unseen="; ".join(unseen))


def unheard(answer: Mapping[str, Any], ears: Mapping[str, Ear] | None) -> dict[str, str]:
    """The suffixes of keys whose events do not reach the deployment, each with the reason.

    ``answer`` is `configured`'s. Without ``ears``, as for a writer, who sees no deployment, any
    queue that the bucket notifies counts, and so does EventBridge.
    """
    found = {suffix: _why(answer, suffix, ears) for suffix in SUFFIXES}
    return {suffix: why for suffix, why in found.items() if why}


def _why(answer: Mapping[str, Any], suffix: str, ears: Mapping[str, Ear] | None) -> str:
    bridge, queues = EVENT_BRIDGE in answer, answer.get("QueueConfigurations", ())
    if ears is None:
        there = bridge or any(suffix_of(one) == suffix and _notifies(one, suffix) for one in queues)
        return "" if there else "the bucket notifies no queue of them"
    ear = ears[NOTIFIED[suffix]]
    if ear.wrong:
        return ear.wrong
    if ear.rule:
        return "" if bridge else "the bucket sends no events to EventBridge"
    own = [one for one in queues if one["QueueArn"] == ear.queue and _notifies(one, suffix)]
    return "" if own else f"the bucket does not notify {ear.queue} of them"


def told(found: Mapping[str, str]) -> str:
    """The findings of `unheard`, in words."""
    why = "; ".join(dict.fromkeys(found.values()))
    return f"no event arrives of keys that end in {' and '.join(found)}: {why}"


def configured(client: S3Client, bucket: str) -> dict[str, Any]:
    """The bucket's GetBucketNotificationConfiguration.

    Raises `NotFoundError` if there is no such bucket, `AccessError` if the caller has no right to
    it.
    """
    with translated(f"reading the notifications of bucket {bucket}"):
        return dict(client.get_bucket_notification_configuration(Bucket=bucket))


def _notifies(one: Mapping[str, Any], suffix: str) -> bool:
    """True if a notification is of all keys with that suffix."""
    narrowed = any(rule["Name"].lower() == "prefix" and rule["Value"] for rule in _filters(one))
    return not narrowed and suffix.endswith(suffix_of(one)) and not _PUTS.isdisjoint(one["Events"])


def suffix_of(configuration: Mapping[str, Any]) -> str:
    """The suffix that one notification filters by; empty if it takes all keys."""
    named = (one["Value"] for one in _filters(configuration) if one["Name"].lower() == "suffix")
    return next(named, "")


def _filters(configuration: Mapping[str, Any]) -> list[dict[str, str]]:
    return list(configuration.get("Filter", {}).get("Key", {}).get("FilterRules", []))
