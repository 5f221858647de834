"""The history of an execution, state by state."""

from typing import Any

from s3commit.aws.executions import machine_of
from s3commit.aws.history import StateVisits, read_history
from s3commit.cli.render import fields
from s3commit.cli.session import Session
from s3commit.core.model.errors import S3CommitError

_CUT = "only its latest events were read"
COLUMNS = "state, did, enteredAt, tookSeconds, visits, tries, error"


def history_document(session: Session, execution: str) -> dict[str, Any]:
    """Each state that the execution has entered; DID is ``done``, ``tried``, ``now`` or ``failed``.

    ``tried`` is one that is done, after an error. Of an execution that Step Functions has
    forgotten, or that can't be looked at, there are none, and ``problems`` say why.
    """
    document: dict[str, Any] = {"execution": execution or None, "states": [], "problems": []}
    if not machine_of(execution):
        return document
    try:
        client = session.deployment.connect("stepfunctions")
        visits, runs, complete = read_history(client, execution)
    except S3CommitError as error:
        return {**document, "problems": [f"its history cannot be read: {error.message}"]}
    states = [_document(one, session.epoch(), runs=runs) for one in visits]
    return {**document, "states": states, "problems": [] if complete else [_CUT]}


def _document(one: StateVisits, now: float, *, runs: bool) -> dict[str, Any]:
    is_there, took = one.left_at is None, one.seconds
    if is_there:
        did = "now" if runs else "failed"
        took += now - one.since.timestamp() if runs else 0
    else:
        did = "tried" if one.error else "done"
    return {
        **fields(one, "state", "entered_at", "left_at", "visits", "tries"),
        "did": did,
        "tookSeconds": max(0, int(took)),
        "error": one.error or None,
    }
