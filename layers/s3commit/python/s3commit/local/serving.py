"""WSGI applications on 127.0.0.1, in threads of this process; one of them is moto's.

The server is waitress: unlike werkzeug's, it keeps connections.
"""

import functools
import logging
import os
import re
import socket
import threading
from collections.abc import Callable
from typing import Any, cast

from s3commit.local import LocalRuntimeError

HOST = "127.0.0.1"
THREADS = 64  # more than the requests that wait for a function, or watch a page, at a time
MAX_CONNECTIONS = 4000
# In bytes, of S3: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html
MAX_BODY = 5 * 1024**3
METADATA = re.compile(rb"(?m)^X-Amz-Meta-[^:]*")
LOG = logging.getLogger("s3commit.requests")
# Wraps the WSGI application of AWS's APIs, and so sees each request first.
Middleware = Callable[[Any], Any]


class Serving:
    """Serves from construction until `close` what ``make`` makes for the port; 0 picks a free one.

    Its address is ``url``. ``channel`` is waitress's class for a connection.
    Raises `LocalRuntimeError` if the port is in use.
    """

    def __init__(
        self, port: int, make: Callable[[int], Any], name: str, channel: Any = None
    ) -> None:
        from waitress import create_server
        from waitress.channel import HTTPChannel

        try:
            listening = socket.create_server((HOST, port), backlog=256)
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise LocalRuntimeError(
                f"port {port} can't be used: {why}; choose another one, of 1024 or above"
            ) from error
        self.port: int = listening.getsockname()[1]
        self.url = f"http://{HOST}:{self.port}"
        self._open: dict[int, Any] = {}
        self._server: Any = create_server(
            make(self.port),
            map=self._open,
            sockets=[listening],
            threads=THREADS,
            connection_limit=MAX_CONNECTIONS,
            asyncore_use_poll=True,
            max_request_body_size=MAX_BODY,
        )
        self._server.channel_class = channel or HTTPChannel
        self._thread = threading.Thread(target=self._server.run, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop accepting; requests that run are let go."""
        from waitress.wasyncore import close_all

        # The server's loop ends when nothing is open; a thread, when it has answered.
        self._server.trigger.pull_trigger(lambda: close_all(self._open, ignore_all=True))
        self._thread.join()
        self._server.task_dispatcher.set_thread_count(0)


class Endpoint(Serving):
    """Serves every AWS API at one URL, from construction until `close`, as `Serving`.

    ``verbose`` logs each request to stderr.
    ``middleware`` sees each request first.
    """

    def __init__(
        self, port: int = 0, *, verbose: bool = False, middleware: Middleware | None = None
    ) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

        # moto says at length how each task of a state machine failed; the function has logged it.
        logging.getLogger("moto").setLevel(logging.INFO if verbose else logging.CRITICAL)
        logging.getLogger("waitress").setLevel(logging.INFO if verbose else logging.ERROR)
        self.moto = application = cast("Any", DomainDispatcherApplication(create_backend_app))
        # Otherwise moto lists its own directory for each request, while others wait.
        application.get_backend_for_host = functools.cache(application.get_backend_for_host)
        if verbose:
            application = _logged(application)
        wrapped = middleware(application) if middleware else application
        super().__init__(port, lambda _port: wrapped, "endpoint", _moto_channel())


def _logged(application: Any) -> Any:
    LOG.setLevel(logging.INFO)
    LOG.addHandler(logging.StreamHandler())

    def asked(environ: dict[str, Any], start: Any) -> Any:
        def started(status: str, *answer: Any) -> Any:
            LOG.info("%s %s: %s", environ["REQUEST_METHOD"], environ["REQUEST_URI"], status)
            return start(status, *answer)

        return application(environ, started)

    return asked


def _moto_channel() -> Any:
    """A connection of waitress that has what moto's own server has.

    The path as it was sent, names of metadata with an underscore (which waitress drops) and in
    lower case (which it capitalizes), and the socket, for a middleware that loses connections.
    """
    from moto.core import request as moto
    from waitress.channel import HTTPChannel
    from waitress.parser import HTTPRequestParser
    from waitress.task import WSGITask

    class Parser(HTTPRequestParser):  # type: ignore[misc]
        def parse_header(self, header_plus: bytes) -> None:
            super().parse_header(header_plus)
            # Otherwise it waits for the body of a request that has none.
            self.expect_continue &= self.chunked or self.content_length > 0
            lines = header_plus.decode("latin-1").split("\r\n")[1:]
            sent = (line.partition(":")[::2] for line in lines)
            self.kept = {
                name: value.strip()
                for name, value in sent
                if moto.should_preserve_original_header_name(name)
            }

    class Task(WSGITask):  # type: ignore[misc]
        def get_environment(self) -> dict[str, Any]:
            environ: dict[str, Any] = super().get_environment()
            names = {moto.environ_key_for_header(name): name for name in self.request.kept}
            environ.update({key: self.request.kept[name] for key, name in names.items()})
            environ[moto.PRESERVED_HEADER_NAMES_ENVIRON_KEY] = names
            environ["RAW_URI"] = environ["REQUEST_URI"]
            environ["s3commit.socket"] = self.channel.socket
            return environ

        def build_response_header(self) -> bytes:
            return METADATA.sub(lambda name: name[0].lower(), super().build_response_header())

    class Channel(HTTPChannel):  # type: ignore[misc]
        task_class, parser_class = Task, Parser

    return Channel


def forget_everything() -> None:
    """Empty all of moto's backends, which are the process's."""
    from moto.core.base_backend import BackendDict
    from moto.core.model_instances import reset_model_data

    BackendDict.reset()
    reset_model_data()
