"""Deliberate bugs in the protocol: each is caught, by the simulation or by the tests it names.

``old`` occurs exactly once in ``file`` (a test sees to it); ``invariant`` is what should break.
``by`` is ``sim``, or the tests that catch a bug which needs more than the simulation's clients do.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug: in ``file`` (below the package) ``old`` becomes ``new``."""

    name: str
    file: str
    old: str
    new: str
    invariant: str
    by: str = "sim"
    also: tuple[tuple[str, str, str], ...] = ()

    @property
    def edits(self) -> tuple[tuple[str, str, str], ...]:
        """Every change of the bug: file, old text, new text. Two where one guard backs another."""
        return ((self.file, self.old, self.new), *self.also)


PROTOCOL = "core/protocol/"

MUTANTS = [
    # Fences.
    Mutant(
        "a step does not look at the state and generation",
        f"{PROTOCOL}pipeline.py",
        "    if record is None or record.generation != ticket.generation"
        " or record.state not in expected:\n",
        "    if record is None:\n",
        "I2",
    ),
    Mutant(
        "no generation is raised, and no step looks at the state",
        f"{PROTOCOL}seal.py",
        "    if not has_it_already:\n",
        "    if False:\n",
        "I2",
        also=(
            (
                f"{PROTOCOL}pipeline.py",
                "ticket.generation or record.state not in expected:",
                "ticket.generation:",
            ),
        ),
    ),
    Mutant(
        "a late waker does not ask the ledger again before it puts the marker",
        f"{PROTOCOL}publish.py",
        "        own_record(pipeline, ticket, JobState.PUBLISHING)\n        try:\n",
        "        try:\n",
        "I9",
        by="tests/sim/test_findings.py",
    ),
    Mutant(
        "the marker is put without its condition",
        f"{PROTOCOL}publish.py",
        "place.bucket, place.success, body, if_absent=etag is None, if_match=etag\n",
        "place.bucket, place.success, body\n",
        "I9",
    ),
    # Completing.
    Mutant(
        "an upload that is gone passes for completed",
        f"{PROTOCOL}complete.py",
        "    return Whose.OURS if is_ours(file, facts) else Whose.ANOTHERS\n",
        "    return Whose.OURS\n",
        "I2",
    ),
    Mutant(
        "units that nobody counted are not missed",
        f"{PROTOCOL}publish.py",
        "    if counts != sorted((number, unit.files) for number, unit in units.items()):\n",
        "    if False:\n",
        "I2",
        by="tests/sim/test_findings.py",
    ),
    Mutant(
        "lost files do not roll the job back",
        f"{PROTOCOL}publish.py",
        "    if lost:\n",
        "    if False:\n",
        "progress",
    ),
    Mutant(
        "another attempt's file passes for the counted one's",
        f"{PROTOCOL}identity.py",
        "            and facts.metadata.get(META_ATTEMPT) == file.attempt_id\n",
        "",
        "I3",
        by="tests/core tests/crash",
    ),
    Mutant(
        "a manifest that has changed is acted on",
        f"{PROTOCOL}pipeline.py",
        "    if digest(stored.body) != sha256:\n",
        "    if False:\n",
        "I2",
    ),
    # Order.
    Mutant(
        "the locks are given back before the job is COMMITTED",
        f"{PROTOCOL}publish.py",
        "        _put_marker(pipeline, ticket, record, names)\n",
        "        release_locks(pipeline, record)\n"
        "        _put_marker(pipeline, ticket, record, names)\n",
        "I6",
    ),
    Mutant(
        "the marker is put before the manifest in _commits/",
        f"{PROTOCOL}publish.py",
        "            names = _publish_manifest(pipeline, ticket.place, record)\n",
        "            _put_marker(pipeline, ticket, record, [])\n"
        "            names = _publish_manifest(pipeline, ticket.place, record)\n",
        "I9",
    ),
    Mutant(
        "the old files are removed as soon as the job is decided",
        f"{PROTOCOL}decide.py",
        "    return ticket.after(decided)\n",
        "    from s3commit.core.protocol.replace import remove_listed\n\n"
        "    remove_listed(pipeline, ticket.place, decided)\n"
        "    return ticket.after(decided)\n",
        "I10",
    ),
    Mutant(
        "the conditions are judged before the locks are held",
        "testing/execution.py",
        '    "VerifyManifests": lambda _: "AcquireDestination",\n'
        '    "AcquireDestination": lambda ticket: (\n'
        '        "CheckConditions" if ticket.acquired else "AcquireDestination"\n'
        "    ),\n"
        '    "CheckConditions": lambda _: "DecideCommit",\n',
        '    "VerifyManifests": lambda _: "CheckConditions",\n'
        '    "AcquireDestination": lambda ticket: (\n'
        '        "DecideCommit" if ticket.acquired else "AcquireDestination"\n'
        "    ),\n"
        '    "CheckConditions": lambda _: "AcquireDestination",\n',
        "I6",
    ),
    Mutant(
        "a roll back deletes first, aborts the uploads then, and does not look again",
        f"{PROTOCOL}undo.py",
        "        if not abort_uploads(pipeline, ticket.place):\n"
        "            return ticket.after(record)\n"
        "        with unless_overtaken(pipeline, ticket, JobState.ROLLING_BACK):\n"
        "            _delete_own_objects(pipeline, ticket.place, record)\n"
        "            _verify_undone(pipeline, ticket.place, record)\n",
        "        _delete_own_objects(pipeline, ticket.place, record)\n"
        "        if not abort_uploads(pipeline, ticket.place):\n"
        "            return ticket.after(record)\n",
        "I2",
        by="tests/sim/test_findings.py",
    ),
    # Undoing.
    Mutant(
        "a roll back deletes nothing",
        f"{PROTOCOL}undo.py",
        "            _delete_own_objects(pipeline, ticket.place, record)\n"
        "            _verify_undone(pipeline, ticket.place, record)\n",
        "            pass\n",
        "I2",
    ),
    Mutant(
        "an aborted job's uploads stay open",
        f"{PROTOCOL}undo.py",
        "    if record.state is JobState.ABORTING:\n"
        "        _stop_in_doubt(pipeline, ticket.place, record)\n"
        "        if not abort_uploads(pipeline, ticket.place):\n",
        "    if record.state is JobState.ABORTING:\n        if False:\n",
        "I4",
    ),
    Mutant(
        "the uploads of losers stay open",
        f"{PROTOCOL}undo.py",
        "    abort_uploads(pipeline, place)\n    for key, etag in scratch:\n",
        "    for key, etag in scratch:\n",
        "I4",
    ),
    Mutant(
        "a file is deleted without its version, and what it covered stays away",
        f"{PROTOCOL}undo.py",
        "            version_id=facts.version_id,\n",
        "            version_id=None,\n",
        "I5",
        by="tests/sim/test_findings.py",
    ),
    Mutant(
        "every upload below the destination passes for the job's",
        f"{PROTOCOL}undo.py",
        "        if belongs_to_job(upload.key, place.job_id):\n            yield upload\n",
        "        if upload:\n            yield upload\n",
        "I5",
    ),
    Mutant(
        "an abort is taken for a commit",
        f"{PROTOCOL}seal.py",
        "        if isinstance(request, AbortRequest):\n",
        "        if False:\n",
        "refusal",
    ),
    # Policies.
    Mutant(
        "conflict fail is not looked at",
        f"{PROTOCOL}decide.py",
        "    if record.conflict is Conflict.FAIL:\n",
        "    if False:\n",
        "I6",
    ),
    Mutant(
        "the job's own files are in its replace list",
        f"{PROTOCOL}replace.py",
        "if not is_data(relative) or belongs_to_job(listed.key, place.job_id):",
        "if not is_data(relative):",
        "I2",
        by="tests/sim/test_findings.py",
    ),
    Mutant(
        "hidden files are replaced as well",
        f"{PROTOCOL}replace.py",
        "if not is_data(relative) or belongs_to_job(",
        "if belongs_to_job(",
        "I5",
    ),
    Mutant(
        "the root as a partition reaches down to every depth",
        f"{PROTOCOL}replace.py",
        "        if deep or not partition_of(relative):\n",
        "        if True:\n",
        "I5",
    ),
    Mutant(
        "an exact name covers a file that can't be brought back",
        f"{PROTOCOL}decide.py",
        "    if found and (\n",
        "    if False and (\n",
        "I5",
    ),
    Mutant(
        "the job's conditions are not judged",
        f"{PROTOCOL}decide.py",
        "    if failed:\n",
        "    if False:\n",
        "conditions",
    ),
    # Locks.
    Mutant(
        "a destination is replaced beside those that append to it",
        "core/locks.py",
        "    _S: frozenset({_IS, _S}),\n    _X: frozenset(),\n",
        "    _S: frozenset({_IS, _S, _X}),\n    _X: frozenset({_S}),\n",
        "I6",
    ),
    Mutant(
        "the nodes above a destination are not locked",
        "core/locks.py",
        "    everything = {**dict.fromkeys(above, intention), **wanted}\n",
        "    everything = wanted\n",
        "I6",
    ),
    Mutant(
        "a decided holder passes for dead",
        f"{PROTOCOL}acquire.py",
        "        return False  # decided, or still OPEN and by that no holder\n",
        "        return True\n",
        "I6",
    ),
    Mutant(
        "a stalled holder's lock is taken while it can still be decided",
        f"{PROTOCOL}acquire.py",
        "    try:\n        taken = pipeline.ledger.take_over(\n",
        "    return True\n    try:\n        taken = pipeline.ledger.take_over(\n",
        "I6",
        by="tests/core tests/crash",
    ),
    Mutant(
        "one who waits goes on as if it held its locks",
        f"{PROTOCOL}acquire.py",
        "    if not blockers:\n        return replace(ticket, acquired=True, since=since)\n",
        "    if True:\n        return replace(ticket, acquired=True, since=since)\n",
        "progress",
    ),
    Mutant(
        "an ended job keeps its place in the queue",
        "core/locks.py",
        "        waiting=_without(record.waiting, job_id),\n    )\n",
        "    )\n",
        "I6",
    ),
    # Once.
    Mutant(
        "an idempotency key is not reserved",
        f"{PROTOCOL}decide.py",
        "    take_key(pipeline, place, record, reserve=True)\n",
        "",
        "I11",
    ),
    Mutant(
        "an idempotency key is no lock",
        "core/locks.py",
        "    if key is not None:\n",
        "    if False:\n",
        "I11",
    ),
    # Hostile input.
    Mutant(
        "a manifest may name files outside the destination",
        "core/manifest.py",
        "    if not file.key.startswith(directory.destination.prefix):\n",
        "    if False:\n",
        "I7",
        also=(
            (
                "core/manifest.py",
                "    if names is Names.UNIQUE and not belongs_to_job(",
                "    if False and not belongs_to_job(",
            ),
        ),
    ),
    # The ledger forgets.
    Mutant(
        "a result is not remembered",
        f"{PROTOCOL}remembered.py",
        "    if result is not None:\n",
        "    if False:\n",
        "I8",
    ),
]
