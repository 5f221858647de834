"""What is run on a changed document, and what must be true whatever it says."""

import random
from contextlib import suppress

from s3commit.core.documents.pendingset import PendingSet
from s3commit.core.documents.request_json import CommitRequest, encode_request
from s3commit.core.formats.layout import UNSPEAKABLE, is_hidden
from s3commit.core.formats.strict_json import one_line
from s3commit.core.model.errors import (
    InvalidInputError,
    JobRefusedError,
    NeedsOperatorError,
    S3CommitError,
)
from s3commit.core.model.locks import key_digest
from s3commit.core.model.outcome import Outcome
from tests.core.hostile_world import THEIRS, Neighbourhood
from tests.core.world import BUCKET, JOB
from tests.engines.fuzz.documents import DIRECTORY, DOCUMENTS
from tests.engines.fuzz.mutations import mutated

KINDS = list(DOCUMENTS)
SOUND = [body for body, _ in DOCUMENTS.values()]
ELSEWHERE = {  # what a job of that kind has at times, or a stranger puts there
    DIRECTORY.result: DOCUMENTS["result"][0],
    DIRECTORY.commits: DOCUMENTS["commit manifest"][0],
    DIRECTORY.success: DOCUMENTS["marker"][0],
    DIRECTORY.once(key_digest("k")): b'{"version":1,"key":"k","jobId":"%s"}' % JOB.encode(),
}


def read(kind: str, body: bytes) -> bool:
    """Read it; True if it was taken.

    Any error but a refusal is a finding, and so is a file outside the job's destination (I7).
    """
    try:
        found = DOCUMENTS[kind][1](body)
    except (InvalidInputError, JobRefusedError, NeedsOperatorError) as error:
        assert one_line(error.message).isprintable()
        return False
    for file in found.files if isinstance(found, PendingSet) else ():
        assert file.bucket == BUCKET
        assert file.key.startswith(DIRECTORY.destination.prefix)
        assert not is_hidden(file.key[len(DIRECTORY.destination.prefix) :])
        assert not UNSPEAKABLE.search(file.key)
    return True


def read_mutated(seed: int) -> bool:
    """One document, changed by the seed."""
    chance = random.Random(seed)
    kind = chance.choice(KINDS)
    return read(kind, mutated(chance, DOCUMENTS[kind][0], SOUND))


def run_mutated(seed: int) -> str:
    """A whole job beside others, some of its documents changed: what it does stays its own (I12).

    Returns the state in which it is then. It never asks to replace: that may delete what is there.
    """
    chance = random.Random(seed)
    world = Neighbourhood()

    def put(key: str, body: bytes) -> None:
        changed = mutated(chance, body, SOUND).replace(b'"replace"', b'"append"')
        world.store.put(BUCKET, key, changed if chance.random() < 0.3 else body)

    def change(key: str) -> None:
        put(key, world.store.get(BUCKET, key, max_bytes=10**6).body)

    world.open(DIRECTORY, idempotency_key="k")
    change(DIRECTORY.job)  # before the uploads, which else would be older than the job
    attempts = tuple(world.attempt(DIRECTORY, f"t{number}") for number in range(2))
    world.store.put(BUCKET, DIRECTORY.request, encode_request(CommitRequest(JOB, attempts)))
    for key in (DIRECTORY.request, *(DIRECTORY.prefix + one.manifest for one in attempts)):
        change(key)
    for key, body in ELSEWHERE.items():
        if chance.random() < 0.15:
            put(key, body)
    world.plan.forget_calls()
    for one in attempts:
        with suppress(S3CommitError):
            world.announce(DIRECTORY, one)
    for execution in ("execution-1", "execution-2"):
        with suppress(S3CommitError):
            world.run(DIRECTORY, execution)
    visible, uploads = world.before
    after = world.visible()
    assert {key: after.get(key) for key in visible} == visible, "a file of others"
    assert set(uploads) <= set(world.open_uploads()), "an upload of others"
    assert all(JOB in key for key in after.keys() - visible.keys()), "a file that is not the job's"
    world.request(THEIRS, world.their_attempt)
    world.run(THEIRS, "execution-of-the-neighbour")
    assert world.result(THEIRS).outcome is Outcome.COMMITTED, "the neighbour's end"
    record = world.ledger.job(DIRECTORY.ref)
    return record.state.value if record is not None else "none"
