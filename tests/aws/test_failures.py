"""The table from AWS's answers to our errors."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore import exceptions as botocore
from botocore.parsers import ResponseParserError
from botocore.retries.standard import ThrottledRetryableChecker, TransientRetryableChecker
from botocore.stub import Stubber
from pynamodb.exceptions import CancellationReason, VerboseClientError

from s3commit.aws.executions import StateMachine
from s3commit.aws.failures import answered, translate, translated
from s3commit.core.documents.ticket import execution_input
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import (
    NOT_READABLE,
    AccessError,
    InvalidInputError,
    NotFoundError,
    PreconditionError,
    S3CommitError,
    TransientError,
    UploadGoneError,
)
from s3commit.core.ports.executions import Reason


def an_answer(code: str, status: int, message: str = "in words") -> botocore.ClientError:
    return botocore.ClientError(
        {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {"HTTPStatusCode": status},  # type: ignore[typeddict-item]
        },
        "Operation",
    )


def a_cancellation(*codes: str | None) -> VerboseClientError:
    return VerboseClientError(
        {"Error": {"Code": "TransactionCanceledException", "Message": "m"}},
        "TransactWriteItems",
        cancellation_reasons=[CancellationReason(code) if code else None for code in codes],
    )


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("400", 400),  # HEAD without the customer's key, as all HEADs without a body
        ("403", 403),
        ("405", 405),
        ("InvalidRequest", 400),  # GET of the same
        ("AccessDenied", 403),  # also of a key of another account, or one that is no more
        ("KMS.DisabledException", 400),
        ("KMS.NotFoundException", 400),
        ("KMS.KMSInvalidStateException", 400),
        ("InvalidObjectState", 403),
        ("MethodNotAllowed", 405),
        ("InvalidRange", 416),  # GET of the first bytes of an empty one
        ("ACodeOfTomorrow", 422),
    ],
)
def test_i12_what_s3_answers_for_good_is_said_of_one_object(code: str, status: int) -> None:
    assert isinstance(translate(an_answer(code, status), "reading"), NOT_READABLE)


@pytest.mark.parametrize(
    ("code", "status", "expected", "own_code"),
    [
        ("NoSuchUpload", 404, UploadGoneError, "UPLOAD_GONE"),
        ("NoSuchBucket", 404, NotFoundError, "NO_BUCKET"),
        ("NoSuchKey", 404, NotFoundError, "NOT_FOUND"),
        ("404", 404, NotFoundError, "NOT_FOUND"),
        ("ResourceNotFoundException", 400, NotFoundError, "NO_TABLE"),
        ("InvalidObjectState", 403, InvalidInputError, "ARCHIVED"),
        ("PreconditionFailed", 412, PreconditionError, "PRECONDITION_FAILED"),
        ("412", 412, PreconditionError, "PRECONDITION_FAILED"),
        ("ConditionalCheckFailedException", 400, PreconditionError, "PRECONDITION_FAILED"),
        ("ConditionalRequestConflict", 409, TransientError, "CONFLICT"),
        ("TransactionConflictException", 400, TransientError, "CONFLICT"),
        ("SlowDown", 503, TransientError, "TRANSIENT"),
        ("InternalError", 500, TransientError, "TRANSIENT"),
        ("InternalError", 200, TransientError, "TRANSIENT"),
        ("RequestTimeout", 400, TransientError, "TRANSIENT"),
        ("ProvisionedThroughputExceededException", 400, TransientError, "TRANSIENT"),
        ("ThrottlingException", 400, TransientError, "TRANSIENT"),
        ("AccessDenied", 403, AccessError, "ACCESS_DENIED"),
        ("SignatureDoesNotMatch", 403, AccessError, "ACCESS_DENIED"),
        ("ExpiredToken", 400, AccessError, "ACCESS_DENIED"),
        ("UnrecognizedClientException", 400, AccessError, "ACCESS_DENIED"),
        ("InvalidBucketName", 400, InvalidInputError, "INVALID_INPUT"),
        ("KeyTooLongError", 400, InvalidInputError, "INVALID_INPUT"),
        ("ValidationException", 0, InvalidInputError, "INVALID_INPUT"),
    ],
)
def test_an_answer_of_aws_is_one_of_our_errors(
    code: str, status: int, expected: type[S3CommitError], own_code: str
) -> None:
    error = translate(an_answer(code, status), "doing it")
    assert (type(error), error.code) == (expected, own_code)
    fix = ": create it, or correct the path" if own_code == "NO_BUCKET" else ""
    assert error.message == f"doing it: in words ({code}){fix}"


# Those of botocore's own list, and S3's of a KMS key: many services answer them with a 400.
PASSING = {
    *vars(ThrottledRetryableChecker)["_THROTTLED_ERROR_CODES"],
    *vars(TransientRetryableChecker)["_TRANSIENT_ERROR_CODES"],
    *("KMS.ThrottlingException", "KmsThrottled"),
}


@pytest.mark.parametrize("code", sorted(PASSING))
def test_i2_what_passes_by_itself_is_tried_again_whatever_its_status(code: str) -> None:
    """A completion that is refused with any other 400 has its job rolled back."""
    assert isinstance(translate(an_answer(code, 400), "completing"), TransientError)


@pytest.mark.parametrize(
    ("code", "status"), [("PermanentRedirect", 301), ("301", 301), ("Moved", 308)]
)
def test_a_bucket_elsewhere_says_what_to_set(code: str, status: int) -> None:
    """botocore has followed the redirect, where it says enough. It is never a lost list."""
    error = translate(an_answer(code, status), "listing")
    assert isinstance(error, TransientError)
    assert error.message == (
        f"listing: in words ({code}): set AWS_REGION and the endpoint to those of the bucket"
    )


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (botocore.EndpointConnectionError(endpoint_url="u", error="e"), TransientError),
        (botocore.ConnectTimeoutError(endpoint_url="u", error="e"), TransientError),
        (botocore.ReadTimeoutError(endpoint_url="u", error="e"), TransientError),
        (botocore.ConnectionClosedError(endpoint_url="u", error="e"), TransientError),
        (botocore.ResponseStreamingError(error="e"), TransientError),
        (botocore.IncompleteReadError(actual_bytes=1, expected_bytes=2), TransientError),
        (ResponseParserError("not XML"), TransientError),
        (botocore.NoCredentialsError(), AccessError),
        (botocore.PartialCredentialsError(provider="p", cred_var="v"), AccessError),
        (botocore.TokenRetrievalError(provider="p", error_msg="e"), AccessError),
        (botocore.UnauthorizedSSOTokenError(), AccessError),
        (botocore.NoRegionError(), InvalidInputError),
        (botocore.ParamValidationError(report="r"), InvalidInputError),
    ],
)
def test_errors_of_botocore_are_ours(raised: Exception, expected: type[S3CommitError]) -> None:
    assert type(translate(raised, "doing it")) is expected


@pytest.mark.parametrize(
    "raised",
    [
        an_answer("404", 404, "\n<!doctype html>\n<h1>PAGE</h1>"),
        an_answer("", 502, "<html>PAGE</html>"),
        ResponseParserError("invalid XML received. Further retries may succeed:\n<html>PAGE"),
    ],
)
def test_no_body_of_an_answer_is_part_of_the_line(raised: Exception) -> None:
    message = translate(raised, "doing it").message
    assert message.startswith("doing it: ")
    assert "PAGE" not in message
    assert len(message.splitlines()) == 1


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        ((None, "ConditionalCheckFailed"), PreconditionError),
        (("TransactionConflict", "ConditionalCheckFailed"), PreconditionError),
        (("TransactionConflict", None), TransientError),
        (("ThrottlingError",), TransientError),
        (("ProvisionedThroughputExceeded", None), TransientError),
        (("ValidationError",), InvalidInputError),
    ],
)
def test_a_cancelled_transaction_says_why(
    reasons: tuple[str | None, ...], expected: type[S3CommitError]
) -> None:
    assert type(translate(a_cancellation(*reasons), "deciding")) is expected


def test_the_answer_stays_the_cause_and_its_code_is_known() -> None:
    answer = an_answer("NoSuchKey", 404)
    with pytest.raises(NotFoundError) as caught, translated("reading"):
        raise answer
    assert caught.value.__cause__ is answer
    assert answered(caught.value) == "NoSuchKey"
    assert answered(NotFoundError("our own")) == ""


def test_a_page_of_a_proxy_says_no_code() -> None:
    page: Any = {"ResponseMetadata": {"HTTPStatusCode": 403}}  # as botocore reads HTML
    said = r"reading: no message \(403\)"
    with pytest.raises(AccessError, match=said) as caught, translated("reading"):
        raise botocore.ClientError(page, "DescribeStacks")
    assert answered(caught.value) == ""


# What the sweep asks Step Functions: who works on a job, and to start another one


MACHINE = "arn:aws:states:eu-central-1:123456789012:stateMachine:s3commit"
EXECUTION = "arn:aws:states:eu-central-1:123456789012:execution:s3commit:job"
BY = Reason(requested_by="AWS:AROAEXAMPLEID:etl")
DIRECTORY = JobDirectory(Destination("lake", "sales/"), "0b6f6f0e-0000-4000-8000-000000000001")


@pytest.fixture
def stub() -> Iterator[Stubber]:
    """Canned answers of the service."""
    with Stubber(boto3.client("stepfunctions")) as stub:
        yield stub


@pytest.fixture
def machine(stub: Stubber) -> StateMachine:
    service: Any = stub.client
    return StateMachine(MACHINE, service)


@pytest.mark.parametrize(
    ("status", "running"),
    [
        ("RUNNING", True),
        ("PENDING_REDRIVE", True),
        ("SUCCEEDED", False),
        ("FAILED", False),
        ("TIMED_OUT", False),
        ("ABORTED", False),
    ],
)
@pytest.mark.parametrize("execution", [EXECUTION, "job"])
def test_an_execution_runs_or_does_not(
    machine: StateMachine, stub: Stubber, status: str, running: bool, execution: str
) -> None:
    answer = {
        "executionArn": EXECUTION,
        "stateMachineArn": MACHINE,
        "status": status,
        "startDate": "2026-11-22",
    }
    stub.add_response("describe_execution", answer, {"executionArn": EXECUTION})
    assert machine.describe(execution).is_running is running


def test_a_forgotten_execution_does_not_run(machine: StateMachine, stub: Stubber) -> None:
    """It does so 90 days after the end."""
    stub.add_client_error("describe_execution", "ExecutionDoesNotExist")
    assert not machine.describe(EXECUTION).is_running


def test_a_replaced_machine_is_not_asked(machine: StateMachine, stub: Stubber) -> None:
    """The role may ask for this machine's alone, and AccessDenied would hold up its jobs."""
    old = EXECUTION.replace(":s3commit:", ":s3commit-before:")
    assert not machine.describe(old).is_running
    stub.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("code", "error"),
    [("ThrottlingException", TransientError), ("AccessDeniedException", AccessError)],
)
def test_what_is_not_known_is_taken_neither_for_dead_nor_for_started(
    machine: StateMachine, stub: Stubber, code: str, error: type[Exception]
) -> None:
    stub.add_client_error("describe_execution", code)
    with pytest.raises(error):
        machine.describe(EXECUTION)
    stub.add_client_error("start_execution", code)
    with pytest.raises(error):
        machine.start("again-1", DIRECTORY)


def test_an_execution_is_started_for_its_place(machine: StateMachine, stub: Stubber) -> None:
    expected = {
        "stateMachineArn": MACHINE,
        "name": "again-1",
        "input": json.dumps(
            execution_input(DIRECTORY, Reason(requested_by="AWS:AROAEXAMPLEID:etl"))
        ),
    }
    stub.add_response(
        "start_execution", {"executionArn": EXECUTION, "startDate": "2026-11-22"}, expected
    )
    assert machine.start("again-1", DIRECTORY, BY) == EXECUTION


@pytest.mark.parametrize(
    ("endpoint", "is_here"),
    [
        ("http://127.0.0.1:15555/lake?notification", True),
        ("http://localhost:15555", True),
        ("http://[::1]:1", True),
        ("https://s3.eu-central-1.amazonaws.com", False),
        ("https://127.0.0.1.example.com", False),
    ],
)
def test_where_nothing_listens_here_the_runtime_is_named(endpoint: str, is_here: bool) -> None:
    error = botocore.EndpointConnectionError(endpoint_url=endpoint, error="refused")
    assert translate(error, "reading").message.endswith("s3commit local up") == is_here


def test_a_recursion_of_our_own_stays_what_it_is() -> None:
    def again() -> None:
        again()

    with pytest.raises(RecursionError), translated("doing it"):
        again()
