"""What the S3 adapter sends to delete what it has seen, and what it makes of the answers."""

import uuid
from typing import Any
from urllib.parse import quote

import pytest
from botocore.loaders import create_loader

from s3commit.aws.clients import make_client
from s3commit.aws.s3 import S3ObjectStore
from s3commit.aws.s3_requests import check_deletes, keeps_changed
from s3commit.core.model.errors import (
    AccessError,
    JobRefusedError,
    PreconditionError,
    S3CommitError,
    TransientError,
)
from s3commit.core.ports.objects import ListedObject
from tests.aws.conftest import Answers
from tests.contract.given import make_bucket
from tests.lake import IGNORED_ETAGS, ignoring_etags


def seen(*names: str) -> list[ListedObject]:
    return [ListedObject(name, f'"etag of {name}"', 1) for name in names]


def refusing(**codes: str) -> str:
    """The answer to a request of which S3 refused the named keys."""
    errors = "".join(
        f"<Error><Key>{key}</Key><Code>{code}</Code><Message>in words</Message></Error>"
        for key, code in codes.items()
    )
    return f"<DeleteResult>{errors}</DeleteResult>"


def listing(key: str) -> str:
    """A listing of one object, as S3 encodes its key."""
    moment = "<LastModified>2026-11-21T22:00:00.000Z</LastModified>"
    line = f"<Contents><Key>{key}</Key><ETag>e</ETag><Size>1</Size>{moment}</Contents>"
    return f"<ListBucketResult><EncodingType>url</EncodingType>{line}</ListBucketResult>"


def test_a_thousand_objects_are_one_request(store: S3ObjectStore, answers: Answers) -> None:
    answers.add(200, refusing())
    store.delete_seen("lake", seen(*(f"k{number}" for number in range(1000))))
    (request,) = answers.requests
    assert (request.method, request.url.partition("?")[2]) == ("POST", "delete")
    body: Any = request.body
    assert body.count(b"<Object>") == 1000
    assert b'<Key>k7</Key><ETag>"etag of k7"</ETag>' in body
    assert b"<Quiet>true</Quiet>" in body
    assert b"VersionId" not in body


@pytest.mark.parametrize("code", ["PreconditionFailed", "NoSuchKey"])
def test_what_is_gone_is_passed_over(store: S3ObjectStore, answers: Answers, code: str) -> None:
    answers.add(200, refusing(a=code, b=code))
    store.delete_seen("lake", seen("a", "b", "c"))
    assert len(answers.requests) == 1


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("AccessDenied", AccessError),
        ("SlowDown", TransientError),
        ("InternalError", TransientError),
        ("ServiceUnavailable", TransientError),
        ("ConditionalRequestConflict", TransientError),
        ("OperationAborted", TransientError),
    ],
)
def test_a_key_that_s3_could_not_judge_is_an_error(
    store: S3ObjectStore, answers: Answers, code: str, expected: type[S3CommitError]
) -> None:
    answers.add(200, refusing(a="PreconditionFailed", b=code))
    with pytest.raises(expected) as caught:
        store.delete_seen("lake", seen("a", "b", "c"))
    assert type(caught.value) is expected
    assert caught.value.message == f"deleting s3://lake/b: in words ({code})"


def test_a_key_that_xml_lacks_is_deleted_alone(store: S3ObjectStore, answers: Answers) -> None:
    answers.add(200, refusing())
    answers.add(204)
    answers.error(412, "PreconditionFailed")  # the object is another one by now
    answers.add(200, listing("%EF%BF%BE"))
    store.delete_seen("lake", seen("a", "bell\x07", "cr\r", "\ufffe"))
    many, bell, other, look = answers.requests
    body: Any = many.body
    assert body.count(b"<Object>") == 2
    assert b"<Key>cr&#xD;</Key>" in body
    assert (bell.method, bell.url.rpartition("/")[2]) == ("DELETE", "bell%07")
    assert bell.headers["If-Match"] == b'"etag of bell\x07"'
    assert other.method == "DELETE"
    assert (look.method, "list-type=2" in look.url) == ("GET", True)  # a HEAD may be refused


@pytest.mark.parametrize("key", ["plain", "bell\x07"])
def test_i12_a_look_after_a_refused_delete_is_no_head(
    store: S3ObjectStore, answers: Answers, key: str
) -> None:
    """Who has put another object there may have encrypted it: a HEAD is 400 then, or 403."""
    answers.error(412, "PreconditionFailed")
    answers.add(200, listing(quote(key)))
    with pytest.raises(PreconditionError):
        store.delete("lake", key, if_match='"e"')
    assert [request.method for request in answers.requests] == ["DELETE", "GET"]


@pytest.mark.parametrize("ignored", IGNORED_ETAGS)
def test_i5_a_store_that_ignores_the_etag_of_a_delete_is_found(
    moto_endpoint: str, monkeypatch: pytest.MonkeyPatch, ignored: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    client: Any = make_client()
    bucket = make_bucket(client, f"probed-{uuid.uuid4().hex}")
    if ignored:
        ignoring_etags(client, ignored)
    assert keeps_changed(client, bucket) is not bool(ignored)
    assert client.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
    if ignored:
        with pytest.raises(JobRefusedError, match=r"ignores the etag .* Nothing was changed"):
            check_deletes(client, bucket)
    else:
        check_deletes(client, bucket)


PARTITIONS = create_loader().load_data("partitions")["partitions"]


REGIONS = {one["id"]: one["outputs"]["implicitGlobalRegion"] for one in PARTITIONS}
# For the other two botocore knows no such endpoint.
DUAL = [one for one in REGIONS if one not in {"aws-iso-e", "aws-iso-f"}]


@pytest.mark.parametrize(
    ("partition", "dual"), [*((one, "false") for one in REGIONS), *((one, "true") for one in DUAL)]
)
def test_i5_aws_is_not_asked(partition: str, dual: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It documents what it does, and no job takes a request more: in whichever partition."""
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setenv("AWS_USE_DUALSTACK_ENDPOINT", dual)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, REGIONS[partition])
    client: Any = make_client()
    asked: list[str] = []
    client.meta.events.register("before-call", lambda model, **_: asked.append(model.name))
    check_deletes(client, "lake")
    assert asked == []
