"""A WSGI application on 127.0.0.1, in threads of this process."""

# ruff: noqa: PLC0415 - werkzeug comes with extras, and takes its time to import
from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from typing import Any

from s3commit.local import LocalRuntimeError

HOST = "127.0.0.1"


class Serving:
    """Serves from construction until `close` what ``make`` makes for the port; 0 picks a free one.

    Raises `LocalRuntimeError` if the port is in use. ``handler`` is werkzeug's class for a request.
    """

    def __init__(self, port: int, make: Callable[[int], Any], handler: Any, name: str) -> None:
        from werkzeug.serving import make_server

        class Handler(handler):  # type: ignore[misc]
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

        try:
            self._socket = socket.create_server((HOST, port), backlog=256)
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise LocalRuntimeError(
                f"port {port} can't be used: {why}; choose another one, of 1024 or above"
            ) from error
        self.port: int = self._socket.getsockname()[1]
        server: Any = make_server(
            HOST,
            self.port,
            make(self.port),
            threaded=True,
            request_handler=Handler,
            fd=self._socket.fileno(),
        )
        server.daemon_threads, server.block_on_close = True, False
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop accepting; requests that run are let go."""
        self._server.shutdown()
        self._server.server_close()
        self._socket.close()
        self._thread.join()
