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
        "            if not other_jobs.own(upload.key):\n",
        "            if True:\n",
        "I12",
        by="tests/core/test_no_escalation.py",
    ),
    Mutant(
        "the sweep believes the innermost directory",
        "core/ownership/open_uploads.py",
        "for prefix in directories_above(upload.key):\n",
        "for prefix in reversed(directories_above(upload.key)):\n",
        "I4",
        by="adversary",
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
        "names is Names.EXACT and not is_older(upload, opened_at):",
        "names is Names.EXACT:",
        "I12",
        by="tests/core/test_no_escalation.py",
    ),
    Mutant(
        "whoever puts a result ends a job's uploads",
        "core/ownership/open_uploads.py",
        "                if found is not None and is_older(upload, found.opened_at):\n",
        "                if False:\n",
        "I12",
        by="tests/core/test_no_escalation.py",
    ),
    Mutant(
        "a name proves an upload where there is no job.json",
        "core/ownership/named_uploads.py",
        '    is_proof = names is Names.UNIQUE or since != ""\n',
        "    is_proof = True\n",
        "I12",
        by="adversary",
    ),
    Mutant(
        "a name proves an upload to the sweep where there is no job.json",
        "core/ownership/open_uploads.py",
        "record.names is Names.EXACT and not since:",
        "False:",
        "I12",
        by="tests/core/test_no_escalation.py",
    ),
]
