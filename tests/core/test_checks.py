"""Checks of columns: what manifests say meets every bound to the letter, or the job is aborted."""

import json
from typing import Any

import pytest

from s3commit.core.calls.run_call import GOING_ON
from s3commit.core.documents.job_json import Conditions, decode_conditions
from s3commit.core.documents.pendingset import PendingSet
from s3commit.core.model.checks import (
    MAX_BOUND,
    MAX_COLUMN_NAME,
    Check,
    CheckedColumn,
    Figures,
    Kind,
)
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.outcome import Outcome
from tests.core.world import JOB, World, job_directory

DIRECTORY = job_directory()
SILENT = "column 'n' can't be checked: the files do not state its figures"
Said = tuple[str | None, str | None, int | None]


def number(least: str | None = None, most: str | None = None, nulls: int | None = None) -> Check:
    return Check("n", Kind.NUMBER, least, most, nulls)


def text(least: str | None = None, most: str | None = None) -> Check:
    return Check("n", Kind.TEXT, least, most)


def ended(check: Check, *tasks: Said, conflict: Conflict = Conflict.APPEND) -> str:
    """How a job ends whose tasks, of 5 rows each, say so of the column: "" is COMMITTED."""
    world = World()
    world.open(DIRECTORY, conditions=Conditions(checks=(check,)), conflict=conflict)
    counted = []
    for task, said in enumerate(tasks):
        name, id_ = f"part-{task}-{JOB}.parquet", f"t{task}"
        file = world.upload(DIRECTORY, name, b"rows!", task=id_, attempt="a0")
        pending = PendingSet(JOB, (file,), id_, "a0", checked=(Figures("n", *said),))
        counted.append(world.drop(DIRECTORY, pending, id_, "a0"))
    world.request(DIRECTORY, *counted)
    # An overwrite is judged by another call than its manifests are read by.
    world.plan.run_after("note", lambda: world.clock.advance(GOING_ON))
    world.run(DIRECTORY)
    outcome, code = world.ended(DIRECTORY)
    if outcome is Outcome.COMMITTED:
        return ""
    assert (outcome, world.visible(), world.open_uploads()) == (Outcome.ABORTED, {}, [])
    message = world.failure(DIRECTORY).message
    return message if code == "CHECK_FAILED" else f"{code} {message}"


LONG = "b" * MAX_BOUND


@pytest.mark.parametrize(
    ("check", "tasks", "says"),
    [
        (number("0", "9"), [("0", "5", 0), ("3", "9", 0)], ""),
        (
            number("0"),
            [("0", "5", 0), ("-1", "9", 0)],
            "column 'n': the least value -1 is below the bound 0",
        ),
        (
            number(most="9"),
            [("0", "10", 0), ("0", "2", 0)],
            "column 'n': the greatest value 10 is above the bound 9",
        ),
        (number("9007199254740993"), [("9007199254740992", "9007199254740995", 0)], "below"),
        (number("0.1", "1e300"), [("0.10", "99e298", 0)], ""),
        (number("0", "5"), [("-0.0", "inf", 0)], "value inf is above the bound 5"),
        (text("b", LONG), [("b", LONG, 0)], ""),
        (text(most=LONG), [("b", f"{LONG}a", 0)], "above"),
        (text(least="ü"), [("z", "ü", 0)], "the least value 'z' is below the bound 'ü'"),
        (number("0", nulls=3), [(None, None, 5), ("1", "2", 0)], "has 5 nulls, more than"),
        (number("0", nulls=5), [(None, None, 5), ("1", "2", 0)], ""),
        (Check("n", nulls=0), [(None, None, 1)], "column 'n' has 1 null, more than the bound 0"),
        (Check("n", nulls=0), [(None, None, 0)], ""),
        (number("0", nulls=0), [], ""),
        # What is not known does not pass.
        (number("0"), [("1", "2", 0), (None, None, 4)], SILENT),
        (number("0"), [("1", None, 0)], SILENT),
        (number("0"), [(None, None, None)], SILENT),
        (Check("n", nulls=9), [("1", "2", None)], SILENT),
        (Check("other", nulls=9), [("1", "2", 0)], SILENT.replace("'n'", "'other'")),
        # A forger's.
        (number("0", "5"), [("-1", "9", 0), ("inf", "-inf", 0)], "the least value -1 is below"),
        (number("0", "5"), [("inf", "-inf", 0)], ""),  # only NaN
        *(
            (number("0"), [(least, "5", 0)], "BAD_FIELD column 'n': ")
            for least in ("", "nan", "1_0", "٣", "0x1", " 1", "1e1000", "9" * 81)
        ),
    ],
)
def test_a_job_that_does_not_meet_a_check_is_aborted_with_column_bound_and_value(
    check: Check, tasks: list[Said], says: str
) -> None:
    for conflict in (Conflict.APPEND, Conflict.REPLACE):
        found = ended(check, *tasks, conflict=conflict)
        assert says in found
        assert bool(says) is bool(found)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"min": "5", "max": "4"}, "at least 5 and at most 4 can't be"),
        ({"kind": "interval"}, "checks[0].kind is 'interval'"),
        ({"kind": None}, "no kind of value"),
        ({"min": None}, "no bound"),
        ({"min": None, "kind": None}, "no bound"),
        ({"min": 1}, "checks[0].min must be a string"),
        ({"min": "NaN"}, "'NaN' is not of the kind number"),
        ({"min": "9" * 300}, "checks[0].min must have 0 to 256 characters"),
        ({"nulls": -1}, "checks[0].nulls must be from 0"),
        ({"nulls": True}, "checks[0].nulls must be a whole number"),
        ({"column": ""}, "checks[0].column must have 1 to 255 characters"),
        ({"distinct": 1}, "checks[0] has 'distinct', which is not known"),
    ],
)
def test_what_is_no_check_is_refused_by_name(changes: dict[str, Any], told: str) -> None:
    one = {"column": "n", "kind": "number", "min": "0"} | changes
    for checks, says in (([one], told), ({"n": one}, "must be a list"), ([one] * 21, "0 to 20")):
        with pytest.raises(InvalidInputError) as refused:
            decode_conditions(json.loads(json.dumps({"checks": checks})))
        assert refused.value.code == "BAD_CONDITION"
        assert says in refused.value.message


LONGEST_VERDICT = 2_600  # characters


def test_the_longest_verdict_fits_into_its_record() -> None:
    strange = "\U0010ffff" * MAX_BOUND
    found = CheckedColumn(Check(strange[:MAX_COLUMN_NAME], Kind.TEXT, max=strange))
    found.add(Figures("", strange, strange + "x", 0), 1)
    assert 2_000 < len(found.failed() or "") <= LONGEST_VERDICT
