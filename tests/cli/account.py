"""An account on moto that ``s3commit doctor`` looks at."""

import itertools
import json
from functools import cache
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import boto3

from s3commit.aws import env
from s3commit.cli.deployment import Deployment
from s3commit.cli.doctor import CHECKS, examine
from s3commit.cli.session import Session
from tests.conftest import REGION
from tests.lake import ignoring_etags

_NUMBERS = itertools.count()


def _new_client(service: str, endpoint: str) -> Any:
    return boto3.client(service, region_name=REGION, endpoint_url=endpoint)  # type: ignore[call-overload]


_client = cache(_new_client)  # to make one takes longer than most requests


class Account:
    """An account on moto; what moto lacks of Lambda and IAM, and errors, are answered here."""

    def __init__(self, endpoint: str, session: Session) -> None:
        self.session = session
        self.endpoint = endpoint
        self.name = f"doctor{next(_NUMBERS)}"
        self.queue = f"arn:aws:sqs:{REGION}:123456789012:{self.name}"
        self.free = 1000
        self.lacking: set[str] = set()
        self.iam = "https://iam.amazonaws.com"  # whose answers of a role's rights these are
        self.answers: dict[str, Any] = {}  # by the operation that gets one from here
        self.owner = "123456789012"  # of the bucket
        self.ignored = ""  # of the two deletes one whose etag the store ignores
        self.calls: list[str] = []
        self._connected: dict[tuple[Any, ...], Any] = {}

    def client(self, service: str) -> Any:
        return _client(service, self.endpoint)

    def connect(self, service: str) -> Any:
        how = (service, self.ignored, self.iam, "SimulatePrincipalPolicy" in self.answers)
        if how not in self._connected:
            self._connected[how] = self._connect(service)
        return self._connected[how]

    def _connect(self, service: str) -> Any:
        client = _new_client(service, self.endpoint)
        if service == "s3" and self.ignored:
            ignoring_etags(client, self.ignored)
        client.meta.events.register("before-call", self._answer)
        if service == "iam":
            client.meta._endpoint_url = self.iam
        if service == "iam" and "SimulatePrincipalPolicy" not in self.answers:
            client.simulate_principal_policy = self._simulate
        return client

    def refuse(self, operation: str, code: str = "AccessDenied") -> None:
        """Have AWS refuse the operation from now on."""
        self.answers[operation] = {"Error": {"Code": code, "Message": "not allowed"}}

    def _simulate(self, ActionNames: list[str], **_asked: Any) -> Any:  # noqa: N803 - AWS's
        decided = {True: "implicitDeny", False: "allowed"}
        found = [
            {"EvalActionName": action, "EvalDecision": decided[action in self.lacking]}
            for action in ActionNames
        ]
        return {"EvaluationResults": found}

    def _answer(self, model: Any, params: Any, **_parameters: Any) -> Any:
        self.calls.append(model.name)
        if params["headers"].get("x-amz-expected-bucket-owner", self.owner) != self.owner:
            return SimpleNamespace(status_code=403), {"Error": {"Code": "403"}}
        limit = {"ConcurrentExecutions": self.free, "UnreservedConcurrentExecutions": self.free}
        answers = {"GetAccountSettings": {"AccountLimit": limit}, **self.answers}
        answer = answers.get(model.name)
        if answer is None:
            return None
        return SimpleNamespace(status_code=403 if "Error" in answer else 200), answer

    def left(self) -> tuple[int, int]:
        """How many objects and open uploads there are."""
        s3 = self.client("s3")
        uploads = s3.list_multipart_uploads(Bucket=self.name).get("Uploads", [])
        return s3.list_objects_v2(Bucket=self.name)["KeyCount"], len(uploads)

    def deploy(self, stack: str, **outputs: str) -> None:
        """A stack with these outputs."""
        template = {
            "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
            "Outputs": {name: {"Value": value} for name, value in outputs.items()},
        }
        stacks, name = self.client("cloudformation"), f"{stack}-{self.name}"
        stacks.create_stack(StackName=name, TemplateBody=json.dumps(template))

    def listen(self, rule: str = "") -> dict[str, str]:
        """The output by which a stack says that the queue of the account's name is its own."""
        self.client("sqs").create_queue(QueueName=self.name)
        listens = {name: [self.queue, rule] for name in env.PAUSED}
        return {env.LISTENS_OUTPUT: json.dumps(listens)}

    def make_bucket(
        self, *suffixes: str, event_bridge: bool = False, queue: str | None = None
    ) -> str:
        """A bucket that notifies a queue, the account's own if no other is named."""
        s3 = self.client("s3")
        s3.create_bucket(Bucket=self.name, CreateBucketConfiguration={"LocationConstraint": REGION})
        queue = queue or self.queue
        told: dict[str, Any] = {"EventBridgeConfiguration": {}} if event_bridge else {}
        for suffix in suffixes:
            rules = [{"Name": "suffix", "Value": suffix}] if suffix else []
            key = {"Filter": {"Key": {"FilterRules": rules}}} if rules else {}
            one = {"QueueArn": queue, "Events": ["s3:ObjectCreated:*"], **key}
            told.setdefault("QueueConfigurations", []).append(one)
        s3.put_bucket_notification_configuration(Bucket=self.name, NotificationConfiguration=told)
        s3.put_bucket_lifecycle_configuration(
            Bucket=self.name, LifecycleConfiguration={"Rules": [aborting(7)]}
        )
        return self.name

    def finding(self, check: str, **more: Any) -> tuple[str, str]:
        """What one check of `doctor` says. The others are not run: each takes some requests."""
        with patch.dict(CHECKS, {check: CHECKS[check]}, clear=True):
            return self.ask(**more)[check]

    def ask(self, **more: Any) -> dict[str, tuple[str, str]]:
        """What `doctor` says, by its checks."""
        return dict(examine(Deployment(REGION, self.connect, self.name, **more), self.session))


def aborting(days: int) -> dict[str, Any]:
    return {
        "ID": f"after {days}",
        "Status": "Enabled",
        "Filter": {"Prefix": ""},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": days},
    }
