"""Deliberate bugs in the protocol: each is caught, by the simulation or by the tests it names.

``old`` occurs exactly once in ``file`` (a test sees to it). ``by`` is ``sim``, ``adversary`` (the
same with one), or the tests that catch a bug which needs more than the clients of the simulation.
"""

from __future__ import annotations

from tests.engines.mutants.mutant import Mutant

ANSWERS = "tests/crash/test_any_answer.py"

MUTANTS = [
    # Fences.
    Mutant(
        "a step does not look at the state and generation",
        "core/jobs/guards.py",
        "    if record is None or record.generation != ticket.generation"
        " or record.state not in expected:\n",
        "    if record is None:\n",
    ),
    Mutant(
        "no generation is raised, and no step looks at the state",
        "core/commit/seal_job.py",
        "execution=None if own else ticket.execution",
        "execution=None",
        also=(
            (
                "core/commit/seal_job.py",
                "    if record.execution != ticket.execution or not ticket.execution:\n",
                "    if False:\n",
            ),
            (
                "core/jobs/guards.py",
                "ticket.generation or record.state not in expected:",
                "ticket.generation:",
            ),
        ),
    ),
    Mutant(
        "a late waker does not ask the ledger again before it puts the marker",
        "core/commit/publish_success.py",
        "            partial(own_record, ports, ticket, JobState.PUBLISHING),\n",
        "",
        by="tests/sim/test_findings.py",
    ),
    Mutant(
        "the marker is put without its condition",
        "core/commit/publish_success.py",
        "directory.bucket, directory.success, body, if_absent=etag is None, if_match=etag\n",
        "directory.bucket, directory.success, body\n",
    ),
    # Completing.
    Mutant(
        "a job that is sealed passes for decided",
        "core/commit/decide_commit.py",
        "    if record.state is JobState.COMMITTING:\n        put_decision(ports, record)\n"
        "        return ticket.after(record)\n",
        "    from dataclasses import replace\n\n"
        "    if True:\n        return replace(ticket.after(record), state=JobState.COMMITTING)\n",
        also=(
            (
                "core/commit/complete_unit.py",
                "partial(own_record, ports, ticket, JobState.COMMITTING)",
                "partial(own_record, ports, ticket, JobState.SEALED, JobState.COMMITTING)",
            ),
        ),
    ),
    Mutant(
        "an upload that is gone passes for completed",
        "core/commit/complete_unit.py",
        "        if facts is None or facts.length != file.length:\n",
        "        if False:\n",
    ),
    Mutant(
        "what is denied is tried again for ever",
        "core/commit/begin_publish.py",
        "    if is_denied and ticket.looks < DENIED_LOOKS:\n",
        "    if is_denied:\n",
        by=ANSWERS,
    ),
    Mutant(
        "a refusal of a completion that is not known fails for ever",
        "aws/s3.py",
        '            raise JobRefusedError(error.message, code="PARTS_MISMATCH") from error\n'
        "        return",
        '            if answered(error) in {"InvalidPart", "InvalidRequest"}:\n'
        '                raise JobRefusedError(error.message, code="PARTS_MISMATCH") from error\n'
        "            raise\n"
        "        return",
        by=ANSWERS,
    ),
    Mutant(
        "units that were not counted are not missed",
        "core/commit/begin_publish.py",
        "    if counted != list(range(plan.units)) or visible != plan.files:\n",
        "    if False:\n",
        by="tests/sim/test_findings.py",
    ),
    Mutant(
        "a unit that was counted twice stands for another",
        "core/commit/begin_publish.py",
        "    if counted != list(range(plan.units)) or visible != plan.files:\n",
        "    if visible != plan.files:\n",
        by="tests/sim/test_findings.py",
    ),
    Mutant(
        "lost files do not roll the job back",
        "core/commit/begin_publish.py",
        "    if lost:\n",
        "    if False:\n",
    ),
    # Order.
    Mutant(
        "the marker is put before the manifest in _commits/",
        "core/commit/publish_success.py",
        "        return publish_manifest(ports, ticket.directory, record, files)\n",
        "        _put_marker(ports, ticket, record, [], _marker(ports, ticket.directory))\n"
        "        return publish_manifest(ports, ticket.directory, record, files)\n",
    ),
    Mutant(
        "the old files are removed as soon as the job is decided",
        "core/commit/decide_commit.py",
        "    return decided\n",
        "    from s3commit.core.commit.remove_replaced import _remove\n"
        "    from s3commit.core.formats.layout import JobDirectory\n\n"
        "    if decided.replaced:\n"
        "        _remove(ports, JobDirectory.of(decided), decided.replaced, first=0)\n"
        "    return decided\n",
    ),
    Mutant(
        "the conditions are judged before the locks are held",
        "tests/fakes/execution.py",
        '    return "CheckConditions" if ticket.acquired else "AcquireDestination"\n',
        '    return "DecideCommit" if ticket.acquired else "AcquireDestination"\n',
        also=(
            (
                "tests/fakes/execution.py",
                '    "VerifyManifests": _acquires,\n',
                '    "VerifyManifests": lambda _: "CheckConditions",\n',
            ),
            (
                "tests/fakes/execution.py",
                '    "CheckConditions": lambda _: "DecideCommit",\n',
                '    "CheckConditions": lambda _: "AcquireDestination",\n',
            ),
        ),
    ),
    Mutant(
        "a roll back deletes a file before its upload is gone",
        "core/commit/roll_back.py",
        "    if not any(abort(store, file.bucket, file.key, file.upload_id)"
        " for _ in range(ABORT_ROUNDS)):\n"
        "        return False\n",
        "",
        by="tests/crash/test_roll_back.py",
    ),
    Mutant(
        "a roll back gives its locks back before its files are undone",
        "core/commit/roll_back.py",
        "        if reached == len(pages) and record.locks:\n",
        "        if record.locks:\n",
    ),
    Mutant(
        "a roll back does not look again",
        "core/commit/roll_back.py",
        "            pages = 2 * whole_pages(",
        "            pages = whole_pages(",
        by="tests/crash/test_crash_points.py",
    ),
    Mutant(
        "a roll back deletes what has the name of a file, whatever it is",
        "core/commit/roll_back.py",
        "    if facts is not None and facts.matches(file.length, expected_etag(file)):\n",
        "    if facts is not None:\n",
        by="tests/crash/test_roll_back.py",
    ),
    Mutant(
        "a roll back deletes nothing",
        "core/commit/roll_back.py",
        "    if facts is not None and facts.matches(file.length, expected_etag(file)):\n",
        "    if False:\n",
    ),
    Mutant(
        "a roll back leaves the uploads that nobody counts",
        "core/commit/roll_back.py",
        "        if reached < len(pages) or not abort_uploads(ports, ticket.directory, time):\n",
        "        if reached < len(pages):\n",
    ),
    Mutant(
        "an aborted job's uploads stay open",
        "core/commit/abort_job.py",
        "    if record.state is JobState.ABORTING:\n"
        "        time = CallTime(ports.clock)\n"
        "        if not abort_uploads(ports, ticket.directory, time):\n",
        "    if record.state is JobState.ABORTING:\n        if False:\n",
    ),
    Mutant(
        "the uploads of losers stay open",
        "core/commit/tidy_up.py",
        "    if not abort_uploads(ports, directory, time):\n",
        "    if False:\n",
    ),
    Mutant(
        "every upload below the destination passes for the job's",
        "core/jobs/ownership.py",
        "owner_of(upload.key) != directory.job_id or is_older",
        "is_older",
    ),
    # Clocks.
    Mutant(
        "all of S3's hosts have one clock",
        "core/jobs/ownership.py",
        "seconds(upload.initiated, opened_at) > S3_CLOCKS",
        "seconds(upload.initiated, opened_at) > 0",
    ),
    Mutant(
        "an abort is taken for a commit",
        "core/commit/seal_job.py",
        "    if isinstance(request, AbortRequest):\n",
        "    if False:\n",
    ),
]
