"""Wherever no event arrives, the sweep, `doctor`, `status` and a writer say so."""

import importlib
from itertools import product
from typing import Any

import pytest

from s3commit.aws import env
from s3commit.aws.notifications import SUFFIXES, Ear, unheard
from s3commit.core.model.errors import NeedsOperatorError
from s3commit.writer.connect import has_pipeline
from tests.cli.account import Account
from tests.cli.support import TABLE, Desk
from tests.core.world import World
from tests.fakes.executions import MemoryExecutions
from tests.lambdas.conftest import ENVIRONMENT, Context
from tests.writer.support import QUEUE, notifying

QUEUES = ("ours", "foreign", "deleted", "none")  # which the bucket notifies
RULES = ("on", "off", "gone")
# No rule is looked at where the bucket notifies the queues itself.
CASES = [
    *product(["notifications"], QUEUES, (True, False), RULES[:1]),
    *product(["eventbridge"], QUEUES, (True, False), RULES),
]


def arrives(mode: str, queues: str, rules: str, *, switch: bool) -> bool:
    if mode == "notifications":
        return queues == "ours"
    return switch and rules == "on" and queues != "deleted"


def swept(account: Account, bucket: str, told: str) -> str:
    """What a sweep of that deployment fails with; empty if it does not."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**ENVIRONMENT, env.LISTENS: told}.items():
            patch.setenv(name, value)
        loaded: Any = importlib.import_module("lambdas.sweep")
        parts = {"ports": World().ports, "machine": MemoryExecutions(), "heal": lambda *_: 0}
        given = {
            **parts,
            "bucket": bucket,
            "client": account.client("s3"),
            "connect": account.connect,
        }
        for name, value in given.items():
            patch.setattr(loaded, name, value)
        try:
            loaded.handler(env.SWEEP_LIMITS, Context())
        except NeedsOperatorError as error:
            assert error.code == "NOT_NOTIFIED"
            return str(error)
        return ""


@pytest.mark.parametrize(("mode", "queues", "switch", "rules"), CASES)
def test_lost_events_are_heard(
    account: Account, desk: Desk, mode: str, queues: str, switch: bool, rules: str
) -> None:
    rule = account.name if mode == "eventbridge" else ""
    listens = account.listen(rule)
    named = {env.TABLE_OUTPUT: TABLE, env.BUCKET_OUTPUT: account.name}
    account.deploy(env.STORAGE_STACK, **named, **listens)
    bucket = account.make_bucket(
        *(SUFFIXES if queues != "none" else ()),
        event_bridge=switch,
        queue=f"{account.queue}-foreign" if queues == "foreign" else None,
    )
    if queues == "deleted":
        sqs = account.client("sqs")
        sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=account.name)["QueueUrl"])
    if rules != "gone":
        events = account.client("events")
        events.put_rule(Name=account.name, ScheduleExpression="rate(1 hour)")
        if rules == "off":
            events.disable_rule(Name=account.name)
    lost = not arrives(mode, queues, rules, switch=switch)
    assert bool(swept(account, bucket, listens[env.LISTENS_OUTPUT])) is lost
    verdict, text = account.ask()["notifications"]
    assert (verdict, "no event arrives" in text) == ("fix" if lost else "ok", lost), text
    name = ["--name", account.name]
    assert bool(desk.json("status", *name)["unheard"]) is lost
    assert ("events: no event arrives" in desk.run("status", *name).stderr) is lost
    # A writer sees the bucket alone.
    assert has_pipeline(account.client("s3"), bucket) is (switch or queues != "none")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "change",
    [
        {"QueueArn": "arn:other"},
        {"Events": ["s3:ObjectRemoved:*"]},
        {"Filter": {"Key": {"FilterRules": [{"Name": "Suffix", "Value": "/other.json"}]}}},
        {"Filter": {"Key": {"FilterRules": [{"Name": "Prefix", "Value": "sales/"}]}}},
    ],
)
def test_each_kind_of_document_is_heard_by_itself(suffix: str, change: dict[str, Any]) -> None:
    ears = {name: Ear(QUEUE) for name in env.PAUSED}
    queues = notifying(*SUFFIXES)["QueueConfigurations"]
    assert isinstance(queues, list)
    assert unheard({"QueueConfigurations": queues}, ears) == {}
    changed = [
        one | (change if each == suffix else {}) for each, one in zip(SUFFIXES, queues, strict=True)
    ]
    assert list(unheard({"QueueConfigurations": changed}, ears)) == [suffix]
