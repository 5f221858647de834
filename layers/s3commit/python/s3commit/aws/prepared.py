"""The requests of which a job makes one for each file, sent for a third of botocore's time.

For a request of a few bytes botocore takes 1.5 ms of a processor or more: it resolves the address,
checks and serializes the parameters, calls some forty handlers and parses the answer. From one key
to the next none of that differs. So it is noted how botocore sent the first such request to a
bucket, and the next ones go the same way: its own signer signs them, and urllib3 sends them, which
it sends by as well.

A plain success is all that is read here. After any other answer, or none, botocore sends the
request again, with its redirects, retries, rates and errors. So S3 may see a request twice, as it
may by botocore's own retries.
"""

from __future__ import annotations

import os
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from s3commit.aws.clients import CONNECT_TIMEOUT, READ_TIMEOUT, S3Client

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from urllib3 import HTTPConnectionPool

PAUSE: Final = 60  # seconds in which botocore sends all, after most answers that are no success
_OF_ONE_OBJECT: Final = (404, 409, 412)  # no reason for a pause
_NOT_SO: Final = (301, 302, 307, 308, 400)  # botocore has to show it again
SMALL: Final = 1 << 18  # bytes; of a larger body the transfer takes longer than botocore does

# Of a request, what is the same in the next one to the bucket.
_HEADERS: Final = ("user-agent", "x-amz-server-side-encryption")
_CONTEXT: Final = ("auth_type", "signing", "client_config", "has_streaming_input", "checksum")
# Signed by the account's key alone, and not as directory buckets or several regions need it.
_SIGNATURES: Final = ("s3v4", "v4")
_COMPLETION: Final = (
    '<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{parts}'
    "</CompleteMultipartUpload>"
)


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def text(self, root: str, child: str) -> str | None:
        """The text of an element below the root: S3 may say 200, and then an error."""
        try:
            found = ElementTree.fromstring(self.body)  # noqa: S314 - as botocore reads it
        except (ElementTree.ParseError, ValueError, LookupError):  # the latter: its encoding
            return None
        named = {element.tag.rpartition("}")[2]: element.text for element in found}
        return named.get(child) if found.tag.rpartition("}")[2] == root else None

    @property
    def throttles(self) -> bool:
        """True for what botocore takes for throttling, also where the status is 200."""
        return self.status == 429 or self.text("Error", "Code") == "SlowDown"


@dataclass(frozen=True, slots=True)
class _Template:
    """How botocore has sent one operation to one bucket."""

    method: str
    base: str  # the address of an object, without its key
    headers: dict[str, str]
    context: dict[str, Any]
    signer: Any


class _Noted(threading.local):
    """Each attempt that botocore makes in this thread while someone watches, with its signer.

    The last one counts, since a redirect changes the address and the region.
    """

    operation = ""
    requests: list[tuple[Any, Any]] | None = None


_NOTED: Final = _Noted()


def _note(request: Any, request_signer: Any, operation_name: str, **_: Any) -> None:
    if _NOTED.requests is not None and operation_name == _NOTED.operation:
        _NOTED.requests.append((request, request_signer))


class PreparedRequests:
    """Sends requests of one client, encrypted as those that it was shown; thread-safe.

    Each call gives what S3 answers a success with, or None. Then nothing is known, and the caller
    lets botocore send it, in a block of `shown`.
    """

    def __init__(self, client: S3Client) -> None:
        self._client: Any = client
        self._lock = threading.Lock()
        self._pools: dict[str, HTTPConnectionPool] = {}  # by the address of the host
        self._templates: dict[tuple[str, str], _Template] = {}
        self._again = 0.0  # the moment from which requests are sent here ...
        self._ended = False  # ... unless none is any more
        self._lost = False  # the latest one had no answer
        client.meta.events.register("before-sign.s3", _note, unique_id="s3commit-prepared")

    @contextmanager
    def shown(self, operation: str, bucket: str, key: str) -> Iterator[None]:
        """A block in which botocore sends such a request: if it succeeds, how it did is noted."""
        if (operation, bucket) in self._templates:
            yield
            return
        around = _NOTED.operation, _NOTED.requests
        requests: list[tuple[Any, Any]] = []
        _NOTED.operation, _NOTED.requests = operation, requests
        try:
            yield
        finally:
            _NOTED.operation, _NOTED.requests = around
        with suppress(Exception):  # S3 has done it: whatever fails here is no failure
            if requests and (made := self._template(key, *requests[-1])):
                self._templates[operation, bucket] = made

    def put(self, bucket: str, key: str, body: bytes, headers: Mapping[str, str]) -> str | None:
        """Give the object's etag."""
        answer = self._send("PutObject", bucket, key, headers=headers, body=body)
        return answer.headers.get("ETag") if answer else None

    def create_upload(self, bucket: str, key: str, headers: Mapping[str, str]) -> str | None:
        """Give the upload's id."""
        answer = self._send("CreateMultipartUpload", bucket, key, query="uploads", headers=headers)
        return answer.text("InitiateMultipartUploadResult", "UploadId") if answer else None

    def upload_part(
        self, bucket: str, key: str, upload_id: str, number: int, body: bytes
    ) -> str | None:
        """Give the part's etag."""
        query = f"partNumber={number}&uploadId={quote(upload_id, safe='')}"
        answer = self._send("UploadPart", bucket, key, query=query, body=body)
        return answer.headers.get("ETag") if answer else None

    def complete_upload(
        self,
        bucket: str,
        key: str,
        upload_id: str,
        etags: Sequence[str],
        headers: Mapping[str, str],
    ) -> str | None:
        """Give the object's etag."""
        parts = "".join(
            f"<Part><ETag>{escape(etag)}</ETag><PartNumber>{number}</PartNumber></Part>"
            for number, etag in enumerate(etags, start=1)
        )
        answer = self._send(
            "CompleteMultipartUpload",
            bucket,
            key,
            query=f"uploadId={quote(upload_id, safe='')}",
            headers=headers,
            body=_COMPLETION.format(parts=parts).encode(),
        )
        return answer.text("CompleteMultipartUploadResult", "ETag") if answer else None

    def _send(
        self,
        operation: str,
        bucket: str,
        key: str,
        *,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> _Answer | None:
        template, headers = self._templates.get((operation, bucket)), headers or {}
        if template is None or self._ended or time.monotonic() < self._again:
            return None
        plain = all(value.isascii() and value.isprintable() for value in headers.values())
        if not (key and plain) or len(body) > SMALL:
            return None  # botocore says what is wrong, or takes no longer
        url = template.base + quote(key, safe="/~") + (f"?{query}" if query else "")
        answer = self._sent(operation, template, url, headers, body)
        if answer is None:
            return None
        self._lost = False
        # The rates of a client that slows down start from what botocore sends: that is all then.
        adaptive = self._client.meta.config.retries.get("mode") == "adaptive"
        if adaptive and (answer.status != 200 or b"<Error" in answer.body) and answer.throttles:
            self._ended = True
        if answer.status == 200:
            return answer
        if answer.status in _NOT_SO:
            self._templates.pop((operation, bucket), None)
        elif answer.status not in _OF_ONE_OBJECT:
            self._again = time.monotonic() + PAUSE
        return None

    def _sent(
        self,
        operation: str,
        template: _Template,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
    ) -> _Answer | None:
        """S3's answer; whatever goes wrong, botocore's own attempt says what it is."""
        try:
            return self._tried(operation, template, url, headers, body)
        except Exception as error:
            # A connection that S3 has closed while nothing was sent is no reason for a pause.
            if self._lost or not _is_lost(error):
                self._again = time.monotonic() + PAUSE
            self._lost = True
            return None

    def _tried(
        self,
        operation: str,
        template: _Template,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
    ) -> _Answer:
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415 - as in `clients`
        from botocore.handlers import add_recursion_detection_header  # noqa: PLC0415

        own = {**template.headers, **headers}
        add_recursion_detection_header({"headers": own})
        request = AWSRequest(template.method, url, headers=own, data=body)
        request.context.update(template.context)
        template.signer.sign(operation, request)
        prepared = request.prepare()
        emit = self._client.meta.events.emit_until_response
        if (given := emit(f"before-send.s3.{operation}", request=prepared)[1]) is not None:
            return _Answer(given.status_code, given.headers, given.content)
        parts = urlsplit(str(prepared.url))
        host = f"{parts.scheme}://{parts.netloc}"
        answer = (self._pools.get(host) or self._pool(host)).urlopen(
            template.method,
            f"{parts.path}?{parts.query}" if parts.query else parts.path,
            body=body or None,
            headers=dict(prepared.headers.items()),
            redirect=False,
            retries=False,
            assert_same_host=False,
            decode_content=False,
            enforce_content_length=True,
        )
        return _Answer(answer.status, answer.headers, answer.data)

    def _template(self, key: str, request: Any, signer: Any) -> _Template | None:
        """Of a request for the key; None where more than a signature and a connection is needed.

        That is a proxy, a client's certificate, or another signature.
        """
        from botocore.utils import get_environ_proxies  # noqa: PLC0415 - as in `clients`

        meta = self._client.meta
        address, name = str(request.url).partition("?")[0], quote(key, safe="/~")
        proxies = meta.config.proxies or get_environ_proxies(meta.endpoint_url)
        if (
            proxies.get(urlsplit(address).scheme)
            or meta.config.client_cert
            or request.context.get("auth_type") not in _SIGNATURES
            or not address.endswith(name)
        ):
            return None
        base = address.removesuffix(name)
        context = {name: request.context[name] for name in _CONTEXT if name in request.context}
        headers = {
            name: value.decode() if isinstance(value, bytes) else value
            for name, value in request.headers.items()
            if name.lower().startswith(_HEADERS)
        }
        return _Template(request.method, base, headers, context, signer)

    def _pool(self, host: str) -> HTTPConnectionPool:
        from urllib3 import Timeout, connection_from_url  # noqa: PLC0415 - as in `clients`

        with self._lock:
            if host not in self._pools:
                own: dict[str, Any] = {
                    "maxsize": self._client.meta.config.max_pool_connections,
                    "timeout": Timeout(connect=CONNECT_TIMEOUT, read=READ_TIMEOUT),
                }
                if host.startswith("https:"):
                    own["ssl_context"] = _trusting(_certificates())
                self._pools[host] = connection_from_url(host, **own)
            return self._pools[host]


def _is_lost(error: Exception) -> bool:
    """True if S3 had closed the connection."""
    from urllib3.exceptions import ProtocolError, SSLError  # noqa: PLC0415 - as in `clients`

    cause = error.args[0] if isinstance(error, SSLError) and error.args else None
    ended = ssl.SSLEOFError, ssl.SSLZeroReturnError
    return isinstance(error, ProtocolError) or isinstance(cause, ended)


def _certificates() -> str:
    """The file of those that botocore trusts, by the same settings."""
    from botocore.httpsession import get_cert_path  # noqa: PLC0415 - as in `clients`
    from botocore.session import get_session  # noqa: PLC0415

    chosen = get_session().get_config_variable("ca_bundle")
    return str(chosen or os.environ.get("REQUESTS_CA_BUNDLE") or get_cert_path(True))


@cache
def _trusting(certificates: str) -> ssl.SSLContext:
    """To read them takes 30 ms of a processor."""
    from botocore.httpsession import create_urllib3_context  # noqa: PLC0415 - as in `clients`

    context: ssl.SSLContext = create_urllib3_context()
    context.load_verify_locations(certificates)
    return context
