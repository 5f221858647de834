"""Deliberate bugs in the sweep, in an empty ledger, and where an id is taken."""

from __future__ import annotations

from tests.engines.mutants.mutant import Mutant

FINDINGS = "tests/sim/test_findings.py"
EMPTY_LEDGER = "tests/crash/test_empty_ledger.py"

MUTANTS = [
    # The sweep.
    Mutant(
        "the sweep speaks over a driver that has just spoken",
        "core/sweep/actions.py",
        "directory.request, body, if_absent=True)",
        "directory.request, body)",
    ),
    Mutant(
        "the sweep gives up whoever has not spoken yet",
        "core/sweep/verdicts.py",
        "    if not found.is_all or last >= sweep.ago(limit):\n",
        "    if not found.is_all:\n",
        also=(
            (
                "core/sweep/known_jobs.py",
                'record.job_sha256 != "" and record.updated_at < sweep.ago(silent)',
                'record.job_sha256 != ""',
            ),
        ),
    ),
    Mutant(
        "decided jobs whose execution is dead are left to people",
        "core/sweep/known_jobs.py",
        "    JobState.COMMITTING,\n",
        "",
        by=FINDINGS,
    ),
    Mutant(
        "documents go as soon as the job has ended",
        "core/sweep/known_jobs.py",
        "before=sweep.ago(sweep.limits.retention)):\n",
        "before=sweep.now):\n",
        also=(
            (
                "core/sweep/verdicts.py",
                "    elif found.result is None or is_past(sweep, found.result):\n",
                "    else:\n",
            ),
        ),
    ),
    # A ledger that was lost.
    Mutant(
        "an empty ledger is taken for whole",
        "core/jobs/healing.py",
        "    if healing.whole:\n        return 0\n",
        "    return 0\n",
        by=EMPTY_LEDGER,
    ),
    Mutant(
        "functions that asked the lost table are not waited for",
        "core/jobs/healing.py",
        "    if some and too_early > 0:\n",
        "    if False:\n",
        by=EMPTY_LEDGER,
    ),
    Mutant(
        "a healed job has no locks",
        "core/jobs/healing.py",
        "    ports.ledger.open_job(found)\n",
        "    ports.ledger.open_job(replace(found, locks=()))\n",
        by=EMPTY_LEDGER,
    ),
    Mutant(
        "a record of a late handler keeps its place",
        "core/jobs/healing.py",
        "    ports.ledger.open_job(found)\n",
        "    _ = ports.ledger.job(found.ref) or ports.ledger.open_job(found)\n",
        by=EMPTY_LEDGER,
    ),
    Mutant(
        "a walk is not noted",
        "core/jobs/healing.py",
        "        ports.ledger.note_healing(bucket, replace(healing, until=some[-1].key))\n",
        "        pass\n",
        by=EMPTY_LEDGER,
    ),
    Mutant(
        "a restored table is not noticed",
        "core/model/record.py",
        "        if table != self.table:\n",
        "        if False:\n",
        by=EMPTY_LEDGER,
    ),
    Mutant(
        "a decision does not ask whether the table was restored",
        "core/commit/decide_commit.py",
        "        partial(ports.ledger.healing, ticket.bucket, now=ports.clock.now()),\n",
        "        lambda: None,\n",
        by=EMPTY_LEDGER,
    ),
    Mutant(
        "a decision is not remembered",
        "core/jobs/healing.py",
        "    if decided is not None:\n        return decided\n",
        "    if False:\n        return decided\n",
        by="tests/core/test_job.py",
    ),
    Mutant(
        "a ledger that lost the job says that it has no uploads",
        "core/jobs/ownership.py",
        '        raise LostRaceError(f"job {directory.job_id} is not in the ledger '
        'any more", None)\n',
        "        return\n",
        by=FINDINGS,
    ),
]
