"""Deliberate bugs in what holds an adversary (I12): caught by the simulation with one."""

from __future__ import annotations

from tests.engines.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "names of ours are accepted as destinations",
        "core/formats/layout.py",
        "one in _NO_NAMES or one in _RESERVED or one",
        "one in _NO_NAMES or one",
        by="adversary",
    ),
    Mutant(
        "a list in _commits/ passes for a decision",
        "core/job/decision_record.py",
        "        state=JobState.ABORTED,\n",
        "        state=JobState.PUBLISHING,\n",
        by="adversary",
    ),
    Mutant(
        "an id is a job's own, whatever a directory above has",
        "core/job/uploads.py",
        "            of_outer = is_further_up(ports, directory)\n",
        "            of_outer = False\n",
        by="tests/core/test_no_escalation.py",
    ),
    Mutant(
        "an older upload is the job's",
        "core/job/uploads.py",
        " or is_older(upload, opened_at):",
        ":",
        by="tests/core/test_no_escalation.py",
    ),
    Mutant(
        "a name proves an upload where there is no _job.json",
        "core/job/uploads.py",
        "    if not opened_at:\n",
        "    if False:\n",
        by="adversary",
    ),
    # The sweep.
    Mutant(
        "a sweep holds all that clients have written",
        "core/sweep/sweep.py",
        "map(_small, _in_time(self, found, self.list_until))",
        "_in_time(self, found, self.list_until)",
        by="tests/core/test_sweep_bounds.py",
    ),
    Mutant(
        "a listing may take all of a question's time",
        "core/sweep/sweep.py",
        "(number - 0.5) * share",
        "number * share",
        by="tests/core/test_sweep_bounds.py",
    ),
    Mutant(
        "a listing that is cut short begins with the oldest each time",
        "core/sweep/sweep.py",
        "10 ** (7 * int(self.lot(state)[:8], 16) / 16**8)",
        "10**7",
        by="tests/core/test_sweep_bounds.py",
    ),
    Mutant(
        "each sweep looks at the same of many open uploads",
        "core/sweep/questions.py",
        "        yield from islice(listing(destination.prefix, after=place), LISTED)\n",
        "        yield from ()\n",
        by="tests/core/test_sweep_destinations.py",
    ),
]
