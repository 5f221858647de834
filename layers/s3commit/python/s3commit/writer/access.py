"""The connections to S3, and whose credentials they have: the process's, or a ``boto3_session``'s.

One client, made when first needed, serves all tasks of a process, until a variable of AWS's
changes. That of a session serves the call that has it, and no other call finds it.
"""

from __future__ import annotations

import os
import threading
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from s3commit.aws.clients import Boto3Session, Encryption, S3Client, is_aws, make_client
from s3commit.core.model.errors import InvalidInputError

if TYPE_CHECKING:
    from s3commit.aws.s3 import S3ObjectStore

MAX_CLIENTS: Final = 8  # of a process: places, and keys that have expired
Where = tuple[str | None, str | None]  # region and endpoint; None is what the configuration says


@lru_cache(MAX_CLIENTS)
def shared_client(where: Where = (None, None), _settings: int = 0) -> S3Client:
    """The process's client by the standard AWS configuration; to make one takes 0.25 s."""
    return make_client(region=where[0], endpoint=where[1])


def _variables() -> int:
    """A digest of AWS's variables: a notebook sets others when its keys have expired."""
    names = [name for name in os.environ if name.startswith("AWS_")]
    return hash(frozenset((name, os.environ.get(name)) for name in names))


def _store(client: S3Client, encryption: Encryption | None) -> S3ObjectStore:
    from s3commit.aws.s3 import S3ObjectStore  # noqa: PLC0415 - it loads botocore

    return S3ObjectStore(client, encryption=encryption)


# One for all tasks: it notes how requests are sent, and has connections.
_shared_store: Final = lru_cache(MAX_CLIENTS)(_store)
# Threads that need a store at the same time shall make one client, and not one each.
_connecting: Final = cache(threading.RLock)
# A forked process must not share connections, nor wait for a thread that it does not have.
for _cached in (shared_client, _shared_store, _connecting):
    os.register_at_fork(after_in_child=_cached.cache_clear)


class Access:
    """The way of a call, or of a job, to S3, by a session or the process's own; thread-safe.

    Raises `InvalidInputError` (``BAD_OPTION``) for what is not a session.
    """

    def __init__(self, session: Boto3Session | None = None, where: Where = (None, None)) -> None:
        self.session, self._where = session, where
        # By process: a forked one has the session, but must not share connections.
        self._client = cache(lambda _process: self.make_client())
        self._store = _shared_store
        if session is not None:
            from boto3.session import Session  # noqa: PLC0415 - who has one has loaded it

            if not issubclass(type(session), Session):  # it may be keys: they are not shown
                why = f"boto3_session={type(session).__name__}: give boto3.Session(...)"
                raise InvalidInputError(why, code="BAD_OPTION")
            self._store = cache(_store)

    def make_client(self, **how: Any) -> S3Client:
        """A client of the caller's own; the keywords are those of `clients.make_client`."""
        region, endpoint = self._where
        return make_client(session=self.session, region=region, endpoint=endpoint, **how)

    def client(self) -> S3Client:
        """The client of the session, or the process's."""
        if self.session:
            return self._client(os.getpid())
        return shared_client(self._where, _variables())

    def store(self, encryption: Encryption | None) -> S3ObjectStore:
        """The store of that client, for objects that are encrypted as given."""
        with _connecting():
            return self._store(self.client(), encryption)

    def elsewhere(self, session: Boto3Session | None = None) -> Access:
        """The same region and store for another process, which has its own credentials.

        An endpoint of AWS's is not named: in its network the other process may need another one.
        """
        where = self._where
        if self.session:
            client = self.client()
            endpoint = None if is_aws(client) else client.meta.endpoint_url
            where = client.meta.region_name, endpoint
        return Access(session, where)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.session:  # cloudpickle would write its keys
            raise TypeError(
                "boto3_session cannot be sent to another process, as Spark Connect sends the"
                " function of foreachBatch to its server. Nothing was sent. Leave it out: the"
                " server has its own credentials"
            )
        return Access, (None, self._where)


OWN: Final = Access()
"""By the standard AWS configuration of the process."""
