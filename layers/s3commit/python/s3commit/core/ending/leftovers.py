"""What an ended job has left: its manifests, notes and plan (I4)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from s3commit.core.ending.uploads import abort_uploads
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.limits import DELETE_AT_ONCE
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ListedObject, ObjectReader


def tidy(ports: Ports, directory: JobDirectory, record: JobRecord) -> bool:
    """Abort and delete what an ended job has left; False if all stays, since uploads are open."""
    # Listed first: a manifest that comes later names uploads that nobody has aborted here, and it
    # is all that its own event finds them by.
    scratch = scratch_of(ports.store, directory)
    seen = own_leftovers(ports.store, directory) + scratch
    if not abort_uploads(ports, directory):
        return False
    # What the client has put goes last: by that a sweep sees that something is left.
    for some in (seen[:DELETE_AT_ONCE], seen[DELETE_AT_ONCE:]):
        _delete(ports, directory.bucket, some)
    return True


def scratch_of(store: ObjectReader, directory: JobDirectory) -> list[ListedObject]:
    """What a job that has ended needs no more in its directory."""
    listed = store.list(directory.bucket, directory.prefix)
    return [one for one in listed if one.key.startswith(directory.tasks)]


def own_leftovers(store: ObjectReader, directory: JobDirectory) -> list[ListedObject]:
    """What the pipeline has written for itself, save the decision: that stays as documents do."""
    own = store.list(directory.bucket, directory.pipeline_prefix)
    return [listed for listed in own if listed.key != directory.decision]


def _delete(ports: Ports, bucket: str, seen: Iterable[ListedObject]) -> None:
    """Delete the objects, many with one request; what is another one since is not ours to delete.

    A hundred thousand manifests, one by one, take longer than a call has time for.
    """
    remaining = iter(seen)
    groups = iter(lambda: list(islice(remaining, DELETE_AT_ONCE)), [])
    for _done in ports.parallel(lambda some: ports.store.delete_seen(bucket, some), groups):
        pass
