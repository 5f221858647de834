"""Deliberate bugs in policies, locks, keys and memory, as those of mutants.py."""

from __future__ import annotations

from tests.engines.mutants.mutant import Mutant

LOCKS = "tests/core/test_locks.py tests/core/test_appends.py tests/crash/test_waiting.py"

MUTANTS = [
    # Policies.
    Mutant(
        "conflict fail is not looked at",
        "core/commit/check_conditions.py",
        "    if record.conflict is Conflict.FAIL:\n",
        "    if False:\n",
    ),
    Mutant(
        "a job that replaces is taken for one that does not",
        "core/documents/ticket.py",
        "            replaces=record.replaced is not None and record.replaced.files > 0,\n",
        "            replaces=False,\n",
    ),
    Mutant(
        "hidden files are replaced as well",
        "core/jobs/replaced.py",
        "if wanted(relative) and owner_of(",
        "if owner_of(",
    ),
    Mutant(
        "the root as a partition reaches down to every depth",
        "core/jobs/replaced.py",
        "            if not partition_of(listed.key[len(root) :]):\n",
        "            if True:\n",
    ),
    Mutant(
        "the job's conditions are not judged",
        "core/commit/check_conditions.py",
        "    if failed:\n",
        "    if False:\n",
    ),
    # Locks and appends.
    Mutant(
        "a job does not look at the nodes above what it locks",
        "core/ports/ledger.py",
        "unlocked=nodes_above(nodes))",
        "unlocked=())",
        by=LOCKS,
        also=(
            (
                "core/commit/acquire_destination.py",
                "ports.ledger.locks([*nodes, *nodes_above(nodes)])",
                "ports.ledger.locks(nodes)",
            ),
        ),
    ),
    Mutant(
        "a job does not wait for those that lock below",
        "core/commit/acquire_destination.py",
        "    return list(islice(_holders(ports, record, meet), MAX_NAMED + 1))\n",
        "    return []\n",
    ),
    Mutant(
        "an overwrite that came too late is not refused",
        "core/commit/acquire_destination.py",
        "        if meet(reach, other.locks if other else [turn.node]):\n",
        "        if False:\n",
    ),
    Mutant(
        "an overwrite looks whether it came too late before it has its locks",
        "core/commit/acquire_destination.py",
        "        in_the_way = _lock(ports, record, _nodes(ports, record, reach))\n"
        "        if not in_the_way and record.requested_at:\n"
        "            _refuse_overtaken(ports, record, reach)\n",
        "        _refuse_overtaken(ports, record, reach)\n"
        "        in_the_way = _lock(ports, record, _nodes(ports, record, reach))\n",
        by="tests/core/test_turns.py",
    ),
    Mutant(
        "an overwrite does not wait for its turn",
        "core/commit/acquire_destination.py",
        "list(_holders(ports, record, standing)) or _earlier(ports, record, nodes)\n",
        "list(_holders(ports, record, standing))\n",
        by="tests/core/test_turns.py",
    ),
    Mutant(
        "one whose execution is lost keeps its turn",
        "core/commit/acquire_destination.py",
        " and ports.runs(other.execution):\n",
        ":\n",
        by="tests/core/test_turns.py",
    ),
    Mutant(
        "the order of overwrites is forgotten with the ledger",
        "core/documents/decision_json.py",
        '    **{"waits": None, "locked_at": ""},\n',
        '    **{"waits": None, "locked_at": "", "requested_at": ""},\n',
        by="tests/core/test_turns.py",
    ),
    Mutant(
        "a decided job keeps no locks",
        "core/model/locks.py",
        "    if record.state not in CANNOT_COMMIT:\n",
        "    if record.state is JobState.SEALED:\n",
    ),
    Mutant(
        "the locks of an ended job stay",
        "core/model/locks.py",
        "    if record.state not in CANNOT_COMMIT:\n",
        "    if True:\n",
    ),
    Mutant(
        "a stalled holder's lock is taken while it can still be decided",
        "core/commit/acquire_destination.py",
        "    try:\n        # If it is SEALED still.\n",
        "    return True\n    try:\n        # If it is SEALED still.\n",
        by="tests/core tests/crash",
    ),
    Mutant(
        "one who waits goes on as if it held its locks",
        "core/commit/acquire_destination.py",
        "    return replace(ticket, acquired=False, pause=pause)\n",
        "    return replace(ticket, acquired=True, pause=pause)\n",
        by=LOCKS,
    ),
    Mutant(
        "a job that replaces removes what appends under way have made visible",
        "core/commit/check_conditions.py",
        "        leave = appends.to_leave()\n",
        "        leave: dict[str, tuple[str, ...]] = {}\n",
    ),
    Mutant(
        "an append that has ended stays",
        "core/jobs/replaced.py",
        "            if one.ref not in self._ended:\n",
        "            if True:\n",
    ),
    Mutant(
        "files that carry the id of an append elsewhere stay",
        "core/commit/check_conditions.py",
        '            elif not f"{directory.bucket}/{one.key}".startswith(nodes):\n',
        "            elif not nodes:\n",
        by=LOCKS,
    ),
    Mutant(
        "appends that end while they are read are not read again",
        "core/jobs/replaced.py",
        "            if ended <= before:\n",
        "            if True:\n",
        by=LOCKS,
    ),
    Mutant(
        "appends above the destination are not read",
        "core/jobs/replaced.py",
        "        self._nodes = [node, *nodes_above([node])]\n",
        "        self._nodes = [node]\n",
        by=LOCKS,
    ),
    # Once.
    Mutant(
        "the decision leaves out the idempotency key",
        "core/model/locks.py",
        "            found.add(Item(ItemKind.KEY, ",
        "            (Item(ItemKind.KEY, ",
    ),
    Mutant(
        "a key is forgotten with the ledger",
        "core/jobs/idempotency.py",
        "        holder = _remembered(ports.store, directory, digest)\n",
        "        return None\n",
        by="tests/core/test_once.py",
    ),
    Mutant(
        "an append can be rolled back when its marker is there",
        "core/commit/publish_success.py",
        "            partial(note_publishing, ports, record, found.decision),\n",
        "            lambda: None,\n",
        by="tests/crash/test_crash_points.py",
    ),
    # Hostile input.
    Mutant(
        "a manifest may name files outside the destination",
        "core/documents/pendingset.py",
        "    if not key.startswith(directory.destination.prefix):\n",
        "    if False:\n",
        also=(
            (
                "core/documents/pendingset.py",
                "    if owner_of(",
                "    if False and owner_of(",
            ),
        ),
    ),
    # The ledger forgets.
    Mutant(
        "a result is not remembered",
        "core/jobs/healing.py",
        "    if result is not None:\n",
        "    if False:\n",
    ),
]
