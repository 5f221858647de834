"""WSGI applications on 127.0.0.1, in threads of this process; one of them is moto's."""

import functools
import logging
import os
import socket
import threading
from collections.abc import Callable
from typing import Any, cast

from s3commit.local import LocalRuntimeError

HOST = "127.0.0.1"
# Wraps the WSGI application of AWS's APIs, and so sees each request first.
Middleware = Callable[[Any], Any]


class Serving:
    """Serves from construction until `close` what ``make`` makes for the port; 0 picks a free one.

    Its address is ``url``. ``handler`` is werkzeug's class for a request. Raises
    `LocalRuntimeError` if the port is in use.
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
        self.url = f"http://{HOST}:{self.port}"
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


class Endpoint(Serving):
    """Serves every AWS API at one URL, from construction until `close`, as `Serving`.

    ``verbose`` logs each request to stderr.
    ``middleware`` sees each request first.
    """

    def __init__(
        self, port: int = 0, *, verbose: bool = False, middleware: Middleware | None = None
    ) -> None:
        from moto.moto_server.werkzeug_app import (
            DomainDispatcherApplication,
            MotoRequestHandler,
            create_backend_app,
        )

        class Handler(MotoRequestHandler):
            def log(self, type: str, message: str, *args: Any) -> None:
                if verbose:
                    super().log(type, message, *args)

        # moto says at length how each task of a state machine failed; the function has logged it.
        for name, quiet in (("werkzeug", logging.ERROR), ("moto", logging.CRITICAL)):
            logging.getLogger(name).setLevel(logging.INFO if verbose else quiet)
        self.moto = application = cast("Any", DomainDispatcherApplication(create_backend_app))
        # Otherwise moto lists its own directory for each request, while others wait.
        application.get_backend_for_host = functools.cache(application.get_backend_for_host)
        wrapped = middleware(application) if middleware else application
        super().__init__(port, lambda _port: wrapped, Handler, "endpoint")


def forget_everything() -> None:
    """Empty all of moto's backends, which are the process's."""
    from moto.core.base_backend import BackendDict
    from moto.core.model_instances import reset_model_data

    BackendDict.reset()
    reset_model_data()
