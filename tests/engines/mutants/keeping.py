"""Deliberate bugs in the sweep, in an empty ledger, and where an id is taken."""

from __future__ import annotations

from tests.engines.mutants.mutant import Mutant

FINDINGS = "tests/sim/test_findings.py"
EMPTY_LEDGER = "tests/crash/test_empty_ledger.py"
SWEEP = "tests/core/test_sweep.py"
SILENT = "tests/core/test_sweep_silent.py"
DESTINATIONS = "tests/core/test_sweep_destinations.py"

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
        "core/sweep/questions.py",
        "    if not found.is_all or last >= sweep.ago(limit):\n",
        "    if not found.is_all:\n",
        also=(
            (
                "core/sweep/questions.py",
                'record.job_sha256 != "" and record.updated_at < sweep.ago(silent)',
                'record.job_sha256 != ""',
            ),
        ),
    ),
    Mutant(
        "a directory that is not listed to its end passes for silent",
        "core/sweep/questions.py",
        "    if not found.is_all or last >= sweep.ago(limit):\n",
        "    if last >= sweep.ago(limit):\n",
        by=SILENT,
    ),
    Mutant(
        "decided jobs whose execution is dead are left to people",
        "core/sweep/questions.py",
        "    JobState.COMMITTING,\n",
        "",
        by=FINDINGS,
    ),
    Mutant(
        "requests that nobody has heard are not heard",
        "core/sweep/questions.py",
        '        yield from start(sweep, since, record, "its request was not answered")\n',
        "        return\n",
        by=SILENT,
    ),
    Mutant(
        "what an ended job has left is not tidied",
        "core/sweep/questions.py",
        "    if found.scratch:\n        yield from start(sweep, since, record,",
        "    if False:\n        yield from start(sweep, since, record,",
        by=DESTINATIONS,
    ),
    Mutant(
        "open uploads of ended jobs are not looked for",
        "core/sweep/questions.py",
        "        if since:\n",
        "        if False:\n",
        by=DESTINATIONS,
    ),
    Mutant(
        "documents go as soon as the job has ended",
        "core/sweep/questions.py",
        "before=sweep.ago(sweep.limits.retention)):\n",
        "before=sweep.now):\n",
        also=(
            (
                "core/sweep/questions.py",
                "    elif found.result is None or _is_past(sweep, found.result):\n",
                "    else:\n",
            ),
        ),
    ),
    Mutant(
        "documents are retired whatever lies there by now",
        "core/sweep/actions.py",
        "one.key, if_match=one.etag)\n",
        "one.key)\n",
        by=DESTINATIONS,
    ),
    Mutant(
        "a dry run puts abort requests",
        "core/sweep/sweep.py",
        "                if sweep.dry_run or action.carry_out(sweep.ports, sweep.executions):\n",
        "                if action.carry_out(sweep.ports, sweep.executions):\n",
        by=SWEEP,
    ),
    Mutant(
        "a failure ends the question",
        "core/sweep/sweep.py",
        "        answer.failures.append((what, error.message))\n",
        "        raise\n",
        by=SWEEP,
    ),
    Mutant(
        "the same jobs come first in each sweep",
        "core/sweep/sweep.py",
        'f"{self.now} {name}".encode()',
        'f"{name}".encode()',
        by=SWEEP,
    ),
    Mutant(
        "one question may take all of the time",
        "core/sweep/sweep.py",
        "shifted(sweep.now, number * share)",
        "shifted(sweep.now, CALL_SECONDS)",
        by=SWEEP,
    ),
    Mutant(
        "a job whose documents are gone stays in the index",
        "core/sweep/actions.py",
        "            ports.ledger.unlist(record.ref)\n",
        "            pass\n",
        by=SWEEP,
    ),
    # A ledger that was lost.
    Mutant(
        "an empty ledger is taken for whole",
        "core/job/decision_record.py",
        "    if healing.whole:\n        return 0\n",
        "    return 0\n",
        by=EMPTY_LEDGER,
    ),
    Mutant(
        "functions that asked the lost table are not waited for",
        "core/job/decision_record.py",
        "    if some and too_early > 0:\n",
        "    if False:\n",
        by=EMPTY_LEDGER,
    ),
    Mutant(
        "a healed job has no locks",
        "core/job/decision_record.py",
        "    ports.ledger.open_job(found)\n",
        "    ports.ledger.open_job(replace(found, locks=()))\n",
        by=EMPTY_LEDGER,
    ),
    Mutant(
        "a record of a late handler keeps its place",
        "core/job/decision_record.py",
        "    ports.ledger.open_job(found)\n",
        "    _ = ports.ledger.job(found.ref) or ports.ledger.open_job(found)\n",
        by=EMPTY_LEDGER,
    ),
    Mutant(
        "a walk is not noted",
        "core/job/decision_record.py",
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
        "core/job/decision_record.py",
        "    if decided is not None:\n        return decided\n",
        "    if False:\n        return decided\n",
        by="tests/core/test_job.py",
    ),
    Mutant(
        "a ledger that lost the job says that it has no uploads",
        "core/job/uploads.py",
        '        raise LostRaceError(f"job {directory.job_id} is not in the ledger '
        'any more", None)\n',
        "        return\n",
        by=FINDINGS,
    ),
    Mutant(
        "a listing in ranges leaves out the key that it is cut at",
        "core/job/uploads.py",
        "if item.key <= one.last]",
        "if item.key[:-1] < one.last[:-1]]",
        by="tests/core/test_listings.py",
    ),
]
