"""A gate between one client and S3: it names and counts each request, and strikes at a chosen one.

It is a proxy over HTTP, so that it sees whatever process of the client asks, and knows for sure
whether a request was executed when the client dies: before it is sent on, or after its answer came.
"""

import io
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self
from urllib.parse import parse_qs

from werkzeug.middleware.http_proxy import ProxyMiddleware
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Response

from s3commit.core.formats.layout import COMMITS, MAGIC_PREFIX

TIMEOUT_SECONDS = 120
RESULT = "_result.json"
REQUEST = "_request.json"
THE_RESULT = "the result"  # the first look at _result.json that finds it


class How(StrEnum):
    """Who dies at the chosen request, and what becomes of it."""

    BEFORE = "before"  # all of the client dies; the request is never executed
    AFTER = "after"  # all of the client dies; the request was executed, its answer is lost
    ZOMBIE = "zombie"  # the driver's Python dies, the rest stalls here until all else is over


@dataclass(frozen=True, order=True)
class Point:
    """The ``nth`` request (from 1) of that name."""

    name: str
    nth: int
    how: How

    def __str__(self) -> str:
        return f"{self.how} {self.name} {self.nth}"


@dataclass(frozen=True)
class Seen:
    """One request; ``status`` is of S3's answer, 0 if it was not executed (yet)."""

    name: str
    nth: int
    job: str
    status: int


def name_of(environ: Mapping[str, Any]) -> str:
    """What the request is to the protocol."""
    method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
    asked = parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
    base = path.rsplit("/", 1)[-1]
    if "notification" in asked:
        return "probe"
    if "uploads" in asked:
        return "start upload"
    if "partNumber" in asked:
        return f"part {asked['partNumber'][0]}"
    if "uploadId" in asked:
        return "abort upload" if method == "DELETE" else f"{method} upload"
    if base == REQUEST and b'"abort"' in environ["wsgi.input"].getvalue():
        return "abort request"
    for part, name in ((".pendingset", "manifest"), (f"/{COMMITS}_once/", "key")):
        if part in path:
            base = name
    return base if method == "PUT" or base == RESULT else f"{method} {base}"


def job_of(path: str) -> str:
    """The job in whose directory the key lies; empty if in none."""
    return path.partition(f"/{MAGIC_PREFIX}")[2].partition("/")[0]


@dataclass
class _Call:
    environ: dict[str, Any]
    seen: Seen
    answer: Response | None  # of a look


class Gate:
    """Forwards to ``endpoint``, and strikes once, at ``point``.

    ``strike`` does the killing; ``struck`` is set when it has. ``requests`` are those that were
    executed, in the order of their answers.
    """

    def __init__(self, endpoint: str, strike: Callable[[How], None], point: Point | None) -> None:
        self.point = point
        self.struck = threading.Event()
        self.requests: list[Seen] = []
        self._strike = strike
        self._target = {"target": endpoint, "host": None, "headers": {}} | dict.fromkeys(
            ("remove_prefix", "ssl_context")
        )
        self._proxy = ProxyMiddleware(_nowhere, {}, timeout=TIMEOUT_SECONDS)
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._released = threading.Event()
        self._dead = False
        self._idle = threading.Condition()
        self._active = 0
        self._server = make_server("127.0.0.1", 0, self, threaded=True, request_handler=_Quiet)
        self._server.daemon_threads = True  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._dead = True
        self.release()
        self._server.shutdown()
        self._server.server_close()

    @property
    def jobs(self) -> list[str]:
        """The jobs in whose directories the client has put something, in their order."""
        with self._lock:
            return list(dict.fromkeys(seen.job for seen in self.requests if seen.job))

    @property
    def asked(self) -> set[str]:
        """The jobs whose commit request stands, as far as this client put it."""
        with self._lock:
            return {one.job for one in self.requests if (one.name, one.status) == (REQUEST, 200)}

    def release(self) -> None:
        """Let a zombie go on."""
        self._released.set()

    def settled(self, seconds: float = TIMEOUT_SECONDS) -> None:
        """Wait until no request is on its way: what a dead client sent may still be executed."""
        with self._idle:
            assert self._idle.wait_for(lambda: not self._active, seconds), "requests hang"

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Take one request."""
        length = int(environ.get("CONTENT_LENGTH") or 0)
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(length))
        with self._idle:
            self._active += 1
        try:
            answer = self._pass(environ)
        finally:
            with self._idle:
                self._active -= 1
                self._idle.notify_all()
        return answer(environ, start_response)

    def _pass(self, environ: dict[str, Any]) -> Response:
        if self._dead:
            return Response(status=503)  # its client is dead, and its sending was not finished
        name, answer = name_of(environ), None
        if name == RESULT:  # a look changes nothing, so it is executed first: its name tells
            answer = self._send(environ)
            name = THE_RESULT if answer.status_code == 200 else RESULT
        with self._lock:
            self._counts[name] += 1
            seen = Seen(name, self._counts[name], job_of(environ["PATH_INFO"]), 0)
        call = _Call(environ, seen, answer)
        if self.point is None or (name, seen.nth) != (self.point.name, self.point.nth):
            return self._execute(call)
        return self._hit(self.point.how, call)

    def _hit(self, how: How, call: _Call) -> Response:
        if how is How.AFTER:
            self._execute(call)
        self._dead = how is not How.ZOMBIE
        self._strike(how)
        self.struck.set()
        if self._dead:
            return Response(status=503)
        with self._idle:  # it stands still: nobody waits for it
            self._active -= 1
        self._released.wait()
        with self._idle:
            self._active += 1
        return self._execute(call)

    def _execute(self, call: _Call) -> Response:
        answer = call.answer or self._send(call.environ)
        with self._lock:
            self.requests.append(replace(call.seen, status=answer.status_code))
        return answer

    def _send(self, environ: dict[str, Any]) -> Response:
        to_s3 = self._proxy.proxy_to(self._target, environ["PATH_INFO"], "")
        return Response.from_app(to_s3, environ, buffered=True)


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


def _nowhere(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    raise AssertionError(f"{environ['PATH_INFO']} leads nowhere")
