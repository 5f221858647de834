"""Every request of everyone, as it passes the embedded runtime's endpoint, and what is done to it.

A WSGI middleware. Requests that change something in S3 or the ledger are executed one at a time,
so that a trace has them in the order in which they took effect.
"""

import re
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs, unquote

from werkzeug.wrappers import Response

from s3commit.local.lambda_executor import Executor
from s3commit.local.worker import Worker

_CREDENTIAL = re.compile(r"Credential=([^/]+)/[^/]+/[^/]+/([^/]+)/")
_READING = frozenset({"GET", "HEAD"})
_LEDGER_READS = ("Get", "BatchGet", "Query", "Scan", "Describe")
_ANSWERS: dict[tuple[str, str], tuple[str, str]] = {
    ("s3", "500"): ("500 Internal Server Error", "InternalError"),
    ("s3", "503"): ("503 Slow Down", "SlowDown"),
    ("dynamodb", "500"): ("500 Internal Server Error", "InternalServerError"),
    ("dynamodb", "503"): ("400 Bad Request", "ProvisionedThroughputExceededException"),
    ("states", "500"): ("500 Internal Server Error", "InternalFailure"),
    ("states", "503"): ("400 Bad Request", "ThrottlingException"),
    ("lambda", "503"): ("429 Too Many Requests", "TooManyRequestsException"),
}


@dataclass(frozen=True, slots=True)
class Call:
    """One request. ``who`` is a function's worker, ``client``, or what stands in the access key."""

    who: str
    function: str
    service: str
    operation: str
    key: str
    body: bytes

    @property
    def changes(self) -> bool:
        """It may change S3 or the ledger."""
        if self.service == "s3":
            return self.operation.split()[0] not in _READING
        return self.service == "dynamodb" and not self.operation.startswith(_LEDGER_READS)


@dataclass(frozen=True, slots=True)
class Fault:
    """``kind`` is kill, 500, 503 or reset; ``executed`` says whether the request takes effect."""

    kind: str
    executed: bool


class Wire:
    """The middleware.

    ``fault`` says what happens to a request, ``kill`` ends the worker that sent it, and ``notice``
    gets each one that has changed something, before its sender gets the status. ``workers`` tells
    which function a worker's access key belongs to.
    """

    def __init__(
        self,
        fault: Callable[[Call], Fault | None],
        kill: Callable[[Call], None],
        notice: Callable[[Call, int], None],
    ) -> None:
        self._fault, self._kill, self._notice = fault, kill, notice
        self.workers: Callable[[], list[Worker]] = list
        self._functions: dict[str, str] = {}
        self.turn = threading.RLock()
        self._application: Any = None

    def around(self, application: Any) -> Any:
        """See `s3commit.local.serving.Middleware`."""
        self._application = application
        return self

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        call = self._call(environ)
        fault = self._fault(call)
        if fault is None:
            return self._execute(call, environ)(environ, start_response)
        if fault.executed:
            self._execute(call, environ)
        if fault.kind == "kill":
            self._kill(call)
        if fault.kind in {"kill", "reset"}:
            environ["s3commit.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionResetError
        return _refusal(call, fault.kind)(environ, start_response)

    def _execute(self, call: Call, environ: dict[str, Any]) -> Response:
        with self.turn if call.changes else nullcontext():
            answer = Response.from_app(self._application, environ, buffered=True)
            if call.changes:
                self._notice(call, answer.status_code)
            return answer

    def _call(self, environ: dict[str, Any]) -> Call:
        found = _CREDENTIAL.search(environ.get("HTTP_AUTHORIZATION", ""))
        who, service = found.groups() if found else ("", "")
        method, path = environ["REQUEST_METHOD"], unquote(environ.get("PATH_INFO", ""))
        query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        body = b""
        if service in {"s3", "dynamodb", "states"} and method in {"POST", "PUT", "DELETE"}:
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            environ["wsgi.input"] = BytesIO(body)
        if service == "s3":
            key = path.lstrip("/").partition("/")[2]
            operation = _s3_operation(method, query)
        else:
            target = environ.get("HTTP_X_AMZ_TARGET", "")
            key, operation = "", target.rpartition(".")[2] or f"{method} {path}"
        return Call(who, self._function(who), service, operation, key, body)

    def _function(self, who: str) -> str:
        if len(who) != 32:  # digits of a worker's id
            return ""
        if who not in self._functions:
            for worker in self.workers():
                self._functions[worker.id] = worker.spec.handler.partition(".")[0]
        return self._functions.get(who, "")


def workers_of(executor: Executor) -> list[Worker]:
    """The processes that live now, those at work among them."""
    with executor._lock:
        pools = executor._pools.values()
        return [worker for pool in pools for worker in (*pool.busy, *pool.idle) if worker.alive]


def _s3_operation(method: str, query: dict[str, list[str]]) -> str:
    """The method, and which of S3's requests of that method it is; of a part, its number."""
    kinds = ("uploads", "uploadId", "delete", "list-type", "versions", "notification")
    parts = (f"part {number}" for number in query.get("partNumber", ()))
    return " ".join([method, *(one for one in kinds if one in query), *parts])


def _refusal(call: Call, kind: str) -> Response:
    status, code = _ANSWERS[call.service, kind]
    if call.service == "s3":
        text = f"<Error><Code>{code}</Code><Message>chaos</Message></Error>"
        return Response(text, status, content_type="application/xml")
    text = f'{{"__type":"{code}","message":"chaos"}}'
    return Response(text, status, {"x-amzn-errortype": code}, content_type="application/json")
