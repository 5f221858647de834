"""What the S3 adapter sends, and what it makes of answers that no emulator gives."""

import importlib
import sys
from collections.abc import Callable
from typing import Any
from xml.sax.saxutils import escape

import pytest

from s3commit.aws import clients
from s3commit.aws.clients import Encryption
from s3commit.aws.failures import OTHER_REGION
from s3commit.aws.s3 import CONFLICT_TRIES, S3ObjectStore
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    JobRefusedError,
    NeedsOperatorError,
    NotFoundError,
    PreconditionError,
    S3CommitError,
    TransientError,
)
from s3commit.core.ports.objects import OpenUpload
from tests.aws.conftest import Answers
from tests.servers import ran

UPLOAD_STARTED = (
    "<InitiateMultipartUploadResult><UploadId>id</UploadId></InitiateMultipartUploadResult>"
)
COMPLETED = '<CompleteMultipartUploadResult><ETag>"e-1"</ETag></CompleteMultipartUploadResult>'


def complete(store: S3ObjectStore, *, if_absent: bool = False) -> object:
    return store.complete_upload("lake", "k", "id", ['"a"'], length=5, if_absent=if_absent)


def test_a_completion_is_a_request_with_the_length(store: S3ObjectStore, answers: Answers) -> None:
    answers.add(200, COMPLETED)
    facts = store.complete_upload("lake", "k", "id", ['"a"'], length=5, if_absent=True)
    (request,) = answers.requests
    assert request.headers["x-amz-mp-object-size"] == b"5"
    assert request.headers["If-None-Match"] == b"*"
    assert "s3commit/" in str(request.headers["User-Agent"])
    assert (facts.etag, facts.length) == ('"e-1"', 5)


def test_i12_what_is_too_large_is_not_read(store: S3ObjectStore, answers: Answers) -> None:
    answers.add(200, "x", Content_Length=str(5 * 1024**4), ETag='"e"')
    with pytest.raises(InvalidInputError) as caught:
        store.get("lake", "k", max_bytes=100)
    assert caught.value.code == "TOO_LARGE"


def test_the_first_bytes_are_one_request(store: S3ObjectStore, answers: Answers) -> None:
    answers.add(206, "x", Content_Length="1", ETag='"e"')
    with pytest.raises(AssertionError, match="was read"):
        store.first_bytes("lake", "k", 10)
    (request,) = answers.requests
    assert request.headers["Range"] == b"bytes=0-9"


def test_an_error_inside_a_200_is_an_error(store: S3ObjectStore, answers: Answers) -> None:
    answers.error(200, "InternalError")
    with pytest.raises(TransientError):
        complete(store)


def test_a_conflict_is_final_for_a_conditional_completion(
    store: S3ObjectStore, answers: Answers, pauses: list[float]
) -> None:
    answers.error(409, "ConditionalRequestConflict")
    answers.error(409, "OperationAborted")
    with pytest.raises(PreconditionError):
        complete(store, if_absent=True)
    with pytest.raises(TransientError):
        complete(store)
    assert pauses == []


# Of https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html, what a client can cause.
REFUSALS = (
    *("EntityTooLarge", "EntityTooSmall", "InvalidArgument", "InvalidDigest", "InvalidPart"),
    *("InvalidPartOrder", "InvalidRequest", "KeyTooLongError", "MalformedXML", "MethodNotAllowed"),
    *("MaxMessageLengthExceeded", "NotImplemented", "TooManyParts", "Unheard"),
)


def modelled() -> list[tuple[int, str]]:
    """The errors that botocore's model of S3 has, each with its status."""
    model = clients.make_client().meta.service_model
    errors = [model.shape_for(name) for name in model.shape_names]
    found = [one for one in errors if one.metadata.get("exception")]
    return [(one.metadata.get("error", {}).get("httpStatusCode", 400), one.name) for one in found]


def test_i2_whatever_4xx_a_completion_is_answered_the_file_is_lost(
    store: S3ObjectStore, answers: Answers
) -> None:
    """Or is tried again: the class of the error says which. None fails for ever."""
    passes = {408, 409, 429}
    cases = [
        *((status, "Unheard") for status in range(400, 500)),
        *((501 if code == "NotImplemented" else 400, code) for code in REFUSALS),
        *modelled(),
    ]
    assert len(cases) > 120
    for status, code in cases:
        answers.error(status, code)
        with pytest.raises(S3CommitError) as caught:
            complete(store)
        found = caught.value
        if status in {401, 403} and code != "InvalidObjectState":
            assert isinstance(found, AccessError)
        elif status == 404:
            assert isinstance(found, NotFoundError)
        elif status == 412:
            assert isinstance(found, PreconditionError)
        else:
            expected = TransientError if status in passes else JobRefusedError
            assert isinstance(found, expected), (status, code)
        assert code in found.message


def test_no_part_is_refused_without_a_request(store: S3ObjectStore, answers: Answers) -> None:
    with pytest.raises(JobRefusedError) as caught:
        store.complete_upload("lake", "k", "id", [], length=0)
    assert caught.value.code == "PARTS_MISMATCH"
    assert answers.requests == []


def test_a_put_is_repeated_after_a_conflict(
    store: S3ObjectStore, answers: Answers, pauses: list[float]
) -> None:
    answers.error(409, "ConditionalRequestConflict")
    answers.error(409, "ConditionalRequestConflict")
    answers.error(412, "PreconditionFailed")
    with pytest.raises(PreconditionError):
        store.put("lake", "k", b"x", if_absent=True)
    assert pauses == [0.1, 0.2]


def test_an_endless_conflict(store: S3ObjectStore, answers: Answers, pauses: list[float]) -> None:
    for _ in range(CONFLICT_TRIES):
        answers.error(409, "ConditionalRequestConflict")
    with pytest.raises(TransientError):
        store.delete("lake", "k", if_match='"e"')
    assert len(answers.requests) == CONFLICT_TRIES == len(pauses) + 1


def test_nothing_to_delete_is_success_even_as_a_412(store: S3ObjectStore, answers: Answers) -> None:
    answers.error(412, "PreconditionFailed")
    answers.add(200, "<ListBucketResult></ListBucketResult>")
    store.delete("lake", "k", if_match='"e"')
    answers.error(404, "NoSuchKey")
    store.delete("lake", "k", if_match='"e"')


def test_keys_that_xml_can_not_carry_come_encoded(store: S3ObjectStore, answers: Answers) -> None:
    page = (
        "<ListMultipartUploadsResult><EncodingType>url</EncodingType>{}"
        "<Upload><Key>{}</Key><UploadId>{}</UploadId>"
        "<Initiated>2026-11-21T22:00:00.000Z</Initiated><StorageClass>{}</StorageClass></Upload>"
        "</ListMultipartUploadsResult>"
    )
    more = (
        "<IsTruncated>true</IsTruncated><NextKeyMarker>a%01+b%2B</NextKeyMarker>"
        "<NextUploadIdMarker>one</NextUploadIdMarker>"
    )
    answers.add(200, page.format(more, "a%01+b%2B", "one", "GLACIER_IR"))
    more = "<IsTruncated>false</IsTruncated>"
    answers.add(200, page.format(more, escape("%E8%AA%9E"), "two", ""))
    found = list(store.list_uploads("lake", ""))
    moment = "2026-11-21T22:00:00.000Z"
    first = OpenUpload("a\x01 b+", "one", moment, storage_class="GLACIER_IR")
    assert found == [first, OpenUpload("語", "two", moment, storage_class="STANDARD")]
    assert "encoding-type=url" in answers.requests[0].url
    assert "key-marker=a%01%20b%2B" in answers.requests[1].url
    assert "upload-id-marker=one" in answers.requests[1].url


REDIRECTED: dict[str, Callable[[S3ObjectStore], object]] = {
    "list": lambda store: list(store.list("lake", "")),
    "list_uploads": lambda store: list(store.list_uploads("lake", "")),
    "get": lambda store: store.get("lake", "k", max_bytes=9),
    "head": lambda store: store.head("lake", "k"),
    "put": lambda store: store.put("lake", "k", b"x"),
    "delete": lambda store: store.delete("lake", "k"),
    "complete_upload": complete,
}


@pytest.mark.parametrize(
    ("status", "region"), [(301, ""), (301, "eu-west-1"), (302, ""), (307, ""), (308, "")]
)
@pytest.mark.parametrize("body", ["<Error><Code>PermanentRedirect</Code></Error>", "<html>moved"])
@pytest.mark.parametrize("verb", REDIRECTED)
def test_an_endpoint_that_redirects_each_request_is_one_line(
    store: S3ObjectStore, answers: Answers, verb: str, body: str, status: int, region: str
) -> None:
    """As one of HTTP before HTTPS: botocore asks it for ever in which region the bucket is."""
    for _ in range(1000):
        answers.add(status, body, **({"x_amz_bucket_region": region} if region else {}))
    with pytest.raises(TransientError, match="set AWS_REGION and the endpoint to") as caught:
        REDIRECTED[verb](store)
    assert caught.value.code == OTHER_REGION


STORED = {"Key": "a", "ETag": "e", "Size": "1", "LastModified": "2026-11-21T22:00:00.000Z"}
UPLOAD = {"Key": "a", "UploadId": "i", "Initiated": "2026-11-21T22:00:00.000Z"}
LISTINGS: dict[str, tuple[str, dict[str, str], Callable[[S3ObjectStore], object]]] = {
    "list": ("Contents", STORED, lambda store: list(store.list("lake", ""))),
    "below": ("Contents", STORED, lambda store: list(store.below("lake", ""))),
    "list_versions": (
        "Version",
        {name: STORED[name] for name in ("Key", "ETag", "Size")} | {"VersionId": "v"},
        lambda store: list(store.list_versions("lake", "a")),
    ),
    "list_uploads": ("Upload", UPLOAD, lambda store: list(store.list_uploads("lake", ""))),
    "upload_bytes": ("Part", {"Size": "1"}, lambda store: store.upload_bytes("lake", "a", "i")),
}


@pytest.mark.parametrize(
    ("verb", "member"), [(verb, name) for verb, (_, known, _) in LISTINGS.items() for name in known]
)
def test_a_listing_that_leaves_something_out_is_one_line(
    store: S3ObjectStore, answers: Answers, verb: str, member: str
) -> None:
    """As one of open uploads that does not say when each was begun: their job can't be known."""
    element, known, call = LISTINGS[verb]
    page = f"<Listing><{element}>{{}}</{element}></Listing>"
    answers.add(
        200, page.format("".join(f"<{name}>{text}</{name}>" for name, text in known.items()))
    )
    call(store)
    bad = [None, "", "x"] if member in {"Size", "LastModified", "Initiated"} else [None]
    for value in bad:
        told = {**known, member: value}
        said = [f"<{name}>{text}</{name}>" for name, text in told.items() if text is not None]
        answers.add(200, page.format("".join(said)))
        with pytest.raises(
            NeedsOperatorError, match="the store's answer is not as AWS's"
        ) as caught:
            call(store)
        assert caught.value.code == "LISTING"


def test_the_times_of_a_listing_are_read_without_the_slow_reader_of_any_time(
    store: S3ObjectStore, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be five sixths of a listing's work: hundreds of seconds for five million files."""
    page = (
        "<ListBucketResult><Contents><Key>a</Key><ETag>&quot;e&quot;</ETag><Size>1</Size>"
        "<LastModified>2026-11-21T22:00:00.000Z</LastModified></Contents></ListBucketResult>"
    )
    answers.add(200, page)
    answers.add(200, content_length="1", last_modified="Sat, 21 Nov 2026 22:00:00 GMT", etag="e")
    any_time = importlib.import_module("dateutil.parser").parser()
    slow = {"read": 0}

    def parse(text: str, *_: Any, **__: Any) -> Any:
        slow["read"] += 1
        return any_time.parse(text)

    monkeypatch.setattr("dateutil.parser.parse", parse)
    assert [one.key for one in store.list("lake", "")] == ["a"]
    assert slow["read"] == 0
    facts = store.head("lake", "a")
    assert facts is not None and facts.modified == "2026-11-21T22:00:00.000Z"
    assert slow["read"] == 1


def test_no_checksum_that_no_manifest_repeats(store: S3ObjectStore, answers: Answers) -> None:
    answers.add(200, UPLOAD_STARTED)
    answers.add(200, ETag='"p"')
    upload_id = store.create_upload("lake", "k", metadata={"A": "b"}, content_type="x/y")
    store.upload_part("lake", "k", upload_id, 1, memoryview(b"bytes"))
    for request in answers.requests:
        names = [name.lower() for name in request.headers]
        assert not [name for name in names if "checksum" in name or "trailer" in name]
    body: Any = answers.requests[1].body
    assert body.read() == b"bytes"


def test_encryption_is_asked_for_at_the_begin(client: Any, answers: Answers) -> None:
    store = S3ObjectStore(client, encryption=Encryption("aws:kms", "key-1", bucket_key=True))
    answers.add(200, ETag='"e"')
    answers.add(200, UPLOAD_STARTED)
    store.put("lake", "k", b"x")
    store.create_upload("lake", "k", metadata={}, content_type="x/y")
    assert len(answers.requests) == 2
    for request in answers.requests:
        assert request.headers["x-amz-server-side-encryption"] == b"aws:kms"
        assert request.headers["x-amz-server-side-encryption-aws-kms-key-id"] == b"key-1"
        assert request.headers["x-amz-server-side-encryption-bucket-key-enabled"] == b"true"


@pytest.mark.parametrize(
    ("module", "needs", "needless"),
    [
        ("aws.s3", "botocore", "pynamodb aws_lambda_powertools moto pyarrow pyspark"),
        ("spark", "s3commit", "boto3 botocore pyspark"),  # of a worker that makes no client
    ],
)
def test_an_executor_loads_no_more_than_it_needs(module: str, needs: str, needless: str) -> None:
    """It costs each task time."""
    code = f"import sys, s3commit.{module}; print(*{{m.split('.')[0] for m in sys.modules}})"
    loaded = ran(sys.executable, "-c", code).stdout.split()
    assert needs in loaded
    assert not set(needless.split()) & set(loaded)
