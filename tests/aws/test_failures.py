"""The table from AWS's answers to our errors."""

from __future__ import annotations

import pytest
from botocore import exceptions as botocore
from botocore.parsers import ResponseParserError
from pynamodb.exceptions import CancellationReason, VerboseClientError

from s3commit.aws.failures import answered, translate, translated
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
def test_i12_what_s3_answers_of_an_object_for_good_is_said_of_that_object_alone(
    code: str, status: int
) -> None:
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
    assert error.message == f"doing it: in words ({code})"


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
        (RuntimeError("what"), S3CommitError),
    ],
)
def test_what_botocore_raises_itself_is_one_of_our_errors(
    raised: Exception, expected: type[S3CommitError]
) -> None:
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
