"""The HTTP endpoint: moto's application in this process, on a port of its own."""

# ruff: noqa: PLC0415 - moto takes half a second: who only reads this module does not pay
from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

from s3commit.local.serving import HOST, Serving

# Wraps the WSGI application of AWS's APIs, and so sees each request first.
Middleware = Callable[[Any], Any]


class Endpoint:
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

        # moto says at length how each task of a state machine failed; the function said it before.
        for name, quiet in (("werkzeug", logging.ERROR), ("moto", logging.CRITICAL)):
            logging.getLogger(name).setLevel(logging.INFO if verbose else quiet)
        application: Any = DomainDispatcherApplication(create_backend_app)
        # Else moto lists its own directory for each request, and lets no other in meanwhile.
        application.get_backend_for_host = functools.cache(application.get_backend_for_host)
        wrapped = middleware(application) if middleware else application
        self._serving = Serving(port, lambda _port: wrapped, Handler, "endpoint")
        self.close = self._serving.close

    @property
    def url(self) -> str:
        """``http://127.0.0.1:<port>``."""
        return f"http://{HOST}:{self._serving.port}"


def forget_everything() -> None:
    """Empty all of moto's backends, which are the process's."""
    from moto.core.base_backend import BackendDict
    from moto.core.model_instances import reset_model_data

    BackendDict.reset()
    reset_model_data()
