"""Browsers that look at the page of a desk."""

import json
from collections.abc import Iterator
from typing import Any, ClassVar

from jinja2.bccache import Bucket, BytecodeCache

from s3commit.cli.page.server import make_page
from tests.cli.support import TABLE, Desk

PORT = 8473
HOME = f"http://127.0.0.1:{PORT}"


class Compiled(BytecodeCache):
    """The page's templates, compiled once for all its applications."""

    code: ClassVar[dict[str, bytes]] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self.code:
            bucket.bytecode_from_string(self.code[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self.code[bucket.key] = bucket.bytecode_to_string()


class Browser:
    """A browser that was given the address, and one that was not."""

    def __init__(self, desk: Desk) -> None:
        desk.session.typed["table"] = TABLE
        self.application, self.address = make_page(desk.session, PORT)
        self.application.jinja_env.bytecode_cache = Compiled()
        self.token = self.address.removeprefix(f"{HOME}/?token=")
        self.cookie = f"s3commit-{PORT}={self.token}"
        self.client = self.application.test_client(use_cookies=False)

    @property
    def known(self) -> Any:
        return {"base_url": HOME, "headers": {"Cookie": self.cookie}}

    def ask(self, path: str, method: str = "GET", **headers: str) -> Any:
        """One request with these headers; the cookie too, unless another is given."""
        path, _, query = path.partition("?")
        to = {"PATH_INFO": path, "QUERY_STRING": query}  # the client would read a host in it
        sent = {"Cookie": self.cookie, **headers}
        answer = self.client.open(method=method, base_url=HOME, headers=sent, environ_overrides=to)
        if answer.status_code == 200:
            answer.close()  # a stream has no end
        return answer

    def get(self, path: str, status: int = 200, **asked: Any) -> str:
        answer = self.client.get(path, **self.known, query_string=asked or None)
        assert answer.status_code == status, answer.text
        return answer.text

    def told(self, path: str, **asked: Any) -> Iterator[str]:
        """What a stream says, chunk by chunk."""
        answer = self.client.get(path, **self.known, query_string=asked)
        return (chunk if isinstance(chunk, str) else chunk.decode() for chunk in answer.response)


def inside(event: str) -> str:
    """What an event says."""
    return str(json.loads(event.partition("data: ")[2]))
