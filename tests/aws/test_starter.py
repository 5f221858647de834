"""Executions are started once, and a name that somebody else has taken keeps nobody waiting."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from s3commit.aws.starter import ExecutionStarter
from s3commit.core.errors import AccessError, TransientError

MACHINE = "arn:aws:states:eu-central-1:123456789012:stateMachine:s3commit"
EXECUTION = "arn:aws:states:eu-central-1:123456789012:execution:s3commit:job"
DOCUMENT = json.dumps({"jobId": "job", "bucket": "lake", "directory": "t/__magic_job-job/"})
EVIL = json.dumps({"jobId": "job", "bucket": "lake", "directory": "evil/__magic_job-job/"})


class StepFunctions:
    """Canned answers of the service; each must be asked for, with what is expected."""

    def __init__(self) -> None:
        self.client = boto3.client(
            "stepfunctions",
            region_name="eu-central-1",
            aws_access_key_id="x",
            aws_secret_access_key="x",
        )
        self.stub = Stubber(self.client)

    def start(self, name: str = "job", *, code: str = "", status: int = 400) -> None:
        expected = {"stateMachineArn": MACHINE, "name": name, "input": DOCUMENT}
        if code:
            self.stub.add_client_error(
                "start_execution", code, http_status_code=status, expected_params=expected
            )
        else:
            answer = {"executionArn": EXECUTION, "startDate": 0}
            self.stub.add_response("start_execution", answer, expected)

    def describe(self, found: str | None) -> None:
        answer: dict[str, Any] = {
            "executionArn": EXECUTION,
            "stateMachineArn": MACHINE,
            "startDate": 0,
            "status": "RUNNING",
        }
        if found is not None:
            answer["input"] = found
        self.stub.add_response("describe_execution", answer, {"executionArn": EXECUTION})


@pytest.fixture
def service() -> Iterator[StepFunctions]:
    service = StepFunctions()
    with service.stub:
        yield service
    service.stub.assert_no_pending_responses()


def started(service: StepFunctions) -> bool:
    return ExecutionStarter(MACHINE, service.client).start("job", DOCUMENT, otherwise="job-of-t")


def test_a_new_name_is_started_with_one_call(service: StepFunctions) -> None:
    service.start()
    assert started(service) is True


@pytest.mark.parametrize("found", [DOCUMENT, json.dumps(json.loads(DOCUMENT), indent=2)])
def test_a_request_that_was_heard_before_starts_nothing(service: StepFunctions, found: str) -> None:
    service.start(code="ExecutionAlreadyExists")
    service.describe(found)
    assert started(service) is False


@pytest.mark.parametrize("found", [EVIL, "by hand", "[]", None], ids=str)
def test_a_name_that_another_directory_has_taken_is_gone_around(
    service: StepFunctions, found: str | None
) -> None:
    service.start(code="ExecutionAlreadyExists")
    service.describe(found)
    service.start("job-of-t")
    assert started(service) is True


def test_the_way_around_is_gone_once(service: StepFunctions) -> None:
    service.start(code="ExecutionAlreadyExists")
    service.describe(EVIL)
    service.start("job-of-t", code="ExecutionAlreadyExists")
    assert started(service) is False


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [("ThrottlingException", 400, TransientError), ("AccessDeniedException", 400, AccessError)],
)
def test_a_failure_is_told_by_its_class_so_that_the_message_comes_again(
    service: StepFunctions, code: str, status: int, error: type[Exception]
) -> None:
    service.start(code=code, status=status)
    with pytest.raises(error, match="start execution job"):
        started(service)
