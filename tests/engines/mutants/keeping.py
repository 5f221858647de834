"""Deliberate bugs in the sweep, in the rebuild, and where an id is taken."""

from __future__ import annotations

from tests.engines.mutants.mutant import Mutant

FINDINGS = "tests/sim/test_findings.py"
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
        "I2",
    ),
    Mutant(
        "the sweep gives up whoever has not spoken yet",
        "core/sweep/questions.py",
        "    if not found.is_all or last >= sweep.ago(sweep.limits.abandoned):\n",
        "    if not found.is_all:\n",
        "sweep",
        also=(
            (
                "core/sweep/questions.py",
                'record.job_sha256 != "" and record.updated_at < sweep.ago(sweep.limits.abandoned)',
                'record.job_sha256 != ""',
            ),
        ),
    ),
    Mutant(
        "a directory that is not listed to its end passes for silent",
        "core/sweep/questions.py",
        "    if not found.is_all or last >= sweep.ago(sweep.limits.abandoned):\n",
        "    if last >= sweep.ago(sweep.limits.abandoned):\n",
        "I5",
        by=SILENT,
    ),
    Mutant(
        "decided jobs whose execution is dead are left to people",
        "core/sweep/questions.py",
        "    JobState.COMMITTING,\n",
        "",
        "progress",
        by=FINDINGS,
    ),
    Mutant(
        "requests that nobody has heard are not heard",
        "core/sweep/questions.py",
        '        yield from start(sweep, since, record, "its request was not heard")\n',
        "        return\n",
        "progress",
        by=SILENT,
    ),
    Mutant(
        "what an ended job has left is not tidied",
        "core/sweep/destinations.py",
        "    if found.scratch:\n        yield from start(sweep, since, record,",
        "    if False:\n        yield from start(sweep, since, record,",
        "progress",
        by=DESTINATIONS,
    ),
    Mutant(
        "open uploads of ended jobs are not looked for",
        "core/sweep/destinations.py",
        "        if opened[job_id] and not is_older(upload, opened[job_id]):\n",
        "        if False:\n",
        "I4",
        by=DESTINATIONS,
    ),
    Mutant(
        "documents go as soon as the job has ended",
        "core/sweep/questions.py",
        "before=sweep.ago(sweep.limits.retention)):\n",
        "before=sweep.now):\n",
        "sweep",
        also=(
            (
                "core/sweep/questions.py",
                "found.result is None or found.result.modified < sweep.ago("
                "sweep.limits.retention):",
                "True:",
            ),
        ),
    ),
    Mutant(
        "documents are retired whatever lies there by now",
        "core/sweep/actions.py",
        "one.key, if_match=one.etag)\n",
        "one.key)\n",
        "I5",
        by=DESTINATIONS,
    ),
    Mutant(
        "a dry run puts abort requests",
        "core/sweep/sweep.py",
        "                if sweep.dry_run or action.carry_out(sweep.ports, sweep.executions):\n",
        "                if action.carry_out(sweep.ports, sweep.executions):\n",
        "sweep",
        by=SWEEP,
    ),
    Mutant(
        "a failure ends the question",
        "core/sweep/sweep.py",
        "        answer.failures.append((what, error.message))\n",
        "        raise\n",
        "I12",
        by=SWEEP,
    ),
    Mutant(
        "the same jobs come first in each sweep",
        "core/sweep/sweep.py",
        'f"{self.now} {name}".encode()',
        'f"{name}".encode()',
        "I12",
        by=SWEEP,
    ),
    Mutant(
        "one question may take all of the time",
        "core/sweep/sweep.py",
        "CALL_SECONDS * number / len(questions)",
        "CALL_SECONDS",
        "I12",
        by=SWEEP,
    ),
    Mutant(
        "a job whose documents are gone stays in the index",
        "core/sweep/actions.py",
        "            ports.ledger.unlist(self.record.ref)\n",
        "            pass\n",
        "I12",
        by=SWEEP,
    ),
    # A ledger made again.
    Mutant(
        "a restored table has a refused job decided anew",
        "core/commit/seal_job.py",
        "        return recorded_failure(ports, ticket.directory, record)\n",
        "        return None\n",
        "I3",
        by="tests/core/test_set_back.py",
    ),
    Mutant(
        "a decision is not remembered",
        "core/recovery/lost_record.py",
        "    if decided is not None:\n        return decided\n",
        "    if False:\n        return decided\n",
        "I8",
    ),
    Mutant(
        "a job that is listed is undone after all",
        "core/recovery/lost_record.py",
        "    if decided is None or decided.state not in"
        " {JobState.COMMITTING, JobState.ROLLED_BACK}:\n",
        "    if False:\n",
        "I2",
        by="tests/core/test_set_back.py",
    ),
    Mutant(
        "a ledger that lost the job says that it has no uploads",
        "core/ending/uploads.py",
        '        raise LostRaceError(f"job {directory.job_id} is not in the ledger '
        'any more", None)\n',
        "        return\n",
        "I4",
        by=FINDINGS,
    ),
    Mutant(
        "a ledger that is made again remembers no result and no list",
        "core/rebuild.py",
        "    return record_from_s3(hands.ports, directory, read_spec(hands.ports, directory))\n",
        "    from s3commit.core.job.record import new_record\n\n"
        "    spec = read_spec(hands.ports, directory)\n"
        "    return new_record(spec, directory, hands.ports.clock.now())\n",
        "I8",
    ),
    Mutant(
        "a listing in ranges leaves out the key that it is cut at",
        "core/job/listings.py",
        "if item.key <= one.last]",
        "if item.key[:-1] < one.last[:-1]]",
        "I4",
        by="tests/core/test_listings.py",
    ),
    # An id that is taken.
]
