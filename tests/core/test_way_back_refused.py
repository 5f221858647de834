"""What an undo refuses: the changed since, jobs under way, forged lists (I2, I5, I6, I12)."""

import tracemalloc
from dataclasses import replace
from types import ModuleType

import pytest

from s3commit.core.documents.commit_manifest import CommittedFile
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.errors import JobFailedError, JobRefusedError
from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.record import ReplacedFacts
from s3commit.core.model.states import JobState
from s3commit.core.undo import bound, files
from s3commit.core.undo.job import plan_undo
from s3commit.writer.undo import carry_out
from tests.core.way_back import OPTIONS, PARTITION, REPLACE, Table, code_of, dated, forge
from tests.core.world import NEIGHBOUR, World, job_directory
from tests.fakes.faults import FaultPlan
from tests.writer.support import fake_id


def test_i2_what_comes_back_is_what_was_replaced_and_no_other_of_its_size() -> None:
    table = Table()
    first, second = table.write("dt=1/", "dt=2/"), table.write("dt=1/", "dt=2/")
    over = table.write("dt=1/", **PARTITION)
    table.undo(first)
    plan = plan_undo(table.world.unplanned, over, leave_removed=False)
    table.undo(table.undone[first])
    table.undo(second)
    before = table.visible()
    with pytest.raises(JobFailedError) as refused:
        carry_out(table.world.unplanned, plan, OPTIONS, table.environment)
    assert refused.value.code == "FILES_CHANGED"
    assert table.visible() == before
    table.undo(over)
    assert table.visible() == table.replayed()


def test_i12_a_manifest_that_says_copy_is_an_undos_and_of_the_same_directory() -> None:
    table = Table()
    done = table.write("dt=1/")
    for spec, origin in (
        ({}, "sales/dt=1/x.csv"),
        ({**REPLACE, "undoes": done.job_id}, "sales/x.csv"),
    ):
        liar = job_directory(table.environment.new_id())
        table.world.open(liar, **spec)
        files = {f"dt=1/part-0-{liar.job_id}.csv": b"x"}
        table.world.request(liar, table.world.attempt(liar, "t", files=files, origin=origin))
        table.world.run(liar)
        assert table.world.ended(liar) == (Outcome.ABORTED, "BAD_FIELD")


@pytest.mark.parametrize("own", [True, False], ids=["own files", "no files"])
@pytest.mark.parametrize(
    "code",
    ["BAD_NAME", "NAME_TOO_LONG", "VERSIONS_GONE", "LIST_GONE", "TOO_LARGE", "FILES_CHANGED"],
)
def test_where_nothing_can_come_back_the_line_names_a_way_that_there_is(
    code: str, own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is done; versions have expired in part."""
    table = Table()
    older = table.write("dt=1/", "dt=2/")
    key = f"sales/dt=2/part-0-{older.job_id}.c000.csv"
    if code == "BAD_NAME":
        table.world.store.put("lake", "sales//x", b"x")
    if code == "NAME_TOO_LONG":
        table.world.store.put("lake", "sales/" + ("d" * 250 + "/") * 4 + "x", b"x")
    over = table.write(*["dt=1/"] * own, **REPLACE)
    if code == "VERSIONS_GONE":
        del table.world.store.bucket("lake").objects[key][0]
    elif code == "LIST_GONE":
        for one in table.world.all_keys(over.replaced):
            table.world.store.delete("lake", one)
    elif code == "TOO_LARGE":
        monkeypatch.setattr(files, "MAX_JOB_FILES", 1)
    elif code == "FILES_CHANGED":
        table.world.store.put("lake", key, b"0 sales/dt=2/")
    assert code_of(table, over) == code
    with pytest.raises(JobRefusedError) as refused:
        table.undo(over)
    assert ("leave_removed=True" in refused.value.message) == own
    assert ("write it again" in refused.value.message) != own
    if own:
        table.undo(over, leave_removed=True)


@pytest.mark.parametrize(
    "name", ["/x.csv", "//x.csv", "d//x.csv", "d\x01/x.csv", "d\x7f/x.csv", "x.c\x01sv", "x.\n"]
)
def test_a_name_that_no_job_may_write_does_not_come_back(name: str) -> None:
    """Another program's: an overwrite removes it, and the plan of the undo says so."""
    table = Table()
    table.world.store.put("lake", f"sales/{name}", b"theirs")
    over = table.write("dt=1/", **REPLACE)
    assert table.world.store.head("lake", f"sales/{name}") is None
    assert code_of(table, over) == "BAD_NAME"


def broken(table: Table, older: JobDirectory, over: JobDirectory, how: str) -> None:
    """Something happens between the plan of an undo of ``over`` and its request."""
    store, world = table.world.store, table.world
    (own,) = [key for key in world.visible() if over.job_id in key]
    match how:
        case "a later overwrite":
            table.write("dt=1/", **PARTITION)
        case "a file deleted by hand":
            store.delete("lake", own)
        case "a file changed":
            store.put("lake", own, b"theirs")
        case "its manifest deleted":
            store.delete("lake", over.commits)
        case "its manifest changed":
            body = store.get("lake", over.commits, max_bytes=10**6).body
            store.put("lake", over.commits, body + body.splitlines()[-1])
        case "the list of the removed changed":
            page = next(key for key in world.all_keys(over.replaced) if "_pages" in key)
            store.put("lake", page, b"{}\n")
        case "a replaced file put back by hand":
            store.put("lake", f"sales/dt=1/part-0-{older.job_id}.c000.csv", b"0 sales/dt=1/")
        case "what came back undone":
            table.undo(older)


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("a later overwrite", "REPLACED_SINCE"),
        ("a file deleted by hand", "FILES_CHANGED"),
        ("a file changed", "FILES_CHANGED"),
        ("its manifest deleted", "NOT_COMMITTED"),
        ("its manifest changed", "TRUNCATED"),
        ("the list of the removed changed", "LIST_GONE"),
        ("a replaced file put back by hand", "FILES_CHANGED"),
        ("what came back undone", "FILES_CHANGED"),
    ],
)
@pytest.mark.parametrize("planned", [True, False])
def test_i2_i5_what_has_changed_is_not_undone(how: str, code: str, planned: bool) -> None:
    """By the pipeline, whatever the client had planned; and by a client that looks then."""
    table = Table()
    older = table.write("dt=1/", "dt=2/")
    over = table.write("dt=1/", **PARTITION)
    kept = table.write("dt=3/")
    plan = plan_undo(table.world.unplanned, over, leave_removed=False) if planned else None
    if how == "what came back undone" and plan is None:
        return  # then less comes back
    broken(table, older, over, how)
    before = table.world.visible()
    with pytest.raises((JobRefusedError, JobFailedError)) as refused:
        if plan is None:
            table.undo(over)
        else:
            carry_out(table.world.unplanned, plan, OPTIONS, table.environment)
    assert refused.value.code == code
    assert table.world.visible() == before
    assert not table.world.open_uploads()
    assert table.stands(kept)


def test_i12_an_undo_of_a_job_that_is_under_way_is_refused() -> None:
    table = Table()
    directory = job_directory(table.environment.new_id())
    table.world.ask(directory)
    table.world.plan.crash_before("advance", nth=3)  # all is visible, and its manifest there
    table.world.dies(directory)
    assert table.world.record(directory).state is JobState.PUBLISHING
    plan = plan_undo(table.world.unplanned, directory, leave_removed=False)
    table.environment.on_sleep = lambda _: table.pipeline(but=directory)
    with pytest.raises(JobFailedError) as refused:
        carry_out(table.world.unplanned, plan, OPTIONS, table.environment)
    assert refused.value.code == "NOT_COMMITTED"
    assert len(table.world.visible()) == 1


def test_i6_a7_an_undo_is_seen_though_another_clock_dates_it_before_its_job() -> None:
    table = Table()
    wrong = table.write("dt=1/")
    table.undo(wrong)
    dated(table, wrong, table.pace + S3_CLOCKS)
    assert code_of(table, wrong) == "NOTHING_TO_UNDO"
    table.undo(table.undone[wrong])
    dated(table, table.undone[wrong], 2 * table.pace + S3_CLOCKS)
    assert table.visible() == table.replayed() != set()
    assert code_of(table, wrong) == "NOTHING_TO_UNDO"


@pytest.mark.parametrize("behind", [False, True])
def test_i6_a7_an_overwrite_within_seconds_of_the_undone_one_counts_as_later(behind: bool) -> None:
    table = Table()
    table.write("dt=1/")
    over = table.write(**REPLACE)
    later = table.write("dt=1/", **REPLACE)
    dated(table, later, -table.pace - S3_CLOCKS if behind else 0)
    assert code_of(table, over) == "REPLACED_SINCE"
    with pytest.raises(JobRefusedError, match="can't tell" if behind else "undo job .* first"):
        table.undo(over)


def test_i6_what_an_undo_has_left_removed_does_not_come_back_by_an_undo_of_an_earlier_job() -> None:
    """Found by seed 21338: the removal of the later overwrite is in effect still."""
    table = Table()
    table.write("dt=1/")
    over, later = (table.write("dt=1/", **REPLACE) for _ in range(2))
    table.undo(later, leave_removed=True)
    assert code_of(table, over) == "REPLACED_SINCE"


def test_i6_a7_i12_a_strangers_file_with_the_id_of_a_later_job_makes_it_no_earlier_one() -> None:
    """Both replace within S3's seconds. Found by seed 4178."""
    table = Table(pace=0)
    table.write("dt=1/")
    later = job_directory(fake_id(3))
    table.world.store.put("lake", f"sales/dt=1/theirs-{later.job_id}.csv", b"theirs")
    over = table.write(**REPLACE)
    assert table.write("dt=2/", **REPLACE) == later
    assert code_of(table, over) == "REPLACED_SINCE"


def test_i2_i12_a_forged_list_has_no_file_of_a_job_that_is_under_way_removed() -> None:
    """An append at the table, whose file lies where somebody may replace; it is visible already."""
    table = Table()
    append, place = job_directory(table.environment.new_id()), "sales/dt=1/"
    name = f"dt=1/part-0-{append.job_id}.csv"
    table.world.ask(append, files={name: b"theirs"})
    table.world.plan.crash_before("advance", nth=2)
    table.world.dies(append)
    assert list(table.world.visible()) == [f"sales/{name}"]
    forge(table, job_directory(append.job_id, place), CommittedFile(f"sales/{name}", 6))
    evil = job_directory(table.environment.new_id(), place)
    table.world.open(evil, conflict=Conflict.REPLACE, undoes=append.job_id)
    table.world.request(evil)
    table.world.run(evil)
    assert table.world.ended(evil) == (Outcome.ABORTED, "NOT_COMMITTED")
    table.world.run(append, "another")
    assert table.world.ended(append) == (Outcome.COMMITTED, "")
    assert list(table.world.visible()) == [f"sales/{name}"]


@pytest.mark.parametrize("spoilt", ["a copy elsewhere", "other bytes", "no list", "a circle"])
def test_i5_i12_a_forged_list_has_an_undo_neither_remove_others_nor_refused(spoilt: str) -> None:
    """Somebody may put below one partition. The file that is undone was replaced by another job."""
    table = Table()
    wrong = table.write("dt=2/", "dt=3/")
    table.write("dt=2/", **PARTITION)
    theirs = table.write("dt=1/", "dt=2/")
    mine = job_directory(theirs.job_id, "sales/dt=1/" if "else" in spoilt else "sales/dt=2/")
    origin = f"sales/dt=2/part-0-{wrong.job_id}.c000.csv"
    key = f"{mine.destination.prefix}part-0-{theirs.job_id}.c000.csv"
    length = 99 if spoilt in {"other bytes", "a circle"} else len(b"0 sales/dt=2/")
    file, other = CommittedFile(key, length, origin=origin), table.environment.new_id()
    count = 9 if spoilt == "no list" else 1
    forge(table, mine, file, undoes=other, count=count, replaced=ReplacedFacts("", 1, 1))
    if spoilt == "a circle":
        forge(table, job_directory(other, "sales/dt=2/"), undoes=mine.job_id)
        forge(table, job_directory(NEIGHBOUR, "sales/dt=2/"), undoes=mine.job_id)
    table.undo(wrong)
    assert table.visible() == table.replayed()


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("replaced", [None, ReplacedFacts("", 0, 1)])
def test_i2_i12_a_forged_undo_below_keeps_no_file_of_a_job_above_from_coming_back(
    replaced: ReplacedFacts | None, copied: bool
) -> None:
    """It has the job's id, and says that it removed the files below: then the undo is refused."""
    table = Table()
    first = table.write("dt=1/", "dt=2/")
    wrong = table.write("dt=2/", **REPLACE)
    if copied:
        table.undo(wrong)
        wrong = table.write("dt=2/", **REPLACE)
    mine = job_directory(table.environment.new_id(), "sales/dt=1/")
    forge(table, mine, undoes=first.job_id, replaced=replaced)
    if replaced:
        assert code_of(table, wrong) == "REPLACED_SINCE"
    else:
        table.undo(wrong)
        assert table.visible() == table.replayed() != set()


@pytest.mark.parametrize(
    ("place", "lists", "refused"),
    [("sales/dt=2/", 2, False), ("sales/dt=2/", 3, True), ("sales/dt=3/", 3, False)],
)
def test_i12_the_lists_of_undos_are_read_where_the_job_has_files_and_up_to_a_bound(
    place: str, lists: int, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may write below the table can put as many as he likes."""
    monkeypatch.setattr(bound, "MAX_LINES", 9)
    table = Table()
    done = table.write("dt=1/", "dt=2/")
    for _ in range(lists):
        mine = job_directory(table.environment.new_id(), place)
        files = [
            CommittedFile(f"{place}{n}-{mine.job_id}.csv", 1, origin=f"{place}{n}.csv")
            for n in range(4)
        ]
        forge(table, mine, *files, undoes=table.environment.new_id())
    if refused:
        assert code_of(table, done) == "TOO_LARGE"
    else:
        table.undo(done)
        assert table.visible() == set()


@pytest.mark.parametrize(
    ("module", "limit", "least"),
    [
        (bound, "MAX_HELD", 5),  # its file, two that come back, and where two jobs replaced
        (bound, "MAX_LINES", 3),
        (bound, "MAX_LISTS", 4),
        (files, "MAX_JOB_FILES", 2),
        (bound, "CALL_SECONDS", 1),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_i2_past_each_bound_an_undo_is_refused_before_anything_is_changed(
    module: ModuleType, limit: str, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the client and by the pipeline, whichever meets it; by one less it is done."""
    table = Table()
    table.write("dt=1/", "dt=2/")
    over = table.write("dt=1/", **REPLACE)
    table.undo(over)
    table.undo(table.undone[over])
    last = JobDirectory(over.destination, table.undone[table.undone[over]].job_id)
    table.write("dt=1/", **{**PARTITION, "place": "sales/dt=9/"})
    plan = plan_undo(table.world.unplanned, last, leave_removed=False)
    before = table.world.visible()
    monkeypatch.setattr(module, limit, least - 1)
    if limit != "CALL_SECONDS":  # a client takes its time
        assert code_of(table, last) == "TOO_LARGE"
    with pytest.raises(JobFailedError) as refused:
        carry_out(table.world.unplanned, plan, OPTIONS, table.environment)
    assert refused.value.code == "TOO_LARGE"
    assert (table.world.visible(), table.world.open_uploads()) == (before, [])
    assert table.world.ledger.holders == set()
    monkeypatch.setattr(module, limit, least)
    table.undo(last)
    assert table.visible() == table.replayed()


@pytest.mark.parametrize("how", ["as it was", "put again", "other bytes"])
def test_i2_i5_an_undo_of_encrypted_files_looks_at_those_newer_than_their_list(how: str) -> None:
    """Behind KMS no etag is the expected one, and a HEAD for each of a million takes hours."""
    table = Table(World(versioned=True, opaque=True))
    done = table.write("dt=1/", "dt=2/", "dt=3/")
    table.world.clock.advance(table.pace)
    key, body = next(iter(table.world.visible().items()))
    if how != "as it was":
        table.world.store.put("lake", key, body + b"!" * (how == "other bytes"))
    plan = FaultPlan()
    ports = replace(table.world.unplanned, store=plan.wrap(table.world.store))
    if how == "other bytes":
        with pytest.raises(JobRefusedError, match="is not what"):
            plan_undo(ports, done, leave_removed=False)
    else:
        plan_undo(ports, done, leave_removed=False)
    looked_at = [call.key for call in plan.calls if call.verb == "head"]
    assert looked_at == [key] * ["as it was", "put again", "other bytes"].index(how)  # twice if so


@pytest.mark.parametrize("kind", ["undoes", "replaces"])
def test_i12_an_undo_holds_of_the_lists_below_what_concerns_its_job(kind: str) -> None:
    """Many lists of many files, each of them sound."""
    table, place, many = Table(), "sales/dt=2/", 500
    over = [table.write("dt=1/", "dt=2/"), table.write("dt=1/", "dt=2/", **REPLACE)][-1]

    def forged(number: int) -> None:
        mine = job_directory(table.environment.new_id(), place)
        names = [f"{place}x={n}/{number}{'y' * 200}/{n}" for n in range(many)]
        files = [
            CommittedFile(f"{name}-{mine.job_id}.csv", 1, origin=f"{name}.csv" * (kind == "undoes"))
            for name in names
        ]
        header = (
            {"undoes": table.environment.new_id()}
            if kind == "undoes"
            else {"scope": Scope.PARTITION, "replaced": ReplacedFacts("", 1, 1)}
        )
        forge(table, mine, *files, **header)

    peaks = []
    for some in (range(1), range(1, 5)):
        for number in some:
            forged(number)
        tracemalloc.start()
        plan_undo(table.world.unplanned, over, leave_removed=True)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 500_000
