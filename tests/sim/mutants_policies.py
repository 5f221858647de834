"""Deliberate bugs in policies, locks, keys and memory, as those of mutants.py."""

from __future__ import annotations

from tests.sim.mutant import PROTOCOL, Mutant

MUTANTS = [
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
