"""Deliberate bugs in the sweep, in check and rebuild, at locations, and where an id is taken."""

from __future__ import annotations

from tests.sim.mutant import PROTOCOL, Mutant

FINDINGS = "tests/sim/test_findings.py"
SWEEP = "tests/core/test_sweep.py"  # a person's repair, at the end of a run, would find them too
LIFE = "tests/core/test_sweep_life.py"

MUTANTS = [
    # The sweep.
    Mutant(
        "uploads are no sign of life",
        f"{PROTOCOL}sweep_life.py",
        "    last = max([last, *(upload.initiated for upload in latest)])\n"
        "    if last < job.since:",
        "    if False:",
        "sweep",
        by=LIFE,
    ),
    Mutant(
        "the sweep speaks over a driver that has just spoken",
        f"{PROTOCOL}sweep.py",
        "place.request, body, if_absent=True)",
        "place.request, body)",
        "I2",
    ),
    Mutant(
        "the sweep gives up whoever has not spoken yet",
        f"{PROTOCOL}sweep_jobs.py",
        "    if not life.left and life.last < since:\n",
        "    if not life.left:\n",
        "sweep",
        also=(
            (
                f"{PROTOCOL}sweep_jobs.py",
                '        if newest >= since:\n            return ""\n',
                "",
            ),
        ),
    ),
    Mutant(
        "an upload is aborted while its job is under way",
        f"{PROTOCOL}sweep_uploads.py",
        "    if fate is Fate.ENDED or (",
        "    if fate is not Fate.FOREIGN or (",
        "I4",
    ),
    Mutant(
        "an upload of nobody's need not be old",
        f"{PROTOCOL}sweep_uploads.py",
        "(fate is Fate.UNKNOWN and old and _is_silent(sweep, bucket, upload)):",
        "(fate is Fate.UNKNOWN):",
        "I5",
    ),
    Mutant(
        "the id of Spark's own write passes for a job's",
        f"{PROTOCOL}sweep_uploads.py",
        "    if fate is Fate.UNKNOWN and is_of_other_writers(upload.key):\n",
        "    if False:\n",
        "I5",
    ),
    Mutant(
        "an id in a name is enough where no job has ever been",
        f"{PROTOCOL}sweep_uploads.py",
        "    return Fate.UNKNOWN if is_managed else Fate.FOREIGN\n",
        "    return Fate.UNKNOWN\n",
        "I5",
    ),
    Mutant(
        "a dry run aborts uploads",
        f"{PROTOCOL}sweep_uploads.py",
        "    if not sweep.dry_run:\n        sweep.pipeline.store.abort_upload(",
        "    if True:\n        sweep.pipeline.store.abort_upload(",
        "sweep",
    ),
    Mutant(
        "uploads of jobs that have ended are not counted",
        f"{PROTOCOL}sweep_uploads.py",
        "    sweep.report.uploads += 1\n",
        "",
        "sweep",
    ),
    Mutant(
        "decided jobs whose execution is dead are left to people",
        f"{PROTOCOL}sweep_jobs.py",
        "    JobState.COMMITTING,\n",
        "",
        "progress",
        by=FINDINGS,
    ),
    Mutant(
        "requests that nobody has heard are not heard",
        f"{PROTOCOL}sweep_jobs.py",
        "    if request is not None:\n"
        "        go_on(sweep, place, record, max(request.modified, record.updated_at))\n",
        "    if request is not None:\n        pass\n",
        "progress",
        by=SWEEP,
        also=(
            (
                f"{PROTOCOL}sweep_directories.py",
                "    elif found.request is not None:\n"
                "        go_on(sweep, place, elsewhere, found.request.modified)\n",
                "    elif found.request is not None:\n        pass\n",
            ),
        ),
    ),
    Mutant(
        "what an ended job has left is not tidied",
        f"{PROTOCOL}sweep_directories.py",
        "        if not sweep.dry_run and not tidy(sweep.pipeline, place, record):\n",
        "        if False:\n",
        "progress",
    ),
    Mutant(
        "documents go as soon as the job has ended",
        f"{PROTOCOL}sweep_directories.py",
        "    if is_due:\n        _retire(sweep, place, record, found)",
        "    if found.result is not None:\n        _retire(sweep, place, record, found)",
        "sweep",
    ),
    # A check, and a ledger made again.
    Mutant(
        "a job that writes passes for ended, in a check",
        "core/fsck/file_row.py",
        "ENDED: Final = UNDONE | {Standing.COMMITTED}\n",
        "ENDED: Final = UNDONE | {Standing.COMMITTED, Standing.OPEN}\n",
        "I4",
    ),
    Mutant(
        "a machine's clock says which of two jobs came later, in a check",
        "core/fsck/later.py",
        "    return job.traces.listed_at or FOREVER, job",
        '    return "", job',
        "fsck",
    ),
    Mutant(
        "a check does not know what jobs of other destinations have replaced",
        "core/fsck/later.py",
        "        return any(self._in(directory).since(since) for directory in directories)\n",
        "        return False\n",
        "fsck",
    ),
    Mutant(
        "a restored table has a refused job decided anew",
        f"{PROTOCOL}seal.py",
        "        return told_before(pipeline, ticket.place, record)\n",
        "        return None\n",
        "I3",
        by="tests/core/test_set_back.py",
    ),
    Mutant(
        "a commit manifest is not remembered",
        f"{PROTOCOL}remembered.py",
        "    if pipeline.store.head(place.bucket, place.commits) is None:\n        return record\n",
        "    return record\n",
        "I8",
    ),
    Mutant(
        "a job that is listed is undone after all",
        f"{PROTOCOL}remembered.py",
        "    if pipeline.store.head(place.bucket, place.commits) is not None:\n        raise",
        "    if False:\n        raise",
        "I2",
        by=FINDINGS,
    ),
    Mutant(
        "a ledger that lost the job says that it has no uploads",
        f"{PROTOCOL}named_uploads.py",
        '        raise LostRaceError(f"job {place.job_id} is not in the ledger any more", None)\n',
        "        return\n",
        "I4",
        by=FINDINGS,
    ),
    Mutant(
        "a ledger that is made again remembers no result and no list",
        "core/fsck/rebuild.py",
        "    return remembered(fsck.pipeline, place, read_spec(fsck.pipeline, place))\n",
        "    from s3commit.core.protocol.pipeline import new_record\n\n"
        "    spec = read_spec(fsck.pipeline, place)\n"
        "    return new_record(spec, place, fsck.pipeline.clock.now())\n",
        "I8",
    ),
    # Locations.
    Mutant(
        "a location counts though it does not agree",
        f"{PROTOCOL}places.py",
        "        if name not in agreed:\n",
        "        if False:\n",
        "I7",
    ),
    Mutant(
        "uploads at locations stay open",
        f"{PROTOCOL}own_uploads.py",
        "    for one in places_of(pipeline, place, pipeline.ledger.job(place.job_id)):\n"
        "        yield from _uploads_at(pipeline, one)\n",
        "    yield from _uploads_at(pipeline, place)\n",
        "I4",
    ),
    Mutant(
        "manifests at locations are left behind",
        f"{PROTOCOL}tidy.py",
        "        for one in places\n",
        "        for one in places[:1]\n",
        "sweep",
    ),
    Mutant(
        "files at locations stay visible when a job is undone",
        f"{PROTOCOL}own_objects.py",
        "_own_names(pipeline, places_of(pipeline, place, record))",
        "_own_names(pipeline, [place])",
        "I2",
    ),
    Mutant(
        "locations are not locked",
        "core/locks.py",
        "        wanted = dict.fromkeys([node, *outside.values()], _S if shared else _X)\n",
        "        wanted = {node: _S if shared else _X}\n",
        "I6",
        also=(
            (
                "core/locks.py",
                "        wanted = dict.fromkeys([node, *outside.values()], _X)\n",
                "        wanted = {node: _X}\n",
            ),
        ),
    ),
    Mutant(
        "files of before at locations are not replaced",
        f"{PROTOCOL}replace.py",
        "for one in (place, *map(place.at, locations.values())):",
        "for one in (place,):",
        "I6",
    ),
    # An id that is taken.
    Mutant(
        "the job at another place passes for this one",
        f"{PROTOCOL}taken.py",
        "    return record.destination != place.destination\n",
        "    return False\n",
        "I6",
    ),
    Mutant(
        "the uploads of a job that is turned away stay open",
        f"{PROTOCOL}taken.py",
        "    if not _abort_uploads(pipeline, place, theirs):\n",
        "    if False:\n",
        "I4",
    ),
    Mutant(
        "a manifest is enough to abort what a turned-away job's names do not claim",
        f"{PROTOCOL}taken.py",
        "bool(still_open) and names is Names.EXACT\n",
        "bool(still_open)\n",
        "I5",
        by=FINDINGS,
    ),
]
