"""Deliberate bugs in the undo of a committed job."""

from __future__ import annotations

from tests.engines.mutants.mutant import Mutant

UNDO = "core/jobs/undo.py"
KEY = "core/jobs/idempotency.py"
WAY_BACK = "tests/core/test_way_back.py tests/core/test_way_back_refused.py"
CRASH = "tests/crash/test_crash_points.py"


def _bug(name: str, file: str, old: str, new: str, by: str = WAY_BACK) -> Mutant:
    return Mutant(name, file, old, new, by=by)


MUTANTS = [
    # What it removes.
    _bug(
        "a file that is gone counts as replaced",
        UNDO,
        "        if next(jobs_reaching(reaches, file), None) is None:\n",
        "        if False:\n",
    ),
    _bug("a job is undone twice", UNDO, " if one.undoes == directory):", " if False):"),
    _bug(
        "what came back is not found under its new name",
        UNDO,
        "    wanted |= {one.key: one for one in copies if (one.origin, one.length) in first}\n",
        "",
    ),
    _bug(
        "a copy may have other bytes",
        UNDO,
        "if (one.origin, one.length) in first}",
        "if one.origin in {origin for origin, _ in first}}",
    ),
    # What it brings back.
    _bug(
        "what an undo brings back is not compared",
        UNDO,
        "    if brought != Counter((file.first_key, file.length) for file in asked):\n",
        "    if len(brought) != len(asked):\n",
    ),
    _bug(
        "the files of an undone job come back",
        UNDO,
        "        if not undone.keys() & _makers(directory.bucket, was.first_key):\n",
        "        if True:\n",
    ),
    _bug(
        "what was replaced comes back beside a later overwrite",
        UNDO,
        "    refused = refused or _overwritten(ports, header, standing, restores)\n",
        "",
    ),
    _bug(
        "an undo that is undone counts as a later overwrite",
        UNDO,
        "        if one.directory not in undone and is_later(",
        "        if is_later(",
    ),
    _bug(
        "an undo has replaced its whole table",
        "core/jobs/past_commits.py",
        "        if self.header.undoes:\n            return",
        "        if False:\n            return",
    ),
    # The key.
    _bug(
        "an undo frees no key",
        "core/commit/publish_success.py",
        "        if record.undoes:\n            free_key(ports, record)\n",
        "",
    ),
    _bug(
        "a key is freed before the undo is decided",
        "core/commit/check_conditions.py",
        "    return ticket.after(record)\n\n\n",
        "    from s3commit.core.jobs.idempotency import free_key\n"
        "    free_key(ports, record)\n"
        "    return ticket.after(record)\n\n\n",
        by=CRASH,
    ),
    _bug(
        "a freed key stays in the ledger",
        KEY,
        "    ports.ledger.free_key(record.destination, digest, record.undoes)\n",
        "",
    ),
    _bug(
        "a key that was freed is remembered",
        KEY,
        "    return None if note is None or note.undone_by else note\n",
        "    return note\n",
    ),
]
