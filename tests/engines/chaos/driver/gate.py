"""A gate between one client and S3: it names and counts each request, and strikes at a chosen one.

It is a proxy over HTTP, so that it sees whatever process of the client asks, and knows for sure
whether a request was executed when the client dies: before it is sent on, or after its answer came.
"""

from __future__ import annotations

import io
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Self
from urllib.parse import parse_qs

from werkzeug.middleware.http_proxy import ProxyMiddleware
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Response

from s3commit.core.formats.layout import COMMITS, MAGIC_PREFIX

TIMEOUT_SECONDS = 120
RESULT = "result.json"
REQUEST = "request.json"
THE_RESULT = "the result"  # the first look at result.json that finds it


class How(StrEnum):
    """Who dies at the chosen request, and what becomes of it."""

    BEFORE = "before"  # all of the client dies; the request is never executed
    AFTER = "after"  # all of the client dies; the request was executed, its answer is lost
    LATE = "late"  # all of the client dies; the request arrives when all else is over
    ORPHAN = "orphan"  # the driver's Python dies; its JVM notices and ends
    ZOMBIE = "zombie"  # the driver's Python dies, all else stalls here until all else is over
    WORKER = "worker"  # the process that sent the request dies; it is never executed


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


def name_of(method: str, path: str, query: str) -> str:
    """What the request is to the protocol."""
    asked = parse_qs(query, keep_blank_values=True)
    base = path.rsplit("/", 1)[-1]
    if "notification" in asked:
        return "probe"
    if "uploads" in asked:
        return "start upload"
    if "partNumber" in asked:
        return f"part {asked['partNumber'][0]}"
    if "uploadId" in asked:
        return "abort upload" if method == "DELETE" else f"{method} upload"
    for part, name in ((".pendingset", "manifest"), (f"/{COMMITS}once/", "key")):
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
    released: threading.Event = field(default_factory=threading.Event)


class Gate:
    """Forwards to ``endpoint``, and strikes once, at ``point``.

    ``strike`` does the killing; it gets the TCP port from which the request came. ``struck`` is
    set when it has. ``requests`` are those that were executed, in the order of their answers.
    """

    def __init__(self, endpoint: str, strike: Callable[[How, int], None]) -> None:
        self.point: Point | None = None
        self.struck = threading.Event()
        self.requests: list[Seen] = []
        self._strike = strike
        self._target = {"target": endpoint, "host": None, "headers": {}} | dict.fromkeys(
            ("remove_prefix", "ssl_context")
        )
        self._proxy = ProxyMiddleware(_nowhere, {}, timeout=TIMEOUT_SECONDS)
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._kept: _Call | None = None
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
        if self._kept is not None:
            self._kept.released.set()
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
        """Execute the request that was kept, or let it go on."""
        call = self._kept
        if call is None:
            return
        if self.point is not None and self.point.how is How.LATE:
            self._execute(call)
        call.released.set()

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
        name = name_of(environ["REQUEST_METHOD"], environ["PATH_INFO"], environ["QUERY_STRING"])
        if name == REQUEST and b'"abort"' in environ["wsgi.input"].getvalue():
            name = "abort request"
        call = _Call(environ, self._numbered(name, environ["PATH_INFO"]))
        if self._dead:
            return Response(status=503)  # its client is dead, and its sending was not finished
        point = self.point
        found = None
        if name == RESULT:
            found, call = self._look(call)
        if point is None or (call.seen.name, call.seen.nth) != (point.name, point.nth):
            return found or self._execute(call)
        return self._hit(point.how, call, found)

    def _hit(self, how: How, call: _Call, found: Response | None) -> Response:
        answer = found
        if how is How.AFTER:
            answer = answer or self._execute(call)
        if how in {How.LATE, How.ZOMBIE}:
            self._kept = call
        self._dead = how in {How.BEFORE, How.AFTER, How.LATE}
        self._strike(how, call.environ["REMOTE_PORT"])
        self.struck.set()
        if how is How.ZOMBIE:  # its request waits here
            with self._idle:  # it stands still: nobody waits for it
                self._active -= 1
            call.released.wait()
            with self._idle:
                self._active += 1
        if self._dead or how is How.WORKER:
            return Response(status=503)
        return answer or self._execute(call)

    def _numbered(self, name: str, path: str) -> Seen:
        with self._lock:
            self._counts[name] += 1
            return Seen(name, self._counts[name], job_of(path), 0)

    def _look(self, call: _Call) -> tuple[Response, _Call]:
        """A look changes nothing, so it is executed first: its name is what it finds."""
        answer = self._send(call)
        if answer.status_code == 200:
            call = _Call(call.environ, self._numbered(THE_RESULT, call.environ["PATH_INFO"]))
        self._note(call, answer)
        return answer, call

    def _execute(self, call: _Call) -> Response:
        answer = self._send(call)
        self._note(call, answer)
        return answer

    def _send(self, call: _Call) -> Response:
        to_s3 = self._proxy.proxy_to(self._target, call.environ["PATH_INFO"], "")
        return Response.from_app(to_s3, call.environ, buffered=True)

    def _note(self, call: _Call, answer: Response) -> None:
        with self._lock:
            self.requests.append(replace(call.seen, status=answer.status_code))


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


def _nowhere(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    raise AssertionError(f"{environ['PATH_INFO']} leads nowhere")
