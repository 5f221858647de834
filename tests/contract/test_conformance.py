"""The store in memory against the S3 adapter on moto: any sequence of calls, the same answers.

What the suite's examples don't think of. Upload ids and version ids differ by nature; everything
else that a caller sees must not, the class of each error included.
"""

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from s3commit.aws.clients import make_client
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.model.errors import S3CommitError, UploadGoneError
from s3commit.core.ports.objects import ListedObject, ObjectFacts, ObjectStore
from tests.contract.given import make_bucket
from tests.fakes.memory import MemoryObjectStore

KEYS = st.sampled_from(["t/a", "t/a/b", "t/b+c d"])
BODIES = st.sampled_from([b"", b"1", b"22"])
ETAGS = st.sampled_from(
    ['"d41d8cd98f00b204e9800998ecf8427e"', '"c4ca4238a0b923820dcc509a6f75849b"']
)

Pair = tuple[str, str, str]  # key, upload id in memory, upload id on S3
_BUCKETS = itertools.count()


class Conformance(RuleBasedStateMachine):
    """Each rule makes one call on both and compares what they say."""

    client: Any
    real: S3ObjectStore

    uploads: Bundle[Pair] = Bundle("uploads")

    def __init__(self) -> None:
        super().__init__()
        self.bucket = f"conformance-{next(_BUCKETS)}"
        self.memory = MemoryObjectStore(self.bucket)
        make_bucket(self.client, self.bucket)
        self.parts: dict[str, tuple[list[str], int]] = {}  # the first part's etag, and its length

    def both(self, call: Callable[[ObjectStore], Any]) -> None:
        assert _seen(lambda: call(self.memory)) == _seen(lambda: call(self.real))

    @rule(key=KEYS, body=BODIES, if_absent=st.booleans())
    def put(self, key: str, body: bytes, if_absent: bool) -> None:
        self.both(lambda store: store.put(self.bucket, key, body, if_absent=if_absent))

    @rule(key=KEYS, body=BODIES, etag=ETAGS)
    def put_if_match(self, key: str, body: bytes, etag: str) -> None:
        self.both(lambda store: store.put(self.bucket, key, body, if_match=etag))

    @rule(key=KEYS, etag=st.none() | ETAGS)
    def delete(self, key: str, etag: str | None) -> None:
        self.both(lambda store: store.delete(self.bucket, key, if_match=etag))

    @rule(seen=st.lists(st.builds(ListedObject, KEYS, ETAGS, st.just(1)), max_size=3))
    def delete_seen(self, seen: list[ListedObject]) -> None:
        self.both(lambda store: store.delete_seen(self.bucket, seen))

    @rule(key=KEYS, bound=st.integers(0, 3))
    def get(self, key: str, bound: int) -> None:
        self.both(lambda store: store.get(self.bucket, key, max_bytes=bound))

    @rule(target=uploads, key=KEYS)
    def create_upload(self, key: str) -> Pair:
        in_memory, on_s3 = (
            store.create_upload(
                self.bucket, key, metadata={"S3commit-Job": key[-1]}, content_type="x/y"
            )
            for store in (self.memory, self.real)
        )
        return key, in_memory, on_s3

    @rule(upload=uploads, number=st.integers(1, 2), body=BODIES)
    def upload_part(self, upload: Pair, number: int, body: bytes) -> None:
        self.on(upload, lambda s, k, u: s.upload_part(self.bucket, k, u, number, body))
        if number == 1 and self.memory.upload_is_open(self.bucket, upload[0], upload[1]):
            etag = self.memory.upload_part(self.bucket, upload[0], upload[1], 1, body)
            self.parts[upload[1]] = [etag], len(body)

    @rule(upload=uploads)
    def abort_upload(self, upload: Pair) -> None:
        self.on(upload, lambda s, k, u: s.abort_upload(self.bucket, k, u))

    @rule(upload=uploads, if_absent=st.booleans())
    def complete_upload(self, upload: Pair, if_absent: bool) -> None:
        """With its length: moto takes any (`tests.contract.conftest.Differences`)."""
        key, in_memory, _ = upload
        etags, length = self.parts.get(in_memory, ([], 0))
        if not self.memory.upload_is_open(self.bucket, key, in_memory):
            # moto may say 200 to a repetition, and S3 may: the port leaves it open
            with contextlib.suppress(UploadGoneError):
                self.real.complete_upload(
                    self.bucket, key, upload[2], etags or ['"e"'], length=length
                )
            return
        self.on(
            upload,
            lambda s, k, u: _without_version(
                s.complete_upload(self.bucket, k, u, etags, length=length, if_absent=if_absent)
            ),
        )

    @rule(upload=uploads, key=KEYS)
    def is_open(self, upload: Pair, key: str) -> None:
        self.on(upload, lambda s, _k, u: s.upload_is_open(self.bucket, key, u))

    @invariant()
    def the_same_is_visible(self) -> None:
        self.both(lambda store: list(store.list(self.bucket, "t/")))
        for line in self.memory.list(self.bucket, ""):
            assert self.memory.head(self.bucket, line.key) == self.real.head(self.bucket, line.key)

    @invariant()
    def the_same_uploads_are_open(self) -> None:
        self.both(lambda store: [upload.key for upload in store.list_uploads(self.bucket, "t/a")])

    def on(self, upload: Pair, call: Callable[[ObjectStore, str, str], Any]) -> None:
        key, in_memory, on_s3 = upload
        assert _seen(lambda: call(self.memory, key, in_memory)) == _seen(
            lambda: call(self.real, key, on_s3)
        )


def _seen(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except S3CommitError as error:
        return type(error), error.code


def _without_version(facts: ObjectFacts) -> tuple[str, str, int]:
    return facts.key, facts.etag, facts.length


def test_memory_and_s3_can_not_be_told_apart(
    moto_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    client = make_client()

    on_moto = {"client": client, "real": S3ObjectStore(client, page=3)}
    machine = type("OnMoto", (Conformance,), on_moto)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=max(5, settings().max_examples // 10), stateful_step_count=15
        ),
    )
