"""Deliberate bugs in the undo of a committed job."""

from __future__ import annotations

from tests.engines.mutants.mutant import Mutant

UNDO = "core/job/undo.py"
KEY = "core/job/idempotency_key.py"
WAY_BACK = "tests/core/test_way_back.py tests/core/test_way_back_refused.py"
CRASH = "tests/crash/test_crash_points.py"


def _bug(name: str, file: str, old: str, new: str, by: str = WAY_BACK) -> Mutant:
    return Mutant(name, file, old, new, by=by)


MUTANTS = [
    # What it removes.
    _bug(
        "an undo removes a file whatever it has become",
        UNDO,
        "            if facts is None or not facts.matches(was.length, was.etag):\n",
        "            if False:\n",
    ),
    _bug(
        "a file that is gone counts as replaced",
        UNDO,
        "        if next(jobs_reaching(reaches, file), None) is None:\n",
        "        if False:\n",
    ),
    Mutant(
        "an undo does not ask the ledger whether the job is under way",
        UNDO,
        "    if known is not None and known.state is not JobState.COMMITTED:\n",
        "    if False:\n",
        by=WAY_BACK,
        also=(
            (
                UNDO,
                "    under_way = appends.to_leave()  # a forged manifest may name their files\n",
                "    under_way: dict[str, tuple[str, ...]] = {}\n",
            ),
        ),
    ),
    _bug(
        "an undo removes the file of an append that is under way",
        UNDO,
        "    under_way = appends.to_leave()  # a forged manifest may name their files\n",
        "    under_way: dict[str, tuple[str, ...]] = {}\n",
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
    _bug(
        "a list speaks of files anywhere",
        UNDO,
        "        if is_copy(file.key, file.origin)\n",
        "",
    ),
    _bug(
        "a manifest of any job speaks of copies",
        "core/commit/verify_manifests.py",
        "not (is_undo and is_copy(file.key, file.origin))",
        "not is_copy(file.key, file.origin)",
    ),
    _bug("any job may undo", "core/formats/documents.py", "not (is_undo and", "not (True and"),
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
        "a commit that another clock dates earlier is not looked at",
        "core/job/history.py",
        "    since = shifted(found[directory].modified, -2 * S3_CLOCKS)",
        "    since = found[directory].modified",
    ),
    _bug(
        "an undo has replaced its whole table",
        "core/job/history.py",
        "        if self.header.undoes:\n            return",
        "        if False:\n            return",
    ),
    _bug(
        "the list of what a job replaced is tidied away",
        "core/commit/tidy_up.py",
        "    is_committed = record.state is JobState.COMMITTED\n",
        "    is_committed = False\n",
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
        "    return ticket.after(record)\n",
        "    from s3commit.core.job.idempotency_key import free_key\n"
        "    free_key(ports, record)\n"
        "    return ticket.after(record)\n",
        by=CRASH,
    ),
    _bug(
        "a freed key stays in the ledger",
        KEY,
        "    ports.ledger.free_key(record.destination, digest, record.undoes)\n",
        "",
    ),
    _bug(
        "a late note takes a freed key back",
        KEY,
        "        return holder is not None and holder.job_id == record.job_id\n",
        "        return True\n",
    ),
    _bug(
        "an empty ledger gives a freed key back",
        "core/job/decision_record.py",
        "        if has_lost_key(ports.store, decided):\n",
        "        if False:\n",
    ),
    _bug(
        "a key that was freed is remembered",
        KEY,
        "    return None if note is None or note.undone_by else note\n",
        "    return note\n",
    ),
]
