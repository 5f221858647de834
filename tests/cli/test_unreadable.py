"""What others have put at any name, and cannot be read, is a row that says so (I12).

Each verb meets each document that a client may put, under each answer that S3 may give of it. A
verb that is new is in the table of the verbs, a document that is new in `JobDirectory`: both show
up here.
"""

import inspect
import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cache

import pytest

from s3commit.cli.app import app
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import ARCHIVED, AccessError, InvalidInputError
from s3commit.core.model.locks import key_digest
from s3commit.core.model.states import JobState
from tests.cli.browser import Browser
from tests.cli.support import JOB, MACHINE, OTHER, SALES, TABLE, THIRD, Desk
from tests.core.world import BUCKET, World, job_directory
from tests.fakes.execution import run_execution

Lay = Callable[[Desk, str], object]  # as the document with that key
REASON = "as a stranger has made it"
KEY = key_digest("2026-11-21")  # as _job.json has it
PLACE = job_directory(JOB)
ELSEWHERE = job_directory(OTHER, "elsewhere/")
_TEXTS = {"task_id": "0", "attempt_id": "a0", "digest": key_digest(KEY), "sha256": key_digest("x")}


def names_of(job: JobDirectory) -> Iterator[tuple[str, str]]:
    """Each name in the job's destination that a client may put an object at, with its key."""
    for one in fields(JobDirectory):
        yield one.name, str(getattr(job, one.name))
    for name, method in inspect.getmembers(JobDirectory, inspect.isfunction):
        taken = list(inspect.signature(method).parameters.values())[1:]
        parameters = [one.name for one in taken if one.default is one.empty]
        if not name.startswith("_"):
            yield name, method(job, *(_TEXTS[one] for one in parameters))
    yield "data", f"{job.destination.prefix}part-0-{job.job_id}.parquet"


@cache
def documents(job: JobDirectory) -> dict[str, str]:
    found = dict(names_of(job))
    within = job.destination.prefix
    return {name: key for name, key in found.items() if key.startswith(within) and key[-1:] != "/"}


def fails(error: Exception, *verbs: str) -> Lay:
    def lay(desk: Desk, key: str) -> None:
        for verb in verbs:
            desk.world.plan.fail(verb, error, times=None, where=lambda call: call.key == key)

    return lay


def has(body: bytes) -> Lay:
    return lambda desk, key: desk.world.store.put(BUCKET, key, body)


def of_another_job(desk: Desk, key: str) -> None:
    """The same document, as a copy of another table has brought it along."""
    (name,) = (name for name, own in documents(PLACE).items() if own == key)
    source = documents(ELSEWHERE)[name]
    desk.world.store.put(BUCKET, key, desk.world.store.get(BUCKET, source, max_bytes=10**6).body)


READS = ("get", "first_bytes")
# https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html: 400 without the customer's
# key (SSE-C), 403 under a KMS key that is another account's, no more than the status;
# https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html: InvalidObjectState.
ANSWERS: dict[str, Lay] = {
    "400 of SSE-C, 405": fails(InvalidInputError(f"{REASON} (400)"), "head", *READS),
    "403 of a foreign key": fails(AccessError(f"{REASON} (403)"), "head", *READS),
    "archived": fails(InvalidInputError(REASON, code=ARCHIVED), *READS),
    "too large": fails(InvalidInputError(REASON, code="TOO_LARGE"), *READS),
    "no JSON": has(b"no json"),
    "empty": has(b""),
    "of another job": of_another_job,
}

STATES: dict[str, Callable[[Desk], object]] = {
    "open": lambda desk: desk.open_job(JOB),
    "requested": lambda desk: desk.requested_job(JOB, idempotency_key=KEY),
    "committed": lambda desk: desk.committed_job(JOB, idempotency_key=KEY),
    "aborted": lambda desk: desk.aborted_job(JOB),
}


@dataclass(frozen=True)
class Checked:
    """How a verb is called, how it may end, and whether it lists ``jobs``: those of others too."""

    calls: tuple[tuple[str, ...], ...]
    ends: frozenset[int] = frozenset({0})
    lists: bool = False


_TABLE = ("--table", TABLE)
_MACHINE = (*_TABLE, "--state-machine", MACHINE)
_LIMITS = ("--stuck-after", "15m", "--abandoned-after", "1d", "--retention", "30d")
VERBS = {
    "status": Checked(((*_TABLE, "--all"),), lists=True),
    "log": Checked(((SALES,), (SALES, *_TABLE)), lists=True),
    "ls": Checked(((SALES,),), lists=True),
    "ls --files": Checked(((SALES, "--files", JOB),), frozenset({0, 1})),
    "fsck": Checked(((SALES,), (SALES, *_TABLE)), frozenset({0, 1})),
    "show": Checked(((PLACE.uri,), (PLACE.uri, *_TABLE))),
    "abort": Checked(((PLACE.uri,), (PLACE.uri, *_MACHINE)), frozenset({0, 3})),
    "commit": Checked(((PLACE.uri, "--partial", *_MACHINE),), frozenset({0, 3})),
    "undo": Checked(((PLACE.uri, "--dry-run"),), frozenset({0, 1, 3})),
    "rescue": Checked(((SALES,),)),
    "uploads": Checked(((SALES,),)),
    "sweep": Checked(((*_MACHINE, *_LIMITS),)),
}
CHANGE = {"abort", "commit", "undo", "sweep"}
READ_NO_DOCUMENT = {"doctor", "pause", "resume", "redrive", "local"}


def test_every_verb_is_judged() -> None:
    judged = {name.split()[0] for name in VERBS}
    assert judged | READ_NO_DOCUMENT | {"ui"} == set(app.commands)
    assert not judged & READ_NO_DOCUMENT


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("state", STATES)
def test_i12_one_unreadable_document_ends_no_view_of_the_page(state: str, answer: str) -> None:
    for name in documents(PLACE):
        browser = Browser(laid(state, name, answer))
        for path in ("/", f"/job?job={PLACE.uri}", f"/table?table={SALES}&fsck=1"):
            assert JOB[:8] in browser.get(path), (name, path)


def test_every_document_is_there() -> None:
    assert documents(PLACE).keys() >= {
        *("job", "request", "result", "commits", "success", "once", "manifest", "data")
    }


@cache
def sound(state: str) -> World:
    """A table with a job, and jobs beside it."""
    desk = Desk()
    desk.committed_job(OTHER, idempotency_key=key_digest("other"))
    desk.open_job(THIRD)
    desk.world.commit(ELSEWHERE, idempotency_key=KEY)
    for place, name in ((ELSEWHERE, "manifest"), (ELSEWHERE, "data")):  # tidied up; another name
        desk.world.store.put(BUCKET, documents(place)[name], b'{"commits":[]}')
    STATES[state](desk)
    return desk.world


def laid(state: str, document: str, answer: str) -> Desk:
    """The same, with the job's document as ``answer`` says."""
    desk, key = Desk(sound(state).copy()), documents(PLACE)[document]
    if document == "data" or desk.world.store.head(BUCKET, key) is None:
        desk.world.store.put(BUCKET, key, b"{}")
    ANSWERS[answer](desk, key)
    return desk


def judge(desk: Desk, cell: str, key: str, verb: str, call: tuple[str, ...]) -> None:
    """Run the verb; see that it ends well, and says what it could not read."""
    how, before = VERBS[verb], len(desk.world.plan.fired)
    result = desk.run_any(verb.partition(" ")[0], *call)
    cell = f"{verb} {call}: {cell}: {result.output}"
    assert result.exit_code in how.ends, cell
    assert "Traceback" not in result.output, cell
    assert result.output.strip(), cell
    if result.exit_code and verb != "fsck":
        assert result.stderr.startswith("Error: "), cell
    if how.lists:
        assert OTHER in result.stdout, cell
        is_listed = verb != "ls" or PLACE.commits in desk.world.all_keys(PLACE.commits)
        assert JOB in result.stdout or not is_listed, cell
    is_refused = result.exit_code and verb in CHANGE  # for what stands, or by the reason
    if any(one.key == key for one in desk.world.plan.fired[before:]) and not is_refused:
        assert REASON in " ".join(result.output.split()) or verb == "sweep", cell


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("document", documents(PLACE))
def test_i12_one_unreadable_document_is_a_row_and_ends_no_command(
    document: str, answer: str
) -> None:
    key = documents(PLACE)[document]
    for state in STATES:
        cell, desk = f"{state} job, {document} {answer}", laid(state, document, answer)
        for verb, how in VERBS.items():
            for call in how.calls:
                if verb in CHANGE:
                    judge(laid(state, document, answer), cell, key, verb, call)
                else:
                    judge(desk, cell, key, verb, call)


def copied_in(desk: Desk, name: str, **said: object) -> None:
    """A document of a committed job, as a stranger would put it to pass for one of the job's."""
    source, target = documents(job_directory(OTHER))[name], documents(PLACE)[name]
    first, *rest = desk.world.store.get(BUCKET, source, max_bytes=10**6).body.splitlines()
    forged = {**json.loads(first), "jobId": JOB, **said}
    desk.world.store.put(BUCKET, target, b"\n".join([json.dumps(forged).encode(), *rest]))


@pytest.mark.parametrize("document", ["result", "commits"])
def test_i12_a_job_that_a_stranger_says_is_committed_is_ended_by_command(document: str) -> None:
    """The ledger knows better, and an abort of a decided job has no effect anyway."""
    desk = Desk()
    desk.committed_job(OTHER)
    desk.open_job(JOB)
    copied_in(desk, document)
    shown = desk.json("show", PLACE.uri, *_TABLE)
    assert (shown["state"], shown["result"]) == ("OPEN", None)
    if document == "result":
        assert "_result.json has COMMITTED, the ledger OPEN" in shown["problems"][0]
    desk.run("abort", PLACE.uri, *_TABLE)
    desk.world.run(PLACE)
    assert desk.world.record(PLACE).state is JobState.ABORTED
    shown = desk.json("show", PLACE.uri, *_TABLE)
    assert (shown["state"], shown["result"]["outcome"]) == ("ABORTED", "ABORTED")


def test_a_result_that_comes_while_the_job_is_looked_at_is_the_pipelines(desk: Desk) -> None:
    desk.requested_job(JOB)
    desk.world.plan.run_after("job", lambda: desk.world.run(PLACE), nth=1)
    desk.session.ledgers[TABLE] = desk.world.ports.ledger
    shown = desk.json("show", PLACE.uri, *_TABLE)
    assert (shown["state"], shown["problems"]) == ("COMMITTED", [])


@pytest.mark.parametrize("document", documents(PLACE))
@pytest.mark.parametrize("state", ["open", "requested"])
def test_i12_a_job_whose_documents_can_not_be_read_is_ended_by_command(
    state: str, document: str
) -> None:
    for answer in ANSWERS:
        desk = laid(state, document, answer)
        result = desk.run_any("abort", PLACE.uri, *_MACHINE)
        cell = f"{state} job, {document} {answer}: {result.output}"
        assert result.exit_code == 0, cell
        if (state, document) == ("requested", "request"):
            assert "which can't be read here" in result.output, cell
        run_execution(desk.world.ports, PLACE, gives_up=desk.executions.gives_up)
        assert desk.world.record(PLACE).state is JobState.ABORTED, cell
        assert desk.world.visible("sales/").keys() >= {f"sales/part-0-{OTHER}.parquet"}


@pytest.mark.parametrize("verb", ["log", "ls", "fsck", "show", "abort", "commit"])
def test_who_may_not_list_learns_that_and_nothing_else(desk: Desk, verb: str) -> None:
    """Of objects that are not listed nothing is known: a row would claim more."""
    desk.committed_job(JOB)
    for listing in ("list", "below"):
        desk.world.plan.fail(listing, AccessError("no right to list"), times=None)
    line = desk.fails(verb, SALES if verb in {"log", "ls", "fsck"} else PLACE.uri, exit_code=1)
    assert "no right to list [ACCESS_DENIED]" in line


# Names that the terminal's encoding lacks


NAMED = job_directory(JOB, "größe 日本 😀/")
HERE = {SALES: NAMED.destination.uri, PLACE.uri: NAMED.uri}


# In ASCII alone click takes the terminal for misconfigured, and writes UTF-8.
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "cp1252", "cp437"])
@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_prints_each_name_in_each_encoding(
    verb: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk()
    desk.world.commit(NAMED)
    expected = NAMED.destination.prefix.encode(encoding, "backslashreplace").decode(encoding)
    for call in VERBS[verb].calls:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2))
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        arguments = [verb.partition(" ")[0], *(HERE.get(one, one) for one in call)]
        with pytest.raises(SystemExit) as caught:
            app.main(arguments, prog_name="s3commit", obj=desk.session)
        shown = ""
        for stream in (out, err):
            stream.seek(0)
            shown += stream.read()
        assert "Traceback" not in shown
        assert caught.value.code in VERBS[verb].ends, shown
        if verb in {"status", "show", "fsck"}:
            assert expected in shown
