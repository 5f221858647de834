"""An HTTP proxy before an S3 server that stops answering, for good, at chosen requests.

With it a Spark driver stands still at a known point of its commit, to be killed there.
"""

from __future__ import annotations

import http.client
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import urlsplit


class HoldingProxy:
    """Forwards to ``endpoint``; past the first ``passed`` requests that match, holds them.

    A request is matched as ``POST /bucket/key?uploadId=…``. ``held`` is set at the first one
    that is held.
    """

    def __init__(self, endpoint: str, pattern: str, passed: int = 0) -> None:
        self.held = threading.Event()
        self._target = urlsplit(endpoint)
        self._pattern = re.compile(pattern)
        self._passed = passed
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._released = False
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _forward(self) -> None:
                proxy._forward(self)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _forward  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._server.shutdown()
        self._server.server_close()

    def release(self) -> None:
        """Hold nothing any more."""
        self._released = True
        self._end.set()

    def _hold(self, request: str) -> bool:
        if self._released or not self._pattern.search(request):
            return False
        with self._lock:
            self._passed -= 1
            return self._passed < 0

    def _forward(self, client: BaseHTTPRequestHandler) -> None:
        body = _body(client)
        if self._hold(f"{client.command} {client.path}"):
            self.held.set()
            self._end.wait()
            if not self._released:
                client.close_connection = True
                return
        connection = http.client.HTTPConnection(self._target.netloc, timeout=60)
        try:
            connection.putrequest(
                client.command, client.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in client.headers.items():
                if name.lower() not in {"connection", "expect", "transfer-encoding"}:
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            content = answer.read()
            client.send_response_only(answer.status, answer.reason)
            for name, value in answer.getheaders():
                if name.lower() not in {"connection", "transfer-encoding", "content-length"}:
                    client.send_header(name, value)
            length = answer.getheader("Content-Length") if client.command == "HEAD" else None
            client.send_header("Content-Length", length or str(len(content)))
            client.end_headers()
            client.wfile.write(content)
        finally:
            connection.close()


def _body(client: BaseHTTPRequestHandler) -> bytes:
    length = client.headers.get("Content-Length")
    if length is not None:
        return client.rfile.read(int(length))
    if client.headers.get("Transfer-Encoding", "").lower() != "chunked":
        return b""
    parts = []
    while size := int(client.rfile.readline().split(b";")[0], 16):
        parts.append(client.rfile.read(size))
        client.rfile.readline()
    client.rfile.readline()
    return b"".join(parts)
