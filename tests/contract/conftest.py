"""The implementations that one behaviour suite runs on, and where they are known to differ."""

import itertools
import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import boto3
import pytest
from botocore.exceptions import ClientError

from s3commit.aws.clients import make_client
from s3commit.aws.ledger import DynamoLedger
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.ports.ledger import Ledger
from s3commit.core.ports.objects import ObjectFacts, ObjectStore
from tests.contract.given import GivenLedger, clear, empty, given, items, make_bucket, own_prefix
from tests.fakes.bucket import CUSTOMER
from tests.fakes.memory import ManualClock, MemoryLedger, MemoryObjectStore
from tests.servers import REGION

T = TypeVar("T")

PART = 5 * 1024 * 1024  # S3's minimum
PAGE = 7  # of the adapters, so that every longer listing has pages
THREADS = 8


@dataclass(frozen=True)
class Differences:
    """Where an implementation does not do what S3 does; a test asserts what it does instead."""

    checks_length: bool = True  # False: MpuObjectSize is ignored
    lists_in_key_order: bool = True  # False: what is below `b/` comes before `b-`
    pages_uploads: bool = True  # False: a truncated listing of uploads has no NextKeyMarker
    encodes_upload_keys: bool = True  # False: says that it encodes the keys of uploads, does not
    completes_atomically: bool = True  # False: completions at once with If-None-Match may all win
    deletes_atomically: bool = True  # False: a put between a delete's look and its act is lost
    bounds_keys: bool = True  # False: a key may have more than 1,024 bytes
    bounds_keys_read: bool = True  # False: a longer key is one at which nothing is
    bounds_deletes: bool = True  # False: a request may delete more than 1,000 objects
    asks_for_keys: bool = True  # False: what is under SSE-C is read by those who have no key
    flat: bool = True  # False: no object lies at a directory's own name
    archives: bool = True  # False: an archived object is read like any other
    dates_by_start: bool = True  # False: what came in parts is from when its upload was completed
    # Verbs that a bucket's policy does not deny, whatever it says.
    not_denied: frozenset[str] = frozenset()


KNOWN = {
    "aws": Differences(),
    "memory": Differences(),
    "moto": Differences(
        bounds_keys=False, bounds_deletes=False, asks_for_keys=False, not_denied=frozenset({"head"})
    ),
    "weed": Differences(
        flat=False,
        checks_length=False,
        lists_in_key_order=False,
        pages_uploads=False,
        encodes_upload_keys=False,
        completes_atomically=False,
        deletes_atomically=False,
        bounds_keys_read=False,
        not_denied=frozenset({"delete_seen"}),
        archives=False,
        dates_by_start=False,
    ),
    "versity": Differences(  # the rest is in tests/engines/judges/differences.json
        flat=False,
        deletes_atomically=False,
        bounds_keys=False,
        bounds_deletes=False,
        archives=False,
        dates_by_start=False,
    ),
}


@dataclass
class Backend:
    """One implementation with its two buckets, one of them versioned.

    ``base`` is the prefix below which the suite works there.
    """

    name: str
    store: ObjectStore
    versioned_store: ObjectStore
    known: Differences
    bucket: str = "contract"
    versioned: str = "contract-versioned"
    base: str = ""
    places: Iterator[int] = field(default_factory=itertools.count)
    client: Any = None  # what lays the obstacles on S3; None: the store in memory does

    def place(self, store: ObjectStore, bucket: str) -> "Place":
        prefix = f"{self.base}place-{next(self.places)}/"
        return Place(store, bucket, prefix, self.known)

    def archive(self, key: str, body: bytes) -> None:
        """An object in the archive, as a lifecycle rule or its writer puts it there."""
        if isinstance(self.store, MemoryObjectStore):
            self.store.put(self.bucket, key, body)
            self.store.archive(self.bucket, key)
        else:
            self.client.put_object(Bucket=self.bucket, Key=key, Body=body, StorageClass="GLACIER")

    def encrypt(self, key: str, body: bytes) -> None:
        """An object under a key of its writer's own, which S3 does not keep (SSE-C)."""
        if isinstance(self.store, MemoryObjectStore):
            self.store.put(self.bucket, key, body)
            self.store.encrypt(self.bucket, key, CUSTOMER)
        else:
            own = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": "k" * 32}
            self.client.put_object(Bucket=self.bucket, Key=key, Body=body, **own)

    @contextmanager
    def denying(self, prefix: str, *actions: str) -> Iterator[None]:
        """Nobody may do these things below the prefix, by the bucket's policy."""
        if isinstance(self.store, MemoryObjectStore):
            self.store.deny(self.bucket, prefix, *actions)
            try:
                yield
            finally:
                self.store.allow(self.bucket)
            return
        statement = {
            "Effect": "Deny",
            "Principal": "*",
            "Action": list(actions),
            "Resource": f"arn:aws:s3:::{self.bucket}/{prefix}*",
        }
        before = self._policy()
        policy = {**before, "Statement": [*before["Statement"], statement]}
        self.client.put_bucket_policy(Bucket=self.bucket, Policy=json.dumps(policy))
        try:
            yield
        finally:
            if before["Statement"]:
                self.client.put_bucket_policy(Bucket=self.bucket, Policy=json.dumps(before))
            else:
                self.client.delete_bucket_policy(Bucket=self.bucket)

    def _policy(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self.client.get_bucket_policy(Bucket=self.bucket)["Policy"]))
        except ClientError:
            return {"Version": "2012-10-17", "Statement": []}


@dataclass
class Place:
    """A prefix of the backend's bucket for one test alone."""

    store: ObjectStore
    bucket: str
    prefix: str
    known: Differences

    def key(self, name: str = "data") -> str:
        return self.prefix + name

    def later(self, seconds: float) -> None:
        """Let time pass for the store."""
        if isinstance(self.store, MemoryObjectStore):
            self.store.clock.sleep(seconds)
        else:
            time.sleep(seconds)

    def upload(self, key: str, *parts: bytes, **metadata: str) -> tuple[str, list[str]]:
        """Start an upload and send its parts: its id and etags."""
        upload_id = self.store.create_upload(
            self.bucket, key, metadata=metadata, content_type="application/octet-stream"
        )
        etags = [
            self.store.upload_part(self.bucket, key, upload_id, number, part)
            for number, part in enumerate(parts, start=1)
        ]
        return upload_id, etags

    def complete(self, key: str, *parts: bytes, **metadata: str) -> ObjectFacts:
        """An upload from start to end."""
        upload_id, etags = self.upload(key, *parts, **metadata)
        length = sum(map(len, parts))
        return self.store.complete_upload(self.bucket, key, upload_id, etags, length=length)

    def body(self, key: str) -> bytes:
        return self.store.get(self.bucket, key, max_bytes=100 * PART).body


def at_once(calls: Sequence[Callable[[], T]]) -> list[T | Exception]:
    """Make the calls on a thread each; what each returned or raised."""

    def outcome(call: Callable[[], T]) -> T | Exception:
        try:
            return call()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(outcome, calls))


def winners(
    outcomes: Sequence[T | Exception], *, lose_by: type[Exception] | tuple[type[Exception], ...]
) -> list[T]:
    """What those who won returned; every other lost by ``lose_by``."""
    won = []
    for outcome in outcomes:
        if not isinstance(outcome, Exception):
            won.append(outcome)
        elif not isinstance(outcome, lose_by):
            raise outcome
    return won


def _s3_backend(name: str, endpoint: str) -> Backend:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", endpoint)
        client = make_client()
    store = S3ObjectStore(client, page=PAGE)
    # Of its own: a fixture with parameters is set up again for each file that xdist deals out.
    bucket = f"contract-{uuid.uuid4().hex}"
    backend = Backend(name, store, store, KNOWN[name], bucket, f"{bucket}-versioned", client=client)
    for bucket in (backend.bucket, backend.versioned):
        make_bucket(client, bucket)
    client.put_bucket_versioning(
        Bucket=backend.versioned, VersioningConfiguration={"Status": "Enabled"}
    )
    return backend


def pytest_addoption(parser: pytest.Parser) -> None:
    """The switch: all of it, or nothing."""
    group = parser.getgroup("contract", "run on buckets and a table that are there")
    group.addoption("--bucket", help="a bucket without versioning")
    group.addoption("--versioned-bucket", help="a bucket with versioning")
    group.addoption("--table", help="an empty table with the keys and the index of the ledger's")
    group.addoption("--machine-role", help="the ARN of a role for state machines")
    group.addoption(
        "--differences", default="aws", help="whose known differences hold: aws (none), moto, …"
    )
    group.addoption("--s3", help="the URL of a versitygw server: make judge-stores")


def pytest_configure(config: pytest.Config) -> None:
    """Some of the options without the others are an error of usage."""
    given(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a store alone its tests, and those of AWS alone nowhere else."""
    if config.getoption("s3", None):
        items[:] = [item for item in items if "backend" in getattr(item, "fixturenames", ())]
    if not given(config) or config.getoption("differences") != "aws":
        items[:] = [item for item in items if not item.get_closest_marker("on_aws")]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each implementation in turn, or the one that is given."""
    is_given = bool(given(metafunc.config))
    names = ["given"] if is_given else ["memory", "moto"]
    if "backend" in metafunc.fixturenames:
        stores = names if is_given else [*names, "weed"]
        stores = ["versity"] if metafunc.config.getoption("s3", None) else stores
        metafunc.parametrize("backend", stores, indirect=True, scope="session")
    for fixture in ("ledger", "executions"):
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, names, indirect=True)


@pytest.fixture(scope="session")
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """Each object store in turn."""
    if request.param == "given":
        options, client = given(request.config), make_client()
        store = S3ObjectStore(client, page=PAGE)
        buckets = options["--bucket"], options["--versioned-bucket"]
        known, base = KNOWN[request.config.getoption("differences")], own_prefix()
        yield Backend("given", store, store, known, *buckets, base=base, client=client)
        for bucket in buckets:
            empty(client, bucket, base)
    elif request.param == "memory":
        plain = MemoryObjectStore("contract")
        versioned = MemoryObjectStore("contract-versioned", versioned=True)
        yield Backend("memory", plain, versioned, KNOWN["memory"])
    elif request.param == "versity":
        yield _s3_backend("versity", request.config.getoption("s3"))
    else:
        yield _s3_backend(request.param, request.getfixturevalue(f"{request.param}_endpoint"))


@pytest.fixture
def place(backend: Backend) -> Place:
    """A prefix of its own in the bucket without versions."""
    return backend.place(backend.store, backend.bucket)


@pytest.fixture
def versioned(backend: Backend) -> Place:
    """A prefix of its own in the bucket with versions."""
    return backend.place(backend.versioned_store, backend.versioned)


def create_table(name: str, endpoint: str | None, region: str = REGION) -> None:
    """The ledger's table, as the storage stack has it."""
    keys = [("pk", "HASH"), ("sk", "RANGE")]
    by_state = [("shelf", "HASH"), ("updated_at", "RANGE")]
    of_table, of_index = (
        [{"AttributeName": name, "KeyType": kind} for name, kind in some]
        for some in (keys, by_state)
    )
    everything = {"ProjectionType": "ALL"}
    dynamodb: Any = boto3.client("dynamodb", endpoint_url=endpoint, region_name=region)
    dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": one, "AttributeType": "S"} for one, _ in (*keys, *by_state)
        ],
        KeySchema=of_table,
        GlobalSecondaryIndexes=[
            {"IndexName": "by-state", "KeySchema": of_index, "Projection": everything}
        ],
    )


@pytest.fixture
def clock() -> ManualClock:
    """The ledger's."""
    return ManualClock()


@pytest.fixture
def ledger(request: pytest.FixtureRequest, clock: ManualClock) -> Iterator[Ledger]:
    """Each ledger in turn, empty."""
    if request.param == "memory":
        yield MemoryLedger(clock)
    elif request.param == "given":
        table = given(request.config)["--table"]
        if next(items(table), None) is not None:
            pytest.exit(f"table {table} has items: give the suite one that is empty", 2)
        yield GivenLedger(table, page=PAGE, clock=clock)
        clear(table)
    else:
        endpoint = request.getfixturevalue("moto_endpoint")
        table = f"ledger-{next(_TABLES)}"
        create_table(table, endpoint)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AWS_ENDPOINT_URL", endpoint)
            yield DynamoLedger(table, page=PAGE, clock=clock)


_TABLES = itertools.count()
