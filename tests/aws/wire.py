"""What takes the place of S3 for a client, and what is asked of a store there."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit
from xml.etree import ElementTree

import aws_lambda_powertools  # noqa: F401 - it adds to the user agent, as in a function
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders

from s3commit.aws import clients
from s3commit.aws.clients import Encryption
from s3commit.aws.s3 import S3ObjectStore
from tests.aws.conftest import Raw

Call = Callable[[S3ObjectStore, str], object]
Given = tuple[int, bytes, dict[str, str]]

CALLS: Final[dict[str, Call]] = {
    "put": lambda store, key: store.put("lake", key, b"x" * 100),
    "put of nothing": lambda store, key: store.put("lake", key, b""),
    "put if absent": lambda store, key: store.put("lake", key, b"x", if_absent=True),
    "put if it matches": lambda store, key: store.put("lake", key, b"x", if_match='"e"'),
    "put with metadata": lambda store, key: store.put(
        "lake", key, b"x", content_type="text/csv", metadata={"S3commit-Job": "a  b", "n": ""}
    ),
    "create": lambda store, key: store.create_upload(
        "lake", key, metadata={"job": "1"}, content_type="text/csv; charset=utf-8"
    ),
    "part": lambda store, key: store.upload_part("lake", key, "i/+= d", 7, b"x" * 100),
    "complete": lambda store, key: store.complete_upload(
        "lake", key, "i/+= d", ['"a&<>"', "b"], length=5
    ),
    "complete if absent": lambda store, key: store.complete_upload(
        "lake", key, "id", ['"a"'], length=5, if_absent=True
    ),
}
KEYS: Final = (
    *(f"t/{chr(code)}/x{chr(code)}" for code in range(1, 0x180)),
    *("/a", "//a", "a//b", "a/", "./a", "a/../b", "..", "a/.", "~/*'()!", "ü/日本/😀", "k", "k/k"),
)
ENCRYPTIONS: Final = (
    Encryption("AES256"),
    Encryption("aws:kms", "arn:aws:kms:eu-west-1:1:key/a", bucket_key=True),
    Encryption("aws:kms:dsse", bucket_key=False),
)
SETTINGS: Final[dict[str, dict[str, str]]] = {
    "us-east-1": {"AWS_REGION": "us-east-1"},
    "of Europe": {"AWS_REGION": "eu-west-1"},
    "opted in": {"AWS_REGION": "eu-south-1"},
    "of a government": {"AWS_REGION": "us-gov-west-1"},
    "of China": {"AWS_REGION": "cn-north-1"},
    "by FIPS": {"AWS_REGION": "us-west-2", "AWS_USE_FIPS_ENDPOINT": "true"},
    "by IPv6": {"AWS_USE_DUALSTACK_ENDPOINT": "true"},
    "below a path": {"AWS_ENDPOINT_URL": "http://127.0.0.1:9/stores/one"},
    "with a token": {"AWS_SESSION_TOKEN": "t/+="},
    "in a function": {"AWS_LAMBDA_FUNCTION_NAME": "f", "_X_AMZN_TRACE_ID": "Root=1-2;Sampled=1"},
    "addressed by path": {"config": "[default]\ns3 =\n  addressing_style = path\n"},
    "accelerated": {"config": "[default]\ns3 =\n  use_accelerate_endpoint = true\n"},
    "unsigned bodies": {"config": "[default]\ns3 =\n  payload_signing_enabled = false\n"},
}
# What differs each time; and botocore asks before it sends a body, and waits for that answer too.
_OWN: Final = {
    *("amz-sdk-invocation-id", "amz-sdk-request", "expect"),
    *("authorization", "x-amz-date"),
}
MOVED: Final = (
    301,
    b"<Error><Code>PermanentRedirect</Code></Error>",
    {"x-amz-bucket-region": "sa-east-1"},
)


class Wire:
    """Answers each request instead of S3; with a success unless ``answers`` says otherwise."""

    def __init__(self, client: Any) -> None:
        self.requests: list[AWSPreparedRequest] = []
        self.by_botocore = 0
        self.answers: list[Given] = []
        client.meta.events.register_last("before-send", self.answer)  # after botocore's limiter
        client.meta.events.register("before-call.s3", self._count)

    def _count(self, **_: Any) -> None:
        self.by_botocore += 1

    def answer(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        self.requests.append(request)
        given = self.answers.pop(0) if self.answers else (200, success(request), {})
        status, body, headers = given
        named = HTTPHeaders.from_dict({"ETag": '"e"', **headers})
        return AWSResponse(request.url, status, named, Raw(body))

    def clear(self) -> None:
        self.requests.clear()
        self.by_botocore = 0


def success(request: AWSPreparedRequest) -> bytes:
    query = urlsplit(request.url).query
    if request.method == "PUT":
        return b""
    root = (
        "InitiateMultipartUploadResult" if "uploads" in query else "CompleteMultipartUploadResult"
    )
    return f"<{root} xmlns='x'><UploadId>id</UploadId><ETag>&quot;e&quot;</ETag></{root}>".encode()


def store_on(
    call: Call = CALLS["put"], encryption: Encryption | None = None, **settings: Any
) -> tuple[S3ObjectStore, Wire, Any]:
    """A store that was shown the call, and what it sends from then on."""
    client: Any = clients.make_client(**settings)
    wire, store = Wire(client), S3ObjectStore(client, encryption=encryption)
    call(store, "first/key")
    wire.clear()
    return store, wire, client


def plain(request: AWSPreparedRequest) -> tuple[object, ...]:
    """What of a request S3 acts upon."""
    parts = urlsplit(request.url)
    body: Any = request.body or b""
    body = body.getvalue() if isinstance(body, io.BytesIO) else body
    if isinstance(body, bytes) and body.startswith(b"<"):
        body = str(sorted((one.tag, one.text) for one in ElementTree.fromstring(body).iter()))
    headers = {name.lower(): text(value) for name, value in request.headers.items()}
    if isinstance(body, str):  # the parts, whose order and spelling may differ
        headers |= {"x-amz-content-sha256": "", "content-length": ""}
    query = sorted(parse_qsl(parts.query, keep_blank_values=True))
    scope = headers["authorization"].partition("SignedHeaders")[0]
    named = {name: value for name, value in headers.items() if name not in _OWN}
    return request.method, parts.scheme, parts.netloc, parts.path, query, body, scope, named


def text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def configure(
    monkeypatch: pytest.MonkeyPatch, directory: Path, config: str = "", **settings: str
) -> None:
    if config:
        (directory / "config").write_text(config)
        settings["AWS_CONFIG_FILE"] = str(directory / "config")
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
