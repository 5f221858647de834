"""The way back to a job leaves what was there right after it, or there is truly none (I6)."""

import json
import re
from collections import Counter
from operator import invert

import pytest

from s3commit.core.documents.commit_manifest import CommittedFile
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.ports.bundle import S3Ports
from s3commit.core.undo.back_to import WayBack, jobs_to_undo, plan_way_back
from s3commit.core.undo.bound import Look
from s3commit.core.undo.look_back import Undo, look_back
from tests.core.sequences import ALL, FAR, FEW, Content, Sequence, Write
from tests.core.test_sequences import TINY
from tests.core.world import BUCKET

ASIDE = Write("t/a=2/", ("b=1/",))
ABOVE, LEFT_OUT, ORDER, LATER = "the table above", "has left out", "which was first", "is refused"


@pytest.fixture(autouse=True)
def bucket_keeps_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(
        _ports: S3Ports, _job: JobDirectory, found: Undo
    ) -> tuple[tuple[CommittedFile, str], ...]:
        return tuple((file, "v1") for file in found.restores)

    monkeypatch.setattr("s3commit.core.undo.job._versions", kept)


def plan(sequence: Sequence, number: int) -> WayBack:
    return plan_way_back(sequence.ports, sequence.job(number))


def numbers(text: str) -> list[int]:
    """The jobs that a text names."""
    return [int(found) for found in re.findall(r"(\d{8})-0000-", text)]


def content(sequence: Sequence, root: str) -> Content:
    return {one for one in sequence.visible() if one[0].startswith(root)}


def done(before: Sequence, way: WayBack) -> Sequence:
    """All undos of the plan, each of which does what the plan says."""
    for commit, planned in way.undos:
        found = look_back(Look(before.ports), commit.directory)
        for two in zip(
            *((one.removes, one.restores) for one in (found, planned.found)), strict=True
        ):
            assert len({len(files) for files in two}) == 1
        assert {*found.restores} == {*planned.found.restores}
        before = before.then(*numbers(commit.directory.job_id))
    return before


def check(history: list[Sequence], number: int, ends: Counter[str]) -> None:
    """Go back to the job; ``history`` has what was there after each."""
    now, root = history[-1], history[-1].places[number]
    said, wanted = (now.pace, now.jobs, f"back to {number}"), content(history[number], root)
    try:
        way = plan(now, number)
        after = done(now, way)
    except JobRefusedError as error:
        assert error.code == "REPLACED_SINCE", (said, error)
        assert "ffffffff" not in error.message, (said, error)
        why = next(one for one in (ABOVE, LEFT_OUT, ORDER, LATER) if one in error.message)
        ends[why] += 1
        first, *more = numbers(error.message)
        if why == ABOVE:
            assert root.startswith(now.places[first]) and root != now.places[first], said
            assert number < first and first in now.in_effect(), said
        elif why == LEFT_OUT:
            assert isinstance(now.jobs[first], int) and first > number, said
            assert wanted - content(now, root), said
        elif why == ORDER:
            assert abs(first - more[0]) * now.pace <= S3_CLOCKS and number in {first, *more}, said
        else:
            with pytest.raises(JobRefusedError):
                for one in jobs_to_undo(now.ports, now.job(number)):
                    now = now.then(*numbers(one.directory.job_id))
        return
    assert content(after, root) == wanted, said
    assert plan(after, number).undos == (), said
    ends[f"{len(way.undos)} undos"] += 1


def walk(
    history: list[Sequence], writes: tuple[Write, ...], length: int, ends: Counter[str]
) -> None:
    before = history[-1]
    for what in (*before.steps(writes), *map(invert, range(len(before.jobs)))):
        try:
            after = [*history, before.then(what)]
        except JobRefusedError:
            continue
        for number in range(len(before.jobs)):
            check(after[1:], number, ends)
        if length > 1:
            walk(after, writes, length - 1, ends)


@pytest.mark.parametrize(
    ("writes", "length", "pace"),
    [
        *((FEW, 3, 0), (FEW, 3, 3), (ALL, 3, FAR), (TINY, 4, FAR)),
        *(pytest.param(FEW, 5, pace, marks=pytest.mark.long) for pace in (FAR, 3)),
    ],
)
def test_i6_back_to_each_job_of_all_short_sequences(
    writes: tuple[Write, ...], length: int, pace: int
) -> None:
    ends = Counter[str]()
    walk([Sequence(pace)], writes, length, ends)
    likely = {"1 undos", "2 undos", LEFT_OUT, ABOVE if writes != TINY else LATER}
    likely |= {ORDER} if pace <= S3_CLOCKS else set()
    assert min(ends[one] for one in likely) > 2, ends


@pytest.mark.parametrize("pace", [FAR, 3])
@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ((FEW[0], FEW[1], 1, 2, ~3), LEFT_OUT),  # the undo of the undo of an undo leaves it out
        ((FEW[0], FEW[3], 1, FEW[3], 0), ABOVE),  # what it would bring back is undone from above
        ((FEW[0], 0, 1, FEW[1], ~3), LEFT_OUT),  # not missed where it was undone
        ((ASIDE, FEW[0], 0, FEW[3]), "2 undos"),  # undos of tables beside each other
        ((FEW[1], 0, FEW[1], FEW[1], 3, FEW[1], ~5), "1 undos"),  # nor a copy of what came later
    ],
)
def test_i6_back_to_jobs_of_longer_sequences(
    steps: tuple[Write | int, ...], why: str, pace: int
) -> None:
    ends, history = Counter[str](), [Sequence(pace)]
    for what in steps:
        history.append(history[-1].then(what))
    for number in range(len(steps) - 1):
        check(history[1:], number, ends)
    assert ends[why] or (pace <= S3_CLOCKS and ends[ORDER]), ends


def test_an_undo_may_have_left_data_out_whose_list_does_not_say_that_it_restored_all() -> None:
    """One by an older version, as a bucket may still have it."""
    now = Sequence().then(FEW[0]).then(FEW[1]).then(1)
    assert len(plan(now, 0).undos) == 0
    store, key = now.ports.store, now.job(2).commits
    said = store.get(BUCKET, key, max_bytes=10_000).body
    store.put(BUCKET, key, said.replace(b',"restoresAll":true', b""))
    with pytest.raises(JobRefusedError, match=LEFT_OUT):
        plan(now, 0)


def test_manifests_above_that_undo_each_other_are_not_followed_for_ever() -> None:
    forged = Sequence().then(Write("t/", ("a=2/b=1/",)))
    store, job = forged.ports.store, forged.job(0)
    undo = job.job_id.replace("00000000-", "00000002-", 1)
    header, rest = store.get(BUCKET, job.commits, max_bytes=10_000).body.split(b"\n", 1)
    said = json.dumps({**json.loads(header), "undoes": undo}).encode()
    store.put(BUCKET, job.commits, said + b"\n" + rest)
    now = forged.then(Write("t/a=1/", ("b=1/",))).then(0)
    assert now.job(2).job_id == undo
    with pytest.raises(JobRefusedError, match=ABOVE):
        plan(now, 1)
