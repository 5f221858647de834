"""A client with a right to put, to list and to upload below one prefix, that means harm.

Its calls are those which such a right allows, and no others: a put, an upload of its own, its
parts, its completion or its abort, all below `prefix`; it lists the whole bucket and reads below
its prefix. What it writes is drawn by seed from all documents of the protocol (`forgeries`), with
the ids and keys that it sees. What comes of it is judged by `escalation`.
"""

import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from s3commit.core.documents.job_json import JOB_JSON
from s3commit.core.documents.pendingset import PendingFile
from s3commit.core.documents.request_json import CountedAttempt
from s3commit.core.formats.layout import (
    COMMITS,
    MAGIC_PREFIX,
    JobDirectory,
    is_data,
    parse_commit_manifest_key,
    parse_directory,
)
from s3commit.core.formats.strict_json import digest
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import InvalidInputError, S3CommitError
from s3commit.core.model.locks import key_digest
from s3commit.core.ports.objects import ListedObject, ObjectStore
from tests.engines.sim import forgeries
from tests.engines.sim.clients import BUCKET
from tests.engines.sim.scheduler import Scheduler
from tests.fakes.bucket import CUSTOMER, FOREIGN, Bucket
from tests.fakes.faults import Crash

JOB_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
OWN_ID = "0bad0bad-0000-4000-8000-00000000000"
# Inside an honest table, beside all tables, and a table of its own in which others commit, too.
PREFIXES = ("sales/dt=1/", "sales/dt=1/", "sales2/", "evil/")
# Below its prefix: where it has its jobs. Some are names of ours.
_BELOW = ("", "", "", "", "dt=5/", "h=3/", "_commits/", "_commits/_once/", "__magic/", "d/" * 40)


@dataclass
class Adversary:
    """One principal. `run` is its process's body."""

    scheduler: Scheduler
    store: ObjectStore
    bucket: Bucket
    rng: random.Random
    prefix: str
    moves: Counter[str] = field(default_factory=Counter)
    uploads: list[PendingFile] = field(default_factory=list)
    came: str = ""
    _serial: int = 0

    def run(self, plots: int) -> None:
        """So many plots, each with one job directory as its scene."""
        self.came = self.scheduler.s3_clock.now()
        for _ in range(plots):
            self._plot()
            self.scheduler.sleep(self.rng.choice([0.0, 0.1, 5.0, 300.0, 3000.0]))

    def _plot(self) -> None:
        rng = self.rng
        directory = self._scene()
        scene = _Scene(self, directory)
        for _ in range(rng.choice([1, 2, 3, 5, 8])):
            move = rng.choice(_MOVES)
            if move.__name__ == "ask" and not scene.asked and rng.random() < 0.5:
                move = _Scene.have_a_job  # so that many requests have something behind them
            try:
                move(scene)
                self.moves[move.__name__.replace("_", " ")] += 1
            except (S3CommitError, Crash):
                pass  # its own client's troubles
            if rng.random() < 0.3:
                self.scheduler.sleep(rng.choice([0.001, 0.1, 5.0, 700.0]))

    def _scene(self) -> JobDirectory:
        """A directory below its prefix: one that is there, or was, or with an id that it sees."""
        rng = self.rng
        there = [*self.directories(), *self.listed()]
        there = [directory for directory in there if directory.prefix.startswith(self.prefix)]
        if there and rng.random() < 0.5:
            return rng.choice(there)
        destination = Destination(BUCKET, self.prefix + rng.choice(_BELOW))
        return JobDirectory(destination, rng.choice(self.ids()))

    # What it sees.

    def seen(self, prefix: str = "") -> list[ListedObject]:
        """All keys of the bucket, or those below a prefix."""
        return self.bucket.listing(prefix)

    def directories(self) -> list[JobDirectory]:
        """The job directories of everybody."""
        directories = (directory_of(one.key) for one in self.seen() if MAGIC_PREFIX in one.key)
        return list({one.prefix: one for one in directories if one is not None}.values())

    def listed(self) -> list[JobDirectory]:
        """The directories, there or not, of the jobs that have a list in ``_commits/``."""
        found = []
        for one in self.seen():
            above = Destination(BUCKET, one.key.rpartition(COMMITS)[0])
            directory = parse_commit_manifest_key(above, one.key)
            if directory is not None:
                found.append(directory)
        return found

    def ids(self) -> list[str]:
        """All in names of directories, files and open uploads, twice; and three of its own."""
        keys = [*(one.key for one in self.seen()), *(o.key for o in self.bucket.uploads.values())]
        others = {found[0] for key in keys for found in JOB_ID.finditer(key)}
        return sorted(others) * 2 + [f"{OWN_ID}{number}" for number in range(3)]

    def destinations(self) -> list[str]:
        """The prefixes at which jobs have their directories."""
        return sorted({directory.destination.prefix for directory in self.directories()}) or [
            self.prefix
        ]

    # Its calls.

    def put(
        self, key: str, body: bytes, *, if_absent: bool = False, encrypted: bool = False
    ) -> None:
        """Put an object below its prefix, at once or as the last act of an upload in parts.

        Now and then it is under a key that only its own client has. On AWS the Last-Modified of
        what was uploaded in parts is when the upload was begun: when it came here.
        """
        self.store.put(BUCKET, key, body, if_absent=if_absent)
        version = self.bucket.current(key)
        if version is not None and version.body == body and self.rng.random() < 0.3:
            object.__setattr__(version, "modified", self.came)
        if version is not None and version.body == body and (encrypted or self.rng.random() < 0.1):
            object.__setattr__(version, "key_of", self.rng.choice([CUSTOMER, FOREIGN]))

    def upload(self, directory: JobDirectory, key: str, body: bytes) -> PendingFile:
        """Begin an upload of its own, of an attempt or of none."""
        self._serial += 1
        ids = (f"z{self._serial}", "a0") if self.rng.random() < 0.6 else ("", "")
        upload_id = self.store.create_upload(BUCKET, key, metadata={}, content_type="x")
        if upload_id in self.bucket.uploads and self.rng.random() < 0.2:
            self.bucket.uploads[upload_id].key_of = self.rng.choice([CUSTOMER, FOREIGN])
        etag = self.store.upload_part(BUCKET, key, upload_id, 1, body)
        file = PendingFile(
            BUCKET, key, upload_id, (etag,), len(body), directory.job_id, *ids, rows=len(body)
        )
        self.uploads.append(file)
        return file


@cache
def directory_of(key: str) -> JobDirectory | None:
    """The job directory in which a key lies."""
    try:
        return parse_directory(BUCKET, key)
    except InvalidInputError:
        return None


class _Scene:
    """One job directory below its prefix, and what may be done in it and beside it."""

    def __init__(self, adversary: Adversary, directory: JobDirectory) -> None:
        self.who = adversary
        self.rng = adversary.rng
        self.directory = directory
        self.spec = forgeries.job_spec(self.rng, directory, adversary.ids())
        self.counted: list[CountedAttempt] = []
        self.asked = False

    def _elsewhere(self) -> list[str]:
        return [one for one in self.who.destinations() if one != self.directory.destination.prefix]

    def _below(self) -> list[ListedObject]:
        """The data that is visible at the scene's destination."""
        prefix = self.directory.destination.prefix
        return [one for one in self.who.seen(prefix) if is_data(one.key[len(prefix) :])]

    # Moves: documents of a job.

    def say_what_job(self) -> None:
        """``_job.json``, put once or over the one that is there."""
        body = forgeries.job_document(self.rng, self.spec, self._elsewhere())
        self.who.put(self.directory.job, body)

    def have_a_job(self) -> None:
        """A job that is what it says: a replace of what lies there, maybe with nothing new."""
        self.who.put(self.directory.job, JOB_JSON.encode(self.spec), if_absent=True)
        if self.rng.random() < 0.7:
            self.finish_a_task()
        self.asked = True
        word = forgeries.request(self.rng, self.directory, self.counted)
        self.who.put(self.directory.request, word, if_absent=True)

    def ask(self) -> None:
        """``_request.json``."""
        self.asked = True
        word = forgeries.request(self.rng, self.directory, self.counted)
        self.who.put(self.directory.request, word)

    def finish_a_task(self) -> None:
        """A manifest, or one over another, that names own uploads and what is visible."""
        files = [self._upload() for _ in range(self.rng.choice([0, 1, 1, 2]))]
        task = files[0].task_id if files and files[0].task_id else "z"
        seen = self._below() if self.rng.random() < 0.7 else self.who.seen()
        body = forgeries.manifest(self.rng, self.directory, files, seen, task)
        name = self.directory.manifest_name(task, "a0")
        self.who.put(self.directory.prefix + name, body)
        size = sum(file.length for file in files)
        self.counted.append(CountedAttempt(task, "a0", name, digest(body), len(files), size))

    def end_it(self) -> None:
        """``_result.json``, forged."""
        self.who.put(self.directory.result, forgeries.result(self.rng, self.directory))

    def list_it(self) -> None:
        """``_commits/_<id>.jsonl``, forged: of nothing, or of files that are there."""
        body = forgeries.commit_manifest(
            self.rng, self.directory, self.who.seen(self.who.prefix), self.who.ids()
        )
        self.who.put(self.directory.commits, body)

    def take_a_key(self) -> None:
        """``_commits/_once/…``, forged."""
        key = self.directory.once(key_digest(forgeries.KEY))
        self.who.put(key, forgeries.once_note(self.rng, self.who.ids()))

    def mark(self) -> None:
        """``_SUCCESS``, forged."""
        self.who.put(self.directory.success, forgeries.marker(self.rng, self.who.ids()))

    def write_over(self) -> None:
        """Anything over what is below its prefix: documents, lists, notes, data."""
        found = self.who.seen(self.who.prefix)
        if found:
            self.who.put(self.rng.choice(found).key, forgeries.no_document(self.rng))

    def copy(self) -> None:
        """A document of its own to where one of another job, or at another place, would lie."""
        found = [one.key for one in self.who.seen(self.who.prefix) if MAGIC_PREFIX in one.key]
        if found:
            key = self.rng.choice(found)
            name = key.partition(MAGIC_PREFIX)[2].partition("/")[2]
            version = self.who.bucket.current(key)
            self.who.put(self.directory.prefix + name, (version.body if version else b"") or b"")

    def mark_a_directory(self) -> None:
        """An object without bytes where a directory would be."""
        key = self.rng.choice(
            [self.directory.prefix, self.directory.tasks, self.directory.request + "/"]
        )
        self.who.put(key, b"")

    # Moves: uploads and data.

    def _upload(self) -> PendingFile:
        """With a name that carries the scene's id; now and then one that is visible."""
        prefix, serial = self.directory.destination.prefix, len(self.who.uploads)
        name = f"part-z{serial}-{self.directory.job_id}.parquet"
        seen = [one.key for one in self._below() if self.directory.job_id in one.key]
        key = self.rng.choice([prefix + name, prefix + name, *seen[:2]])
        body = self._bytes(key)
        return self.who.upload(self.directory, key, body)

    def _bytes(self, key: str) -> bytes:
        """Its own, or what lies there already."""
        version = self.who.bucket.current(key)
        same = version is not None and version.body and self.rng.random() < 0.5
        return version.body if same and version and version.body else f"evil {key}".encode()

    def leave_an_upload(self) -> None:
        """With a name that carries the scene's id."""
        self._upload()

    def complete_an_upload(self) -> None:
        """One of its own, by itself."""
        file = self.rng.choice(self.who.uploads) if self.who.uploads else self._upload()
        self.who.store.complete_upload(
            BUCKET, file.key, file.upload_id, file.etags, length=file.length
        )

    def abort_an_upload(self) -> None:
        """One of its own: a job that counts it is rolled back, if that job is decided."""
        if self.who.uploads:
            file = self.rng.choice(self.who.uploads)
            self.who.store.abort_upload(BUCKET, file.key, file.upload_id)

    def lock_away(self) -> None:
        """An object of the scene's under a key of its own: listed, and not to be read.

        At each name of the protocol's, or over what lies there: files of others that a job is about
        to replace, or to undo.
        """
        own = self.directory
        keys = (own.job, own.request, own.result, own.commits, own.success)
        seen = [one.key for one in self._below()]
        open_now = [one.key for one in self.who.bucket.uploads.values()]
        planned = [key for key in open_now if key.startswith(self.who.prefix)]
        key = self.rng.choice([*keys, *seen, *planned])
        self.who.put(key, self._bytes(key), encrypted=True)

    def put_data(self) -> None:
        """A file, new or over one that is there."""
        keys = [one.key for one in self.who.seen(self.who.prefix) if MAGIC_PREFIX not in one.key]
        own = f"{self.who.prefix}part-z-{self.directory.job_id}.parquet"
        key = self.rng.choice([own, f"{self.who.prefix}bell\x07", *keys])
        self.who.put(key, self._bytes(key))


_MOVES: tuple[Callable[[_Scene], None], ...] = (
    _Scene.say_what_job, _Scene.have_a_job, _Scene.have_a_job, _Scene.ask, _Scene.ask,
    _Scene.finish_a_task, _Scene.finish_a_task, _Scene.end_it,
    _Scene.list_it, _Scene.take_a_key, _Scene.mark, _Scene.write_over,
    _Scene.copy, _Scene.lock_away, _Scene.mark_a_directory, _Scene.leave_an_upload,
    _Scene.complete_an_upload, _Scene.abort_an_upload, _Scene.put_data,
)  # fmt: skip
