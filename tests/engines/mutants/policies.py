"""Deliberate bugs in policies, locks, keys and memory, as those of mutants.py."""

from __future__ import annotations

from tests.engines.mutants.mutant import Mutant

LOCKS = "tests/core/test_locks.py tests/core/test_lock_turns.py tests/core/test_lock_queue.py"

MUTANTS = [
    # Policies.
    Mutant(
        "conflict fail is not looked at",
        "core/commit/check_conditions.py",
        "    if record.conflict is Conflict.FAIL:\n",
        "    if False:\n",
        "I6",
    ),
    Mutant(
        "a job replaces where the deployment allows none to",
        "core/commit/verify_manifests.py",
        "    if record.conflict is Conflict.REPLACE:\n        _refuse_to_replace(",
        "    if False:\n        _refuse_to_replace(",
        "I12",
        by="tests/core/test_replace_prefixes.py",
    ),
    Mutant(
        "the job's own files are in its replace list",
        "core/job/plan.py",
        "if not is_data(relative) or belongs_to_job(listed.key, directory.job_id):",
        "if not is_data(relative):",
        "I2",
        by="tests/core/test_remove.py",
    ),
    Mutant(
        "a job that replaces is taken for one that does not",
        "core/formats/ticket.py",
        "            replaces=record.replaced is not None and record.replaced.files > 0,\n",
        "            replaces=False,\n",
        "I10",
    ),
    Mutant(
        "hidden files are replaced as well",
        "core/job/plan.py",
        "if not is_data(relative) or belongs_to_job(",
        "if belongs_to_job(",
        "I5",
    ),
    Mutant(
        "the root as a partition reaches down to every depth",
        "core/job/plan.py",
        "        if is_deep or prefix != root or not partition_of(relative):\n",
        "        if True:\n",
        "I5",
    ),
    Mutant(
        "the job's conditions are not judged",
        "core/commit/check_conditions.py",
        "    if failed:\n",
        "    if False:\n",
        "conditions",
    ),
    # Locks.
    Mutant(
        "a destination is replaced beside those that append to it",
        "core/model/locks.py",
        "    _S: frozenset({_S, _K}),\n    _X: frozenset({_K}),\n",
        "    _S: frozenset({_S, _X, _K}),\n    _X: frozenset({_S, _K}),\n",
        "I6",
    ),
    Mutant(
        "a job does not look at the nodes above its destination",
        "core/model/locks.py",
        "for name in (one, *_nodes_above(one))}\n",
        "for name in (one,)}\n",
        "I6",
    ),
    Mutant(
        "a job does not look at what lies below its destination",
        "core/model/locks.py",
        "below=name in roots)",
        "below=False)",
        "I6",
    ),
    Mutant(
        "a decided holder is not in the way",
        "core/model/locks.py",
        "    if other.turn.stage is Stage.HELD or",
        "    if other.state is JobState.SEALED and other.turn.stage is Stage.HELD and",
        "I6",
    ),
    Mutant(
        "a job looks at others before it says that it enters",
        "core/commit/acquire_destination.py",
        "    record = _enter(ports, record, nodes)\n"
        "    rivals = _claimants(ports, record)\n"
        "    found = _to_wait_for(ports, record, rivals)\n",
        "    rivals = _claimants(ports, replace(record, locks=nodes))\n"
        "    found = _to_wait_for(ports, replace(record, locks=nodes), rivals)\n"
        "    record = _enter(ports, record, nodes)\n",
        "I6",
    ),
    Mutant(
        "one that enters is not pushed back by one that goes before it",
        "core/commit/acquire_destination.py",
        "    if not enters or own.turn.stage is not Stage.ENTERING:\n",
        "    if True:\n",
        "I6",
        by=LOCKS,
    ),
    Mutant(
        "who was pushed back holds what it claims all the same",
        "core/ports/ledger.py",
        "Expected(generation, JobState.SEALED, before)",
        "Expected(generation, JobState.SEALED)",
        "I6",
        by=f"tests/contract/test_ledger_notes.py {LOCKS}",
    ),
    Mutant(
        "a job is decided though it no longer holds what it claims",
        "core/ports/ledger.py",
        "Expected(generation, JobState.SEALED, still_held, plan, replaced)",
        "Expected(generation, JobState.SEALED, None, plan, replaced)",
        "I6",
        by="tests/contract tests/core",
    ),
    Mutant(
        "a stalled holder's lock is taken while it can still be decided",
        "core/commit/acquire_destination.py",
        "    try:\n        stalled_for = Failure(\n",
        "    return True\n    try:\n        stalled_for = Failure(\n",
        "I6",
        by="tests/core tests/crash",
    ),
    Mutant(
        "one who waits goes on as if it held its locks",
        "core/commit/acquire_destination.py",
        "            return _wait(ports, ticket, record, found)\n    newcomer",
        "            return replace(ticket, acquired=True, epoch=record.turn.epoch)\n    newcomer",
        "progress",
    ),
    Mutant(
        "who waits for one that is gone goes on waiting",
        "core/commit/acquire_destination.py",
        "    return [other] if other and _other_goes_first(ports, other, record) else []\n",
        "    return [other] if other else []\n",
        "progress",
        by=LOCKS,
    ),
    Mutant(
        "who waits and has asked earlier is not waited for",
        "core/commit/acquire_destination.py",
        "    return claimants(ports.ledger, ports.parallel, record, asked=record.turn.since)\n",
        '    return claimants(ports.ledger, ports.parallel, record, asked="0")\n',
        "progress",
        by=LOCKS,
    ),
    Mutant(
        "who has waited and enters does not say so",
        "core/commit/acquire_destination.py",
        "    _put_claims(ports, record)\n    return record\n",
        "    if record.turn.since == now:\n        _put_claims(ports, record)\n    return record\n",
        "I6",
    ),
    Mutant(
        "a stalled try says that a job waits which holds by now",
        "tests/fakes/ledger.py",
        "            if is_its_own if claim.waits else is_none_of_a_later_epoch:\n",
        "            if True:\n",
        "I6",
        by=f"tests/contract/test_locks.py {LOCKS}",
    ),
    Mutant(
        "a record that is made anew begins with the first epoch",
        "core/commit/acquire_destination.py",
        "    epoch = max(record.turn.epoch, record.generation) + 1\n",
        "    epoch = record.turn.epoch + 1\n",
        "I6",
        by=LOCKS,
    ),
    Mutant(
        "the claims of an ended job stay",
        "core/job/claims.py",
        "        ports.ledger.drop_claim(record.ref, claim)\n",
        "        pass\n",
        "I6",
    ),
    # Once.
    Mutant(
        "an idempotency key is not reserved",
        "core/commit/check_conditions.py",
        "    reserve_key(ports, directory, record)\n",
        "",
        "I11",
    ),
    Mutant(
        "an idempotency key is no lock",
        "core/model/locks.py",
        "    if key is not None:\n",
        "    if False:\n",
        "I11",
    ),
    # Hostile input.
    Mutant(
        "a manifest may name files outside the destination",
        "core/formats/manifest.py",
        "    if not file.key.startswith(directory.destination.prefix):\n",
        "    if False:\n",
        "I7",
        also=(
            (
                "core/formats/manifest.py",
                "    if not belongs_to_job(",
                "    if False and not belongs_to_job(",
            ),
        ),
    ),
    # The ledger forgets.
    Mutant(
        "a result is not remembered",
        "core/lost_ledger.py",
        "    if result is not None:\n",
        "    if False:\n",
        "I8",
    ),
]
