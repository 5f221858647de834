"""Sequences of jobs and undos at tables inside each other, without the pipeline.

Each job leaves what the pipeline leaves of it: files, a commit manifest, and the list of what it
replaced. A sequence goes on from another one's bucket, so that what two have in common is done
once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from s3commit.core.documents.commit_manifest import CommitHeader, CommittedFile, commit_lines
from s3commit.core.documents.replace_list import write_replaced
from s3commit.core.formats.layout import JobDirectory, is_data, partition_of
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ListedObject
from s3commit.core.undo.bound import Look
from s3commit.core.undo.look_back import look_back
from tests.core.world import BUCKET, job_directory
from tests.fakes.memory import ManualClock, MemoryLedger, MemoryObjectStore

TOP, MIDDLE, LOW = "t/", "t/a=1/", "t/a=1/b=1/"
FAR: Final = 2 * S3_CLOCKS  # seconds between two jobs that S3's clocks tell apart


class Write(NamedTuple):
    """A job that writes one file to each of some directories of its destination."""

    place: str
    directories: tuple[str, ...]
    conflict: Conflict = Conflict.APPEND
    scope: Scope = Scope.DIRECTORY

    @property
    def reached(self) -> tuple[str, ...]:
        """The directories whose files it replaces."""
        if self.conflict is Conflict.APPEND:
            return ()
        inside = self.directories if self.scope is Scope.PARTITION else ("",)
        return tuple(self.place + one for one in inside)

    @property
    def places(self) -> tuple[str, ...]:
        """Those of its files."""
        return tuple(self.place + one for one in self.directories)


BOTH: Final = ("a=1/b=1/", "a=2/b=1/")
FEW: Final = (
    Write(TOP, BOTH),
    Write(TOP, BOTH[:1], Conflict.REPLACE),
    Write(TOP, BOTH[:1], Conflict.REPLACE, Scope.PARTITION),
    Write(MIDDLE, ("b=1/",), Conflict.REPLACE),
)
ALL: Final = (
    *FEW,
    Write(TOP, (), Conflict.REPLACE),
    Write(MIDDLE, ("b=1/", "b=2/")),
    Write(MIDDLE, ("b=1/",), Conflict.REPLACE, Scope.PARTITION),
    Write(LOW, ("",)),
    Write(LOW, ("",), Conflict.REPLACE),
)
What = Write | int  # or the undo of the job at a place; of ~place, what it replaced stays removed
Content = set[tuple[str, int]]  # a directory, and the number of the job that has written the file


def undone(what: int) -> int:
    """The place of the job that is undone."""
    return max(what, ~what)


def _ports(clock: ManualClock) -> Ports:
    return Ports(MemoryObjectStore(BUCKET, clock=clock), MemoryLedger(clock), clock)


@dataclass(frozen=True)
class Sequence:
    """The jobs so far, and the bucket as they left it; ``pace`` is in seconds, between two."""

    pace: int = FAR
    jobs: tuple[What, ...] = ()
    places: tuple[str, ...] = ()  # of the jobs
    ports: Ports = field(default_factory=lambda: _ports(ManualClock()))

    def job(self, number: int) -> JobDirectory:
        return job_directory(f"{number:08d}-0000-4000-8000-000000000000", self.places[number])

    def then(self, what: What) -> "Sequence":
        """With one job more. Raises `JobRefusedError` for an undo that is refused."""
        place = what.place if isinstance(what, Write) else self.places[undone(what)]
        clock = ManualClock(self.ports.clock.now())
        clock.advance(self.pace)
        after = Sequence(self.pace, (*self.jobs, what), (*self.places, place), _ports(clock))
        before = self.ports.store.bucket(BUCKET).objects  # type: ignore[attr-defined]
        after.ports.store.bucket(BUCKET).objects.update(before)  # type: ignore[attr-defined]
        if isinstance(what, Write):
            gone = [
                one for one in self._data() if what.reached and one.key.startswith(what.reached)
            ]
            after._commit([(one, "") for one in what.places], gone, what)
        else:
            found = look_back(Look(self.ports), self.job(undone(what)))
            if what < 0 and not found.removes:
                raise JobRefusedError("it has no files", code="NOTHING_TO_UNDO")
            if what >= 0 and found.refused is not None:
                raise found.refused
            restores = found.restores if what >= 0 else ()
            back = [(partition_of(one.key), one.first_key) for one in restores]
            restores_all = what >= 0 or not found.may_restore
            after._commit(back, list(found.removes), what, restores_all=restores_all)
        return after

    def _commit(
        self,
        files: list[tuple[str, str]],
        gone: list[ListedObject],
        what: What,
        *,
        restores_all: bool = False,
    ) -> None:
        directory, store = self.job(len(self.jobs) - 1), self.ports.store
        listed = []
        for number, (place, origin) in enumerate(files):
            key = f"{place}part-{number}-{directory.job_id}.csv"
            store.put(BUCKET, key, (origin or key).encode())
            listed.append(CommittedFile(key, len(origin or key), origin=origin))
        appends = isinstance(what, Write) and what.conflict is Conflict.APPEND
        replaced = None if appends else write_replaced(self.ports, directory, gone)
        header = CommitHeader(
            *(directory.job_id, directory.destination.uri, self.ports.clock.now()),
            *(len(files), sum(one.length for one in listed), None),
            replaced=replaced and replace(replaced, restores_all=restores_all),
            scope=what.scope if isinstance(what, Write) else Scope.DIRECTORY,
            undoes="" if isinstance(what, Write) else self.job(undone(what)).job_id,
        )
        store.put(BUCKET, directory.commits, b"".join(commit_lines(header, listed)))
        for one in gone:
            store.delete(BUCKET, one.key)

    def _data(self) -> list[ListedObject]:
        return [one for one in self.ports.store.list(BUCKET, TOP) if is_data(one.key)]

    def in_effect(self) -> set[int]:
        """The jobs that no job in effect undoes."""
        found: set[int] = set()
        for number in reversed(range(len(self.jobs))):
            if not any(self.jobs[one] in {number, ~number} for one in found):
                found.add(number)
        return found

    def expected(self) -> Content:
        """What the writes in effect leave, one after the other."""
        found: Content = set()
        standing = self.in_effect()
        removing = {~what for one in standing if isinstance(what := self.jobs[one], int)}
        for number in sorted(standing | {one for one in removing if one >= 0}):
            what = self.jobs[number]
            if isinstance(what, Write):
                found = {one for one in found if not one[0].startswith(what.reached or "/")}
                found |= {(place, number) for place in what.places if number in standing}
        return found

    def visible(self) -> Content:
        """What is there; a file's body is the key that its data had first."""
        store, found = self.ports.store, set()
        for one in self._data():
            first = store.get(BUCKET, one.key, max_bytes=1000).body.decode()
            found.add((partition_of(one.key), int(first.rpartition("/part-")[2].split("-")[1])))
        return found

    def steps(self, writes: tuple[Write, ...]) -> Iterator[What]:
        yield from writes
        yield from range(len(self.jobs))
