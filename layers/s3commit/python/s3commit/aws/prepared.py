"""The requests of which a job makes one for each file, sent for half of botocore's time.

For a request of a few bytes botocore takes 1.5 ms of a processor or more: it resolves the address,
checks and serializes the parameters, calls some forty handlers and parses the answer. From one key
to the next none of that differs. So it is noted where botocore sent the first such request to a
bucket, and the next ones go there too: its model says where each parameter goes, its signer signs
them, and urllib3 sends them, over botocore's connections.

A plain success is all that is read here. After any other answer, or none, botocore sends the
request again, with its redirects, retries, rates and errors. So S3 may see a request twice, as it
may by botocore's own retries.
"""

from __future__ import annotations

import math
import ssl
import time
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from s3commit.aws.clients import S3Client

if TYPE_CHECKING:
    from collections.abc import Mapping

PAUSE: Final = 60  # seconds in which botocore sends all, after most answers that are not a success
MOST_LOST: Final = 2  # connections in a row
SMALL: Final = 1 << 18  # bytes; of a larger body the transfer takes longer than botocore does
_OF_ONE_OBJECT: Final = (404, 409, 412)  # no reason for a pause
_ELSEWHERE: Final = (301, 302, 307, 308, 400)  # it has to be noted again

# Of the context of a request, what its signature depends on.
_CONTEXT: Final = ("auth_type", "signing", "client_config", "has_streaming_input", "checksum")
# By the account's key alone, and not as directory buckets or several regions need it.
_SIGNATURES: Final = ("s3v4", "v4")
_COMPLETION: Final = (
    '<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{parts}'
    "</CompleteMultipartUpload>"
)
# A success: the root of its body, and what in it is answered. Of the others it is a header.
_BODIES: Final = {
    "CreateMultipartUpload": ("InitiateMultipartUploadResult", "UploadId"),
    "CompleteMultipartUpload": ("CompleteMultipartUploadResult", "ETag"),
}


class _UnfitError(Exception):
    """The request is botocore's to send, or to refuse."""


@dataclass(frozen=True, slots=True)
class _Answer:
    status_code: int
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

    def success(self, operation: str) -> dict[str, str] | None:
        """As much of botocore's answer as is read here; None for anything but a success."""
        root, child = _BODIES.get(operation, ("", "ETag"))
        if self.status_code != 200 or (self.body and not root):  # there may be an error in it
            return None
        found = self.text(root, child) if root else self.headers.get(child)
        return None if found is None else {child: found}


@dataclass(frozen=True, slots=True)
class _Way:
    """How botocore sends one operation to one bucket."""

    method: str
    base: str  # the address of an object, without its key
    query: str
    agent: str  # with what a library adds to it, as Powertools does in a function
    places: Mapping[str, tuple[str, str]]  # of each parameter: of which kind, and its name there
    context: dict[str, Any]
    signer: Any


# Signed by botocore during a call, in its thread: operation, request and signer of each attempt.
_SIGNED: Final[ContextVar[list[tuple[str, Any, Any]] | None]] = ContextVar("signed", default=None)


def _note(request: Any, request_signer: Any, operation_name: str, **_: Any) -> None:
    if (signed := _SIGNED.get()) is not None:
        signed.append((operation_name, request, request_signer))


class PreparedRequests:
    """Sends requests of one client; thread-safe."""

    def __init__(self, client: S3Client) -> None:
        self._client: Any = client
        self._ways: dict[tuple[str, str], _Way] = {}
        self._again = 0.0  # the moment from which requests are sent here
        self._lost = 0  # so many in a row had no answer
        client.meta.events.register("before-sign.s3", _note, unique_id="s3commit-prepared")

    def call(self, operation: str, **parameters: Any) -> Any:
        """As the client's method; of the answer only an ``ETag`` or an ``UploadId`` is sure.

        For an operation whose parameters are headers and values of the query, and whose body is
        bytes or the parts of an upload.
        """
        from botocore import xform_name  # noqa: PLC0415 - as in `clients`

        named, method = (operation, parameters["Bucket"]), xform_name(operation)
        way = self._ways.get(named)
        if way is not None and (found := self._sent(operation, way, parameters)) is not None:
            return found
        if named in self._ways:
            return getattr(self._client, method)(**parameters)
        signed: list[tuple[str, Any, Any]] = []
        around = _SIGNED.set(signed)
        try:
            answer = getattr(self._client, method)(**parameters)
        finally:
            _SIGNED.reset(around)
        own = [attempt[1:] for attempt in signed if attempt[0] == operation]
        with suppress(Exception):  # S3 has done it: an error here changes nothing
            # The last attempt counts, since a redirect changes the address and the region.
            if own and (shown := self._way(operation, parameters["Key"], *own[-1])):
                self._ways[named] = shown
        return answer

    def _sent(
        self, operation: str, way: _Way, parameters: Mapping[str, Any]
    ) -> dict[str, str] | None:
        """A success, or None. If something goes wrong, botocore's own attempt says it."""
        if time.monotonic() < self._again:
            return None
        try:
            answer = self._answer(operation, way, parameters)
        except (_UnfitError, UnicodeEncodeError):
            return None
        except Exception as error:
            # Connections that S3 has closed while nothing was sent do not begin a pause.
            self._lost += 1
            if self._lost > MOST_LOST or not _is_lost(error):
                self._lost, self._again = 0, time.monotonic() + PAUSE
            return None
        self._lost = 0
        found = answer.success(operation)
        if found is None:
            self._judge(operation, parameters["Bucket"], answer.status_code)
        else:
            try:
                self._count(operation, answer)
            except Exception:  # S3 has done it, and without a count botocore has to send all
                self._again = math.inf
        return found

    def _judge(self, operation: str, bucket: str, status: int) -> None:
        """Decide by such an answer whether the next requests are sent here."""
        if status in _ELSEWHERE:
            self._ways.pop((operation, bucket), None)
        elif status != 200 and status not in _OF_ONE_OBJECT:
            self._again = time.monotonic() + PAUSE

    def _count(self, operation: str, answer: _Answer) -> None:
        """Tell botocore's retries of a success: without any they would slow down for ever."""
        model = self._client.meta.service_model.operation_model(operation)
        known = {"http_response": answer, "parsed": {}, "model": model, "context": {}}
        attempt = {"response": (answer, {}), "attempts": 1, "caught_exception": None}
        attempt |= {"request_dict": known, "operation": model, "endpoint": None}
        emit = self._client.meta.events.emit
        emit(f"needs-retry.s3.{operation}", **attempt)
        emit(f"after-call.s3.{operation}", **known)

    def _answer(self, operation: str, way: _Way, parameters: Mapping[str, Any]) -> _Answer:
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415 - as in `clients`
        from botocore.handlers import add_recursion_detection_header  # noqa: PLC0415

        target, headers, body = _serialized(way, parameters)
        headers["User-Agent"] = way.agent
        add_recursion_detection_header({"headers": headers})
        request = AWSRequest(way.method, way.base + target, headers=headers, data=body)
        request.context.update(way.context)
        way.signer.sign(operation, request)
        prepared = request.prepare()
        event = f"before-send.s3.{operation}"
        emit = self._client.meta.events.emit_until_response
        if (given := emit(event, request=prepared)[1]) is not None:
            return _Answer(given.status_code, given.headers, given.content)
        parts = urlsplit(str(prepared.url))
        host = f"{parts.scheme}://{parts.netloc}"
        session = self._client._endpoint.http_session
        pool = session._manager.connection_from_url(host)
        session._setup_ssl_cert(pool, host, session._verify)
        answer = pool.urlopen(
            way.method,
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

    def _way(self, operation: str, key: str, request: Any, signer: Any) -> _Way | None:
        """That of a request for the key; None if it needs a proxy or another signature."""
        address, name = str(request.url).partition("?")[0], _quoted_key(key)
        if (
            self._client._endpoint.http_session._proxy_config.proxy_url_for(address)
            or request.context.get("auth_type") not in _SIGNATURES
            or not address.endswith(name)
        ):
            return None
        context = {name: request.context[name] for name in _CONTEXT if name in request.context}
        model = self._client.meta.service_model.operation_model(operation)
        members = model.input_shape.members.items()
        places = {
            member: (place["location"], place["name"])
            for member, shape in members
            if "location" in (place := shape.serialization)
        }
        query = model.http["requestUri"].partition("?")[2]
        base = address.removesuffix(name)
        agent = request.headers.get_all("User-Agent")[-1]  # that one is sent
        agent = agent.decode() if isinstance(agent, bytes) else agent  # awscrt signs no bytes
        return _Way(request.method, base, query, agent, places, context, signer)


def _serialized(way: _Way, parameters: Mapping[str, Any]) -> tuple[str, dict[str, str], bytes]:
    """The key with the query, the headers, and the body.

    Raises `_UnfitError` for what is large, or what botocore refuses.
    """
    query = [way.query]
    headers: dict[str, str] = {}
    for name, value in parameters.items():
        kind, there = way.places.get(name, ("", ""))
        text = str(value).lower() if value is True or value is False else str(value)
        match kind:
            case "header":
                headers[there] = text
            case "headers":
                headers |= {there + each: said for each, said in value.items()}
            case "querystring":
                query.append(f"{there}={quote(text, safe='')}")
    body = parameters.get("Body", b"")
    if "MultipartUpload" in parameters:
        body = _COMPLETION.format(
            parts="".join(
                f"<Part><ETag>{escape(part['ETag'])}</ETag>"
                f"<PartNumber>{part['PartNumber']}</PartNumber></Part>"
                for part in parameters["MultipartUpload"]["Parts"]
            )
        ).encode()
    is_plain = all(value.isascii() and value.isprintable() for value in headers.values())
    if not (is_plain and parameters["Key"]) or len(body) > SMALL:
        raise _UnfitError
    asked = "&".join(filter(None, query))
    return _quoted_key(parameters["Key"]) + (asked and f"?{asked}"), headers, body


def _quoted_key(key: str) -> str:
    return quote(key, safe="/~")


def _is_lost(error: Exception) -> bool:
    """True if S3 had closed the connection."""
    from urllib3.exceptions import ProtocolError, SSLError  # noqa: PLC0415 - as in `clients`

    cause = error.args[0] if isinstance(error, SSLError) and error.args else None
    ended = ssl.SSLEOFError, ssl.SSLZeroReturnError
    return isinstance(error, ProtocolError) or isinstance(cause, ended)
