"""The way back to right after a job leaves what was there then, or says truly why there is none."""

from collections import Counter

import pytest

from s3commit.core.documents.commit_manifest import CommittedFile
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.ports.bundle import S3Ports
from s3commit.core.undo.back_to import WayBack, plan_way_back
from s3commit.core.undo.look_back import Undo
from tests.core.sequences import ALL, FAR, FEW, Content, Sequence, Write, undone


def _kept(_ports: S3Ports, _job: JobDirectory, found: Undo) -> tuple[tuple[CommittedFile, str], ...]:
    return tuple((file, "v1") for file in found.restores)


@pytest.fixture(autouse=True)
def bucket_keeps_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("s3commit.core.undo.job._versions", _kept)


def seen(sequence: Sequence, root: str) -> Content:
    return {one for one in sequence.visible() if one[0].startswith(root)}


def plan(sequence: Sequence, number: int) -> WayBack:
    return plan_way_back(sequence.ports, sequence.job(number), sequence.ports.clock.now())


def number_of(sequence: Sequence, job: JobDirectory) -> int:
    return next(n for n in range(len(sequence.jobs)) if sequence.job(n) == job)


def check(history: list[Sequence], number: int, ends: Counter[str]) -> None:
    """Go back to the job; ``history`` has the sequence after each job."""
    now, root = history[-1], history[-1].places[number]
    said = (now.pace, *now.jobs, f"back to {number}")
    wanted = seen(history[number], root)
    try:
        way = plan(now, number)
    except JobRefusedError as error:
        assert error.code == "REPLACED_SINCE", (said, error)
        ends[next(word for word in REASONS if word in error.message)] += 1
        return
    if way.refused:
        assert way.refused.code == "REPLACED_SINCE", (said, way.refused)
        ends["refused"] += 1
        return
    after = now
    for commit, planned in way.undos:
        before = seen(after, root)
        after = after.then(number_of(after, commit.directory))
        assert len(before) - len(planned.found.removes) + len(planned.restores) == len(
            seen(after, root)
        ), said
    assert seen(after, root) == wanted, said
    ends[f"{len(way.undos)} undos"] += 1
    assert plan(after, number).undos == (), said


REASONS = ("has left out", "the table above", "within")


def walk(history: list[Sequence], writes: tuple[Write, ...], length: int, ends: Counter[str]) -> None:
    before = history[-1]
    for what in (*before.steps(writes), *(~one for one in range(len(before.jobs)))):
        try:
            after = before.then(what)
        except JobRefusedError:
            continue
        for number in range(len(before.jobs)):
            check([*history[1:], after], number, ends)
        if length > 1:
            walk([*history, after], writes, length - 1, ends)


@pytest.mark.parametrize(("writes", "length", "pace"), [(FEW, 4, FAR), (FEW, 3, 0), (ALL, 3, FAR)])
def test_i6_back(writes, length, pace) -> None:
    ends = Counter[str]()
    walk([Sequence(pace)], writes, length, ends)
    print(ends)
