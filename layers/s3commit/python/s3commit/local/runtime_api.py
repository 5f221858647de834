"""Lambda's Runtime API, for many workers at one address, told apart by the first path element.

https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
"""

from __future__ import annotations

import queue
import socketserver
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_VERSION = "2018-06-01/runtime"


@dataclass(slots=True)
class Invocation:
    """One call of a function; ``done`` is set when ``result`` (or ``died``) is known."""

    request_id: str
    arn: str
    payload: bytes
    timeout: float
    done: threading.Event = field(default_factory=threading.Event)
    result: bytes = b""
    failed: bool = False
    died: bool = False


class Channel:
    """What one worker and its owner say to each other."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.init_error: bytes | None = None
        self.closed = False
        self._queue: queue.SimpleQueue[Invocation | None] = queue.SimpleQueue()
        self._running: Invocation | None = None

    def submit(self, invocation: Invocation) -> None:
        """Hand the next call to the worker."""
        self._running = invocation
        if self.closed:
            self.close()
        self._queue.put(invocation)

    def close(self) -> None:
        """Note that the worker has ended; whoever waits for it is woken."""
        self.closed = True
        running = self._running
        if running is not None and not running.done.is_set():
            running.died = True
            running.done.set()
        self.ready.set()
        self._queue.put(None)

    def next(self) -> Invocation | None:
        """Wait for the next call; None when the channel is closed. Called by the API alone."""
        self.ready.set()
        return self._queue.get()

    def finish(self, request_id: str, result: bytes, *, failed: bool) -> bool:
        """Note the result of the running call; False if it is not (or no longer) running."""
        running = self._running
        if running is None or running.request_id != request_id or running.done.is_set():
            return False
        running.result, running.failed = result, failed
        running.done.set()
        return True


class RuntimeApi:
    """The server. `open` a channel for each worker; its address goes into the environment."""

    def __init__(self) -> None:
        self._channels: dict[str, Channel] = {}
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.channels = self._channels
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="runtime-api", daemon=True
        )
        self._thread.start()

    def open(self, worker_id: str) -> tuple[Channel, str]:
        """A new channel and the value of ``AWS_LAMBDA_RUNTIME_API`` that leads to it."""
        channel = self._channels[worker_id] = Channel()
        return channel, f"127.0.0.1:{self._server.server_address[1]}/{worker_id}"

    def discard(self, worker_id: str) -> None:
        """Forget a worker that has ended."""
        self._channels.pop(worker_id, None)

    def close(self) -> None:
        """Stop serving; channels are closed first by their owners."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    channels: dict[str, Channel]

    def handle_error(self, request: object, client_address: object) -> None:
        """A worker that was killed leaves a broken connection; there is nothing to say."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body in one packet: with Nagle and delayed ACKs a warm call takes 88 ms.
    disable_nagle_algorithm = True
    wbufsize = -1
    server: socketserver.BaseServer

    def do_GET(self) -> None:
        channel = self._channel()
        if channel is None or not self.path.endswith("/invocation/next"):
            self._answer(404, b"")
            return
        invocation = channel.next()
        if invocation is None:
            self.close_connection = True
            return
        deadline = int((time.time() + invocation.timeout) * 1000)
        self._answer(
            200,
            invocation.payload,
            {
                "Lambda-Runtime-Aws-Request-Id": invocation.request_id,
                "Lambda-Runtime-Deadline-Ms": str(deadline),
                "Lambda-Runtime-Invoked-Function-Arn": invocation.arn,
            },
        )

    def do_POST(self) -> None:
        body = self._body()
        channel = self._channel()
        if channel is None:
            self._answer(404, b"")
        elif self.path.endswith("/init/error"):
            channel.init_error = body
            self._answer(202, b'{"status":"OK"}')
        else:
            request_id, word = self.path.rsplit("/", 2)[-2:]
            known = channel.finish(request_id, body, failed=word == "error")
            self._answer(202 if known else 400, b'{"status":"OK"}')

    def _channel(self) -> Channel | None:
        worker_id, _, rest = self.path.lstrip("/").partition("/")
        if not rest.startswith(_VERSION):
            return None
        assert isinstance(self.server, _Server)
        return self.server.channels.get(worker_id)

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))
        body = bytearray()
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return bytes(body)

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response_only(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
