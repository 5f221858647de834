"""A deployment: its stacks, its region and account; and the answers of `doctor` about it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import boto3.session
from botocore.config import Config

from s3commit.aws import env
from s3commit.aws.clients import IMPATIENT, make_session, region_of_environment
from s3commit.aws.failures import translated
from s3commit.aws.notifications import Ear, configured, listening
from s3commit.core.model.errors import InvalidInputError, NotFoundError


class Finding(NamedTuple):
    """A check's answer. A check of what can't be read, or is not there, is skipped."""

    verdict: str
    text: str


NOT_NAMED = "NOT_NAMED"  # the data bucket, so nothing of it is checked
ok = partial(Finding, "ok")  # all is well
to_do = partial(Finding, "fix")  # something has to be done, and the text says what
skipped = partial(Finding, "skipped")  # it was not looked at, and the text says why


@dataclass
class Deployment:
    """Account, region and deployment. ``connect`` gives a boto3 client; tests give their own.

    ``name`` is the deployment's parameter of that name, ``bucket`` the data bucket if not that of
    the stack; ``role`` is the ARN of a Spark role that writes below ``prefix``. With a prefix alone
    it is the caller who writes there.
    """

    region: str | None
    connect: Callable[[str], Any]
    name: str | None = None
    bucket: str | None = None
    role: str | None = None
    prefix: str = ""

    def __post_init__(self) -> None:
        if self.prefix:  # ``sales`` is meant as a directory: its policy is for ``sales/*``
            self.prefix = self.prefix.strip("/") + "/"

    def stack(self, stack: str) -> str:
        """The stack's name in this deployment."""
        return f"{stack}-{self.name}" if self.name else stack

    @cached_property
    def storage(self) -> dict[str, str]:
        """The outputs of the storage stack, as `pipeline`."""
        return self._outputs(env.STORAGE_STACK)

    @cached_property
    def pipeline(self) -> dict[str, str]:
        """The outputs of the pipeline's stack by name; empty if it is not deployed.

        Raises `AccessError` if the caller has no right to read it.
        """
        return self._outputs(env.PIPELINE_STACK)

    @cached_property
    def data_bucket(self) -> str:
        """The name that was given, or the one that the storage stack says.

        Raises `NotFoundError` (``NOT_NAMED``) if neither does.
        """
        found = self.bucket or self.storage.get(env.BUCKET_OUTPUT)
        if found is None:
            raise NotFoundError("no stack names the bucket: give --bucket", code=NOT_NAMED)
        return found

    @cached_property
    def parameters(self) -> dict[str, Any] | None:
        """The parameters that are not the defaults; None if the stacks are not deployed."""
        if not self.storage:
            return None
        found: dict[str, Any] = json.loads(self.storage.get(env.PARAMETERS_OUTPUT, "{}"))
        return found

    @cached_property
    def identity(self) -> dict[str, str]:
        """STS's answer to who this is: ``Arn`` and ``Account``."""
        found: dict[str, str] = self.ask(
            "reading the caller's identity", "sts", "get_caller_identity"
        )
        return found

    @property
    def partition(self) -> str:
        """AWS's, as ARNs name it."""
        return self.identity["Arn"].split(":")[1]

    @cached_property
    def notifications(self) -> dict[str, Any]:
        """The bucket's GetBucketNotificationConfiguration."""
        return configured(self.connect("s3"), self.data_bucket)

    @cached_property
    def ears(self) -> dict[str, Ear] | None:
        """How the deployment listens; None if its stack does not say, as an earlier one's."""
        told = self.storage.get(env.LISTENS_OUTPUT)
        return listening(self.connect, told) if told else None

    def ask(self, doing: str, service: str, operation: str, **parameters: Any) -> Any:
        """AWS's answer; its errors are this package's, with the action that failed."""
        with translated(doing):
            return getattr(self.connect(service), operation)(**parameters)

    def lacking(self, role: str, actions: Sequence[str], resources: Sequence[str]) -> list[str]:
        """The actions that the role's own policies do not allow.

        https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html
        """
        asked: dict[str, Any] = {"ActionNames": list(actions), "ResourceArns": list(resources)}
        doing = f"simulating the rights of {role}"
        answer = self.ask(doing, "iam", "simulate_principal_policy", PolicySourceArn=role, **asked)
        results = answer["EvaluationResults"]
        return [one["EvalActionName"] for one in results if one["EvalDecision"] != "allowed"]

    def _outputs(self, stack: str) -> dict[str, str]:
        name = self.stack(stack)
        try:
            found = self.ask(
                f"reading stack {name}", "cloudformation", "describe_stacks", StackName=name
            )
        except InvalidInputError as error:
            # CloudFormation says ValidationError of a stack that is not there.
            if "does not exist" not in error.message:
                raise
            return {}
        outputs = found["Stacks"][0].get("Outputs", [])
        return {each["OutputKey"]: each["OutputValue"] for each in outputs}


def read_deployment(name: str | None) -> Deployment:
    """The deployment with that name where the standard AWS configuration leads to."""
    with translated("reading the AWS configuration"):
        where = region_of_environment() or boto3.session.Session().region_name
    session = cache(lambda: make_session(where))

    @cache
    def connect(service: str) -> Any:
        with translated(f"connecting to {service}"):
            return session().create_client(service, config=Config(**IMPATIENT))

    return Deployment(where, connect, name)
