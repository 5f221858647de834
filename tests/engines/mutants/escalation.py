"""Deliberate bugs in what holds an adversary (I12): caught by the simulation with one."""

from __future__ import annotations

from tests.engines.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "names of ours are accepted as destinations",
        "core/formats/layout.py",
        "    return element in _RESERVED or element.startswith(MAGIC_PREFIX)\n",
        "    return element.startswith(MAGIC_PREFIX)\n",
        "I12",
        by="adversary",
    ),
    Mutant(
        "a list in _commits/ passes for a decision",
        "core/recovery/lost_record.py",
        "        state=JobState.ABORTED,\n",
        "        state=JobState.PUBLISHING,\n",
        "I12",
        by="adversary",
    ),
    Mutant(
        "an id is a job's own, whatever a directory above has",
        "core/ownership/named_uploads.py",
        "            of_outer = is_further_up(ports.store, directory)\n",
        "            of_outer = False\n",
        "I12",
        by="tests/core/test_no_escalation.py",
    ),
    Mutant(
        "a late manifest aborts whatever it names",
        "core/commit/ingest_pendingsets.py",
        "        if record.opened_at and not _is_open_and_own(",
        "        if False and not _is_open_and_own(",
        "I12",
        by="tests/core/test_no_escalation.py",
    ),
    Mutant(
        "an older upload is the job's",
        "core/ownership/named_uploads.py",
        " or is_older(upload, opened_at):",
        ":",
        "I12",
        by="tests/core/test_no_escalation.py",
    ),
    Mutant(
        "a name proves an upload where there is no job.json",
        "core/ownership/named_uploads.py",
        "    if not opened_at:\n",
        "    if False:\n",
        "I12",
        by="adversary",
    ),
]
