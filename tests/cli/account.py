"""An account on moto that ``s3commit doctor`` looks at."""

import itertools
import json
from types import SimpleNamespace
from typing import Any

import boto3
from botocore.stub import Stubber

from s3commit.cli.deployment import Deployment
from s3commit.cli.doctor import examine
from s3commit.core.model.errors import AccessError
from tests.cli.support import deploy_stack
from tests.conftest import REGION
from tests.lake import ignoring_etags

DENIED = (
    "get_account_settings",
    "describe_stacks",
    "simulate_principal_policy",
)
_NUMBERS = itertools.count()


class Account:
    """An account on moto; Lambda's and IAM's answers are made here, since moto lacks them."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.name = f"doctor{next(_NUMBERS)}"
        self.free = 1000
        self.denied: set[str] = set()
        self.lacking: set[str] = set()
        self.refused = ""
        self.ignored = ""  # of the two deletes one whose etag the store ignores
        self.calls: list[str] = []

    def client(self, service: str) -> Any:
        return boto3.client(service, region_name=REGION, endpoint_url=self.endpoint)  # type: ignore[call-overload]

    def connect(self, service: str) -> Any:
        if service == "none":
            raise AccessError("no AWS credentials were found", code="NO_CREDENTIALS")
        client = self.client(service)
        if service == "s3" and self.ignored:
            ignoring_etags(client, self.ignored)
        client.meta.events.register("before-call", self._note)
        stub = Stubber(client)
        if service in self.denied:
            for method in DENIED:
                if hasattr(client, method):
                    stub.add_client_error(method, "AccessDeniedException", "not allowed")
        elif service == "lambda":
            limit = {"ConcurrentExecutions": self.free, "UnreservedConcurrentExecutions": self.free}
            stub.add_response("get_account_settings", {"AccountLimit": limit}, {})
        elif service == "iam":
            return SimpleNamespace(simulate_principal_policy=self._simulate)
        else:
            return client
        stub.activate()
        return client

    def _simulate(self, ActionNames: list[str], **_asked: Any) -> Any:  # noqa: N803 - AWS's
        decided = {True: "implicitDeny", False: "allowed"}
        found = [
            {"EvalActionName": action, "EvalDecision": decided[action in self.lacking]}
            for action in ActionNames
        ]
        return {"EvaluationResults": found}

    def _note(self, model: Any, **_parameters: Any) -> Any:
        self.calls.append(model.name)
        if model.name != self.refused:
            return None
        answer = type("Answer", (), {"status_code": 403})
        return answer, {"Error": {"Code": "AccessDenied", "Message": "not allowed"}}

    def left(self) -> tuple[int, int]:
        """How many objects and open uploads there are."""
        s3 = self.client("s3")
        uploads = s3.list_multipart_uploads(Bucket=self.name).get("Uploads", [])
        return s3.list_objects_v2(Bucket=self.name)["KeyCount"], len(uploads)

    def deploy(self, stack: str, **outputs: str) -> None:
        deploy_stack(self.client("cloudformation"), f"{stack}-{self.name}", outputs)

    def make_bucket(self, *suffixes: str, event_bridge: bool = False) -> str:
        s3 = self.client("s3")
        s3.create_bucket(Bucket=self.name, CreateBucketConfiguration={"LocationConstraint": REGION})
        queue = self.make_queue()
        queues: list[dict[str, Any]] = []
        for suffix in suffixes:
            rules = [{"Name": "suffix", "Value": suffix}] if suffix else []
            key = {"Filter": {"Key": {"FilterRules": rules}}} if rules else {}
            queues.append({"QueueArn": queue, "Events": ["s3:ObjectCreated:*"], **key})
        s3.put_bucket_notification_configuration(
            Bucket=self.name,
            NotificationConfiguration={
                "QueueConfigurations": queues,
                **({"EventBridgeConfiguration": {}} if event_bridge else {}),
            },
        )
        s3.put_bucket_lifecycle_configuration(
            Bucket=self.name, LifecycleConfiguration={"Rules": [aborting(7)]}
        )
        return self.name

    def make_queue(self) -> str:
        """A queue that S3 may send to."""
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": "s3.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": "*",
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        self.client("sqs").create_queue(QueueName=self.name, Attributes={"Policy": policy})
        return f"arn:aws:sqs:{REGION}:123456789012:{self.name}"

    def ask(self, region: str | None = REGION, **more: Any) -> dict[str, tuple[str, str]]:
        around = Deployment(region, more.pop("connect", self.connect), self.name, **more)
        return dict(examine(around))


def aborting(days: int) -> dict[str, Any]:
    return {
        "ID": f"after {days}",
        "Status": "Enabled",
        "Filter": {"Prefix": ""},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": days},
    }
