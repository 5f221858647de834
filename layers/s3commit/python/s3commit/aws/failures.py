"""The one table from what AWS answers to this package's errors.

Nothing else looks at botocore's exceptions. Sources: the error codes of the S3 and DynamoDB API
references, https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html and
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
"""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    SSOError,
    TokenRetrievalError,
)
from botocore.exceptions import ConnectionError as ConnectionFailure
from botocore.parsers import ResponseParserError

from s3commit.core.model.errors import (
    ARCHIVED,
    CONFLICT,
    AccessError,
    InvalidInputError,
    NotFoundError,
    PreconditionError,
    S3CommitError,
    TransientError,
    UploadGoneError,
)

NO_BUCKET = "NO_BUCKET"
NO_TABLE = "NO_TABLE"
OTHER_REGION = "OTHER_REGION"

_Kind = tuple[type[S3CommitError], str | None]

_TRANSIENT: _Kind = (TransientError, None)
_ACCESS: _Kind = (AccessError, None)

_CODES: dict[str, _Kind] = {
    "NoSuchUpload": (UploadGoneError, None),
    "NoSuchBucket": (NotFoundError, NO_BUCKET),
    "NoSuchKey": (NotFoundError, None),
    "ResourceNotFoundException": (NotFoundError, NO_TABLE),
    "EntityNotFoundException": (NotFoundError, None),  # Glue's
    # SQS's, which is a 400: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_GetQueueUrl.html
    "AWS.SimpleQueueService.NonExistentQueue": (NotFoundError, None),
    "PreconditionFailed": (PreconditionError, None),
    "ConditionalCheckFailedException": (PreconditionError, None),
    "ConditionalRequestConflict": (TransientError, CONFLICT),
    "OperationAborted": (TransientError, CONFLICT),
    "TransactionConflictException": (TransientError, CONFLICT),
    "TransactionInProgressException": (TransientError, CONFLICT),
    # 400s that pass: the body came too slowly, or damaged
    "RequestTimeout": _TRANSIENT,
    "BadDigest": _TRANSIENT,
    "IncompleteBody": _TRANSIENT,
    # those that botocore tries again, whatever the status (`botocore.retries.standard`); of a key
    **dict.fromkeys(
        (
            *("Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled"),
            *("RequestThrottledException", "RequestLimitExceeded", "LimitExceededException"),
            *("TooManyRequestsException", "BandwidthLimitExceeded", "EC2ThrottledException"),
            *("ProvisionedThroughputExceededException", "PriorRequestNotComplete", "SlowDown"),
            *("RequestTimeoutException", "KMS.ThrottlingException", "KmsThrottled"),
        ),
        _TRANSIENT,
    ),
    # an event source mapping whose last change is under way:
    # https://docs.aws.amazon.com/lambda/latest/api/API_UpdateEventSourceMapping.html
    "ResourceInUseException": _TRANSIENT,
    # pynamodb drops the status, so DynamoDB's lasting 400s are here
    "ValidationException": (InvalidInputError, None),
    "SerializationException": (InvalidInputError, None),
    "IdempotentParameterMismatchException": (InvalidInputError, None),
    "ItemCollectionSizeLimitExceededException": (InvalidInputError, None),
    "NotImplemented": (InvalidInputError, None),  # a 501, which does not pass
    # a 403 that is not about who asks: the object is in an archive, and has to be restored first
    "InvalidObjectState": (InvalidInputError, ARCHIVED),
    # 400s that are about who asks
    "ExpiredToken": _ACCESS,
    "ExpiredTokenException": _ACCESS,
    "InvalidToken": _ACCESS,
    "TokenRefreshRequired": _ACCESS,
    "UnrecognizedClientException": _ACCESS,
    "InvalidSignatureException": _ACCESS,
    "IncompleteSignature": _ACCESS,
    "MissingAuthenticationToken": _ACCESS,
    "AccessDenied": _ACCESS,
    "AccessDeniedException": _ACCESS,
    "KMS.DisabledException": _ACCESS,
    "KMS.NotFoundException": _ACCESS,
    "KMS.KMSInvalidStateException": _ACCESS,  # the key is pending deletion
}

# HEAD has no body: S3 says the status alone, and botocore makes it the code.
_STATUSES: dict[int, _Kind] = {
    301: (TransientError, OTHER_REGION),  # botocore follows it, where it knows where to
    308: (TransientError, OTHER_REGION),
    401: _ACCESS,
    403: _ACCESS,
    404: (NotFoundError, None),
    408: _TRANSIENT,
    409: (TransientError, CONFLICT),
    412: (PreconditionError, None),
    429: _TRANSIENT,
}

_NO_CREDENTIALS = (PartialCredentialsError, CredentialRetrievalError, SSOError, TokenRetrievalError)

# The request may have been carried out: no answer came, or one that can't be read.
_UNHEARD = (ConnectionFailure, HTTPClientError, IncompleteReadError, ResponseParserError)

# The beginning of a ValueError of botocore's that has no class of its own.
BAD_ENDPOINT = ("Invalid endpoint", "Invalid IPv6 URL")

_FIXES: dict[str | None, str] = {
    NO_BUCKET: ": create it, or correct the path",
    OTHER_REGION: ": set AWS_REGION and the endpoint to those of the bucket",
}

# The effect of one item's condition on a transaction (CancellationReasons).
_REASONS: dict[str, _Kind] = {
    "ConditionalCheckFailed": (PreconditionError, None),
    "TransactionConflict": (TransientError, CONFLICT),
    "ProvisionedThroughputExceeded": _TRANSIENT,
    "ThrottlingError": _TRANSIENT,
}


def translate(error: Exception, what: str) -> S3CommitError:
    """Give this package's error for one that botocore raised while doing ``what``."""
    if isinstance(error, ClientError):
        return _from_answer(error, what)
    if isinstance(error, NoCredentialsError):
        return no_credentials()
    if isinstance(error, _NO_CREDENTIALS):
        return AccessError(f"{what}: {error}; check with `aws sts get-caller-identity`")
    if isinstance(error, _UNHEARD):
        line, *_body = str(error).splitlines() or [""]
        endpoint = urlsplit(str(getattr(error, "kwargs", {}).get("endpoint_url") or ""))
        is_here = endpoint.hostname in {"127.0.0.1", "::1", "localhost"}
        cure = "; if that is the embedded runtime, start it: s3commit local up" if is_here else ""
        return TransientError(f"{what}: {line}{cure}")
    cure = " Set AWS_REGION, or the profile's region" if isinstance(error, NoRegionError) else ""
    return InvalidInputError(f"{what}: {error}{cure}")  # a parameter or setting: no retry helps


def no_credentials() -> AccessError:
    """The message where no credentials were found."""
    return AccessError(
        "no AWS credentials were found, so no request was made and nothing was changed: set"
        " AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role."
        " If it has one, its metadata service did not answer in time: raise"
        " AWS_METADATA_SERVICE_NUM_ATTEMPTS and AWS_METADATA_SERVICE_TIMEOUT (on Spark for driver"
        " and executors, spark.executorEnv.…)",
        code="NO_CREDENTIALS",
    )


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise botocore's errors as this package's, each with ``what`` was being done.

    pynamodb's are wrapped around them; it is not imported here, since a writer has none.
    """
    try:
        yield
    except Exception as error:
        cause = getattr(error, "cause", None) or error
        if isinstance(error, RecursionError) and _asks_again(error):
            why = f"{what}: the endpoint redirects each request{_FIXES[OTHER_REGION]}"
            raise TransientError(why, code=OTHER_REGION) from error
        if isinstance(error, ValueError) and str(error).startswith(BAD_ENDPOINT):
            raise InvalidInputError(
                f"{what}: {error}; set AWS_ENDPOINT_URL, or the service's own such as"
                " AWS_ENDPOINT_URL_S3, or the profile's endpoint_url, to a URL such as"
                " https://host:port, or to nothing for AWS"
            ) from error
        if not isinstance(cause, ClientError | BotoCoreError | ResponseParserError):
            raise
        raise translate(cause, what) from error


def _asks_again(error: Exception) -> bool:
    """True if botocore has asked a redirecting endpoint for ever where the bucket is."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_globals.get("__name__") == "botocore.utils" for frame, _ in frames)


def answered(error: S3CommitError) -> str:
    """The code with which AWS itself refused, or an empty text if it did not answer."""
    cause = error.__cause__
    said = cause.response.get("Error", {}) if isinstance(cause, ClientError) else {}
    return str(said.get("Code", ""))


def _from_answer(error: ClientError, what: str) -> S3CommitError:
    answer = error.response.get("Error", {})
    code, message = answer.get("Code", ""), answer.get("Message", "")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if not status and code.isdecimal():
        status = int(code)
    kind = (
        _kind_of_cancellation(error)
        if code == "TransactionCanceledException"
        else _CODES.get(code) or _STATUSES.get(status)
    )
    if kind is None:
        kind = (InvalidInputError, None) if 400 <= status < 500 else _TRANSIENT
    made, own_code = kind
    said = "a page" if message.lstrip().startswith("<") else message  # as of a proxy
    fix = _FIXES.get(own_code, "")
    return made(f"{what}: {said or 'no message'} ({code or status}){fix}", code=own_code)


def _kind_of_cancellation(error: ClientError) -> _Kind:
    """A condition that failed is final; what passes by itself counts only without one."""
    reasons = getattr(error, "cancellation_reasons", None) or ()
    found = {reason.code for reason in reasons if reason is not None}
    for code, kind in _REASONS.items():
        if code in found:
            return kind
    return (InvalidInputError, None)
