"""Deliberate bugs in the sweep, in the rebuild, and where an id is taken."""

from __future__ import annotations

from tests.engines.mutants.mutant import Mutant

FINDINGS = "tests/sim/test_findings.py"
SWEEP = "tests/core/test_sweep.py"  # a person's repair, at the end of a run, would find them too
COST = "tests/core/test_sweep_cost.py tests/core/test_sweep_shares.py"
LIFE = "tests/core/test_sweep_life.py"

MUTANTS = [
    # The sweep.
    Mutant(
        "uploads are no sign of life",
        "core/sweep/signs_of_life.py",
        "    last = max([last, *(upload.initiated for upload in latest)])\n"
        "    if last < job.since:",
        "    if False:",
        "sweep",
        by=LIFE,
    ),
    Mutant(
        "the sweep speaks over a driver that has just spoken",
        "core/sweep/sweep.py",
        "directory.request, body, if_absent=True)",
        "directory.request, body)",
        "I2",
    ),
    Mutant(
        "the sweep gives up whoever has not spoken yet",
        "core/sweep/jobs.py",
        "    if not life.left and life.last < since:\n",
        "    if not life.left:\n",
        "sweep",
        also=(
            (
                "core/sweep/jobs.py",
                '        if newest >= since:\n            return ""\n',
                "",
            ),
        ),
    ),
    Mutant(
        "an upload is aborted while its job is under way",
        "core/sweep/uploads.py",
        "    if owner is Ownership.ENDED or is_left:\n",
        "    if owner is not Ownership.FOREIGN:\n",
        "I4",
    ),
    Mutant(
        "an upload of nobody's need not be old",
        "core/sweep/uploads.py",
        "owner is Ownership.UNKNOWN and old and _is_silent(sweep, sweep.bucket, upload)\n",
        "owner is Ownership.UNKNOWN\n",
        "I5",
    ),
    Mutant(
        "the id of Spark's own write passes for a job's",
        "core/ownership/open_uploads.py",
        "        if found is Ownership.UNKNOWN and is_of_other_writers(upload.key):\n",
        "        if False:\n",
        "I5",
        by="tests/cli/test_upload_owners.py",
    ),
    Mutant(
        "an id in a name is enough where no job has ever been",
        "core/ownership/open_uploads.py",
        "        return Ownership.UNKNOWN if is_managed else Ownership.FOREIGN\n",
        "        return Ownership.UNKNOWN\n",
        "I5",
    ),
    Mutant(
        "a dry run aborts uploads",
        "core/sweep/uploads.py",
        "    if not sweep.dry_run:\n        sweep.ports.store.abort_upload(",
        "    if True:\n        sweep.ports.store.abort_upload(",
        "sweep",
    ),
    Mutant(
        "uploads of jobs that have ended are not counted",
        "core/sweep/uploads.py",
        "    sweep.report.uploads += 1\n",
        "",
        "sweep",
    ),
    Mutant(
        "decided jobs whose execution is dead are left to people",
        "core/sweep/jobs.py",
        "    JobState.COMMITTING,\n",
        "",
        "progress",
        by=FINDINGS,
    ),
    Mutant(
        "requests that nobody has heard are not heard",
        "core/sweep/jobs.py",
        "    if request is not None:\n"
        "        restart(sweep, directory, record, max(request.modified, record.updated_at))\n",
        "    if request is not None:\n        pass\n",
        "progress",
        by=SWEEP,
        also=(
            (
                "core/sweep/directories.py",
                "    elif found.request is not None:\n"
                "        restart(sweep, directory, None, found.request.modified)\n",
                "    elif found.request is not None:\n        pass\n",
            ),
        ),
    ),
    Mutant(
        "what an ended job has left is not tidied",
        "core/sweep/directories.py",
        "        if not sweep.dry_run and not tidy(sweep.ports, directory, record):\n",
        "        if False:\n",
        "progress",
    ),
    Mutant(
        "documents go as soon as the job has ended",
        "core/sweep/directories.py",
        "    if is_due:\n        _retire(sweep, directory, record, found)",
        "    if found.result is not None:\n        _retire(sweep, directory, record, found)",
        "sweep",
    ),
    Mutant(
        "documents are retired whatever lies there by now",
        "core/sweep/directories.py",
        "                sweep.ports.store.delete("
        "directory.bucket, each.key, if_match=each.etag)\n",
        "                sweep.ports.store.delete(directory.bucket, each.key)\n",
        "I5",
    ),
    # What a sweep may cost (I12).
    Mutant(
        "a thing may cost what it likes",
        "core/sweep/cost.py",
        "        if self._limit is not None and (self.used >= self._limit or self.too_late()):\n",
        "        if False:\n",
        "I12",
        by=COST,
    ),
    Mutant(
        "no directory has a share",
        "core/sweep/cost.py",
        "if self._spent.get(one, 0) >= share]",
        "if False]",
        "I12",
        by=COST,
    ),
    Mutant(
        "requests do not end a call",
        "core/sweep/sweep.py",
        " or self.cost.used >= CALL_REQUESTS:\n",
        ":\n",
        "I12",
        by=COST,
    ),
    Mutant(
        "what is put off is forgotten",
        "core/sweep/turns.py",
        "        waiting = () if cursor else tuple(sweep.put_off)\n",
        "        waiting = ()\n",
        "I12",
        by=COST,
    ),
    Mutant(
        "the ledger is asked for each job directory",
        "core/sweep/directories.py",
        "    return not _may_have_left_more(sweep, found.result.modified)\n",
        "    return False\n",
        "I12",
        by=COST,
    ),
    Mutant(
        "what lies beside the directory of a job that has ended is not looked for",
        "core/sweep/directories.py",
        "    return since >= sweep.ago(WINDOW) and sweep.is_due(since, pause, WINDOW)\n",
        "    return False\n",
        "I4",
        by=COST,
    ),
    Mutant(
        "a huge directory is listed to its end",
        "core/sweep/directories.py",
        "        if number == LISTED:\n",
        "        if False:\n",
        "I12",
        by=COST,
    ),
    Mutant(
        "a directory that is not listed to its end passes for silent",
        "core/sweep/directories.py",
        "    elif found.job is not None and found.is_all:\n",
        "    elif found.job is not None:\n",
        "I5",
        by=COST,
    ),
    Mutant(
        "old records are looked at in each pass",
        "core/sweep/jobs.py",
        "    return not sweep.is_due(since, sweep.limits.stuck, longest)\n",
        "    return False\n",
        "I12",
        by=COST,
    ),
    Mutant(
        "an upload too deep to be asked for is judged all the same",
        "core/ownership/open_uploads.py",
        '        if upload.key.count("/") > DEEPEST:\n',
        "        if False:\n",
        "I12",
        by=COST,
    ),
    Mutant(
        "two sweeps are at work at once",
        "core/sweep/turns.py",
        '        return note.holder in {"", self.holder} or note.until <= self.now\n',
        "        return True\n",
        "I12",
        by=COST,
    ),
    Mutant(
        "a walk that breaks at one directory is gone on with there for ever",
        "core/sweep/turns.py",
        "        if not (self.walked or self.broken_off):\n",
        "        if not self.walked:\n",
        "I12",
        by=COST,
    ),
    Mutant(
        "answers on signs of life count for ever",
        "core/sweep/signs_of_life.py",
        "        if sweep.ago(sweep.limits.abandoned // ASKED_ANEW) < asked:",
        "        if True:",
        "I5",
        by=LIFE,
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
