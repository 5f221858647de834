"""The jobs committed since one whose driver is dead began, and the effect of a late commit."""

from collections.abc import Collection
from functools import partial
from itertools import chain
from operator import attrgetter

from s3commit.cli.job_facts import JobFacts
from s3commit.cli.render import moment
from s3commit.cli.session import Session
from s3commit.core.documents.commit_manifest import stream_commit_manifest
from s3commit.core.documents.job_json import JobSpec
from s3commit.core.formats.layout import directories_above, partition_of
from s3commit.core.jobs.past_commits import Commit, manifests_at, manifests_below, read_commits
from s3commit.core.model.destination import Conflict, Destination, Scope
from s3commit.core.model.errors import NOT_READABLE
from s3commit.core.model.limits import MAX_NAMED, MAX_NODES
from s3commit.core.model.locks import destination_node, meet
from s3commit.core.ports.parallel import in_order


def others_since(session: Session, job: JobFacts) -> list[Commit]:
    """The jobs committed at the destination, or at a table above, since this one began.

    Where this one replaces, also those at tables inside. Requests: a listing of ``_commits/`` at
    each directory, or of all that is at the destination, and a GET for each of the jobs.
    """
    own, store = job.directory.destination, session.store
    began = job.record.opened_at if job.record else ""
    began = began or (job.spec.put_at if job.spec else "")
    places = (Destination(own.bucket, at) for at in directories_above(own.prefix))
    removes = job.spec is not None and job.spec.conflict is Conflict.REPLACE
    below = store.list(own.bucket, own.prefix)
    here = manifests_below(own.bucket, below) if removes else manifests_at(store, own)
    listed = chain(*(manifests_at(store, at) for at in places), here)
    since = (one for one in listed if one[1].modified >= began)
    return sorted(read_commits(store, session.parallel, since), key=attrgetter("moment"))


def told(others: list[Commit]) -> str:
    """In a line, which jobs they are: those that replaced first."""
    by_kind = sorted(others, key=_has_replaced, reverse=True)
    names = [
        f"{one.header.job_id} at {one.directory.destination.uri}"
        f" ({_did(one)}, {moment(one.put_at)})"
        for one in by_kind[:MAX_NAMED]
    ]
    more = f" and {len(others) - MAX_NAMED} more" if len(others) > MAX_NAMED else ""
    return f"others were committed there since this job began: {', '.join(names)}{more}"


def doubt_of(
    session: Session, spec: JobSpec, partitions: Collection[str], others: list[Commit]
) -> str:
    """Why a person must say that the job is to be committed after the others; empty if not.

    One of them replaced where the job has files, in ``partitions``, perhaps as its second run; or
    the job would remove what they appended. Appends beside appends need no word. Requests: the list
    of files of each that may meet it.
    """
    removes = spec.conflict is Conflict.REPLACE and not spec.undoes
    is_whole = spec.conflict is Conflict.REPLACE and spec.scope is Scope.DIRECTORY
    own = _nodes(spec.destination, () if is_whole else partitions)
    asked = [one for one in others if removes or _has_replaced(one)]
    places = in_order(session.parallel, partial(_where, session), asked)
    others = [one for one, nodes in zip(asked, places, strict=True) if meet(own, nodes)]
    replaced = any(map(_has_replaced, others))
    if removes and replaced:
        does = "end in an abort after a later overwrite, and else remove what they committed"
    elif removes and others:
        does = "remove what they appended"
    elif replaced:
        does = "add its rows to theirs"
    else:
        return ""
    return f"{told(others)}. A commit would {does}"


def _where(session: Session, other: Commit) -> set[str]:
    """The nodes where the job has files, or has removed some."""
    place, names = other.directory.destination, set[str]()
    if other.undoes or other.header.scope is Scope.PARTITION or not _has_replaced(other):
        try:
            for job in filter(None, (other.directory, other.undoes)):
                _, files = stream_commit_manifest(session.store, job)
                names.update(partition_of(file.key[len(place.prefix) :]) for file in files)
        except NOT_READABLE:
            names.clear()
    return _nodes(place, names)


def _nodes(place: Destination, partitions: Collection[str]) -> set[str]:
    """As a job locks them: the whole destination, if there are none or too many."""
    node = destination_node(place)
    nodes = {node + (name or "./") for name in partitions}
    return nodes if 0 < len(nodes) <= MAX_NODES else {node}


def _did(other: Commit) -> str:
    return "undid a job" if other.undoes else "replaced" if _has_replaced(other) else "appended"


def _has_replaced(other: Commit) -> bool:
    return other.header.replaced is not None
