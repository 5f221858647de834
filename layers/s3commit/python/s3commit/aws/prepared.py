"""The requests of which a job makes one for each file, sent for a third of botocore's time.

For a request of a few bytes botocore takes 1.5 ms of a processor or more: it resolves the address,
checks and serializes the parameters, calls some forty handlers and parses the answer. From one key
to the next none of that differs. So botocore is asked once for each bucket how it would send such a
request, and its own signer and urllib3, which it sends by as well, send the others.

A plain success is all that is read here. After any other answer, or none, botocore sends the
request again, with its redirects, retries, rates and errors, and those of the next minute too,
unless the answer was about that one object. So S3 may see a request twice, as it may by botocore's
own retries.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from s3commit.aws.clients import CONNECT_TIMEOUT, READ_TIMEOUT, S3Client

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from urllib3 import HTTPConnectionPool

PAUSE: Final = 60  # seconds in which botocore sends all
_OF_ONE_OBJECT: Final = (404, 409, 412)  # after which it does not
_KEY: Final = "k"
_UPLOAD: Final = {"UploadId": "u"}
_PART: Final = {**_UPLOAD, "PartNumber": 1}
_COMPLETION: Final = (
    '<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{parts}'
    "</CompleteMultipartUpload>"
)
_CERTIFICATES: Final = ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE")  # in botocore's order


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def text(self, root: str, child: str) -> str | None:
        """The text of an element below the root: S3 may say 200, and then an error."""
        try:
            found = ElementTree.fromstring(self.body)  # noqa: S314 - as botocore reads it
        except ElementTree.ParseError:
            return None
        named = {element.tag.rpartition("}")[2]: element.text for element in found}
        return named.get(child) if found.tag.rpartition("}")[2] == root else None


@dataclass(frozen=True, slots=True)
class _Template:
    """How botocore sends one operation to one bucket."""

    method: str
    base: str  # the address of an object, without its key
    headers: dict[str, str]
    context: dict[str, Any]
    signer: Any
    pool: HTTPConnectionPool


class PreparedRequests:
    """Sends requests of one client, encrypted as ``encryption`` says; thread-safe.

    Each call gives what S3 answers a success with, or None: then nothing is known, and the caller
    lets botocore send it.
    """

    def __init__(self, client: S3Client, encryption: Mapping[str, Any]) -> None:
        self._client: Any = client
        self._encryption = encryption
        self._lock = Lock()
        self._pools: Any = None
        self._templates: dict[tuple[str, str], _Template | None] = {}
        self._again = 0.0  # the moment from which requests are sent here

    def put(self, bucket: str, key: str, body: bytes, headers: Mapping[str, str]) -> str | None:
        """Give the object's etag."""
        answer = self._send("PutObject", bucket, key, self._encryption, headers=headers, body=body)
        return answer.headers.get("ETag") if answer else None

    def create_upload(self, bucket: str, key: str, headers: Mapping[str, str]) -> str | None:
        """Give the upload's id."""
        answer = self._send(
            "CreateMultipartUpload", bucket, key, self._encryption, query="uploads", headers=headers
        )
        return answer.text("InitiateMultipartUploadResult", "UploadId") if answer else None

    def upload_part(
        self, bucket: str, key: str, upload_id: str, number: int, body: bytes
    ) -> str | None:
        """Give the part's etag."""
        query = f"partNumber={number}&uploadId={quote(upload_id, safe='')}"
        answer = self._send("UploadPart", bucket, key, _PART, query=query, body=body)
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
            _UPLOAD,
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
        fixed: Mapping[str, Any],
        *,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> _Answer | None:
        """``fixed`` are the operation's further parameters, the same in each of its requests."""
        headers = headers or {}
        plain = all(value.isascii() and value.isprintable() for value in headers.values())
        if time.monotonic() < self._again or not plain:
            return None
        template = self._template(operation, bucket, fixed)
        if template is None:
            return None
        url = template.base + quote(key, safe="/~") + (f"?{query}" if query else "")
        answer = self._sent(operation, template, url, headers, body)
        if answer is not None and answer.status == 200:
            return answer
        if answer is None or answer.status not in _OF_ONE_OBJECT:
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
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415 - as in `clients`
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        request = AWSRequest(
            template.method, url, headers={**template.headers, **headers}, data=body
        )
        request.context.update(template.context)
        try:
            template.signer.sign(operation, request)
            prepared = request.prepare()
            emit = self._client.meta.events.emit_until_response
            if (given := emit(f"before-send.s3.{operation}", request=prepared)[1]) is not None:
                return _Answer(given.status_code, given.headers, given.content)
            parts = urlsplit(str(request.url))
            answer = template.pool.urlopen(
                template.method,
                f"{parts.path}?{parts.query}" if parts.query else parts.path,
                body=body or None,
                headers=dict(request.headers.items()),
                redirect=False,
                retries=False,
                assert_same_host=False,
                decode_content=False,
                enforce_content_length=True,
            )
        except (BotoCoreError, HTTPError, OSError, ValueError):
            return None
        return _Answer(answer.status, answer.headers, answer.data)

    def _template(self, operation: str, bucket: str, fixed: Mapping[str, Any]) -> _Template | None:
        wanted = operation, bucket
        if wanted not in self._templates:
            with self._lock:
                if wanted not in self._templates:
                    self._templates[wanted] = self._learned(operation, bucket, fixed)
        return self._templates[wanted]

    def _learned(self, operation: str, bucket: str, fixed: Mapping[str, Any]) -> _Template | None:
        """How botocore would send it; None where it needs more than a signature and a connection.

        Those are proxies, a client's certificate, and other signatures, as those of directory
        buckets and of access points for several regions.
        """
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - as in `clients`
        from botocore.utils import get_environ_proxies  # noqa: PLC0415

        seen: list[tuple[Any, Any]] = []

        def note(request: Any, request_signer: Any, **_: Any) -> None:
            if request.context.get("is_presign_request"):
                seen.append((request, request_signer))

        meta = self._client.meta
        event = f"before-sign.s3.{operation}"
        name = next(name for name, own in meta.method_to_api_mapping.items() if own == operation)
        meta.events.register_first(event, note)
        try:
            self._client.generate_presigned_url(
                name, Params={"Bucket": bucket, "Key": _KEY, **fixed}
            )
        except BotoCoreError:
            return None  # its own request says what is wrong
        finally:
            meta.events.unregister(event, note)
        if not seen:
            return None
        request, signer = seen[0]
        base = request.url.partition("?")[0].removesuffix(_KEY)
        own = meta.config.proxies or meta.config.client_cert or get_environ_proxies(base)
        context = {name: request.context.get(name) for name in ("auth_type", "signing")}
        if own or context["auth_type"] != "s3v4":
            return None
        headers = {"User-Agent": meta.config.user_agent, **dict(request.headers.items())}
        return _Template(request.method, base, headers, context, signer, self._pool(base))

    def _pool(self, base: str) -> HTTPConnectionPool:
        from botocore.httpsession import create_urllib3_context, get_cert_path  # noqa: PLC0415
        from urllib3 import PoolManager, Timeout  # noqa: PLC0415

        if self._pools is None:  # the lock is held
            own: dict[str, Any] = {}
            if base.startswith("https:"):
                own["ssl_context"] = create_urllib3_context()
                chosen = filter(None, map(os.environ.get, _CERTIFICATES))
                own["ssl_context"].load_verify_locations(next(chosen, "") or get_cert_path(True))
            self._pools = PoolManager(
                maxsize=self._client.meta.config.max_pool_connections,
                timeout=Timeout(connect=CONNECT_TIMEOUT, read=READ_TIMEOUT),
                **own,
            )
        pool: HTTPConnectionPool = self._pools.connection_from_url(base)
        return pool
