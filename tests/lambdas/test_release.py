"""An upgrade meets running executions: what the release before has left goes on, and back again.

`tests/golden/release.json` has a job of that release: the ticket before each step, and documents.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from s3commit.core.formats import documents, manifest
from s3commit.core.formats.ticket import execution_input
from s3commit.core.job.plan import decode_unit
from s3commit.core.model.job import Conflict
from stacks.definition import MAP_FUNCTION, STEPS
from tests.core.world import World, job_directory
from tests.lambdas.conftest import Call

RELEASE: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "golden" / "release.json").read_text()
)
DIRECTORY = job_directory()
COMMIT = [step for step in RELEASE["tickets"] if step != "CompleteUnit"]


def replacing(world: World) -> None:
    world.store.put("lake", "sales/old.csv", b"old")
    world.ask(DIRECTORY, "t0", "t1", "t2", conflict=Conflict.REPLACE)


def test_each_step_that_its_executions_call_is_where_they_call_it() -> None:
    """A running execution keeps its definition, and calls the newest code."""
    assert RELEASE["steps"].items() <= STEPS.items()
    assert RELEASE["map"] == MAP_FUNCTION


def test_its_tickets_go_on_today_and_todays_would_go_on_there(world: World, call: Call) -> None:
    """Each step gets the fields alone that a ticket had then, and gives at least those."""
    replacing(world)
    ticket: dict[str, Any] = execution_input(DIRECTORY)
    for step in COMMIT:
        then = RELEASE["tickets"][step]
        assert shape(then) == shape({name: ticket[name] for name in then}), step
        ticket = {name: ticket[name] for name in then}
        event = {"step": step, "execution": "arn", "ticket": ticket}
        ticket = json.loads(json.dumps(call(RELEASE["steps"][step], event)))
        if step == "DecideCommit":
            pieces = {name: ticket[name] for name in RELEASE["tickets"]["CompleteUnit"]}
            units = world.json(ticket["plan"])
            ticket["completed"] = [
                call("complete", {"unit": unit, "ticket": pieces}) for unit in units
            ]
    assert world.result(DIRECTORY).outcome == "COMMITTED"
    assert len(world.visible()) == 3


def test_its_documents_are_read_today() -> None:
    texts = {name: text.encode() for name, text in RELEASE["documents"].items()}
    spec = documents.decode_job(texts["_job.json"], DIRECTORY)
    assert spec.conflict is Conflict.REPLACE
    assert documents.decode_request(texts["_request.json"], DIRECTORY)
    assert len(manifest.decode_pendingset(texts["pendingset"], DIRECTORY).files) == 1
    assert documents.decode_result(texts["_result.json"], DIRECTORY).files == 3
    assert [decode_unit(unit).number for unit in json.loads(texts["index"])] == [0]


@pytest.mark.parametrize("name", ["_job.json", "_request.json", "_result.json"])
def test_todays_documents_have_what_it_reads(world: World, name: str) -> None:
    replacing(world)
    world.run(DIRECTORY)
    then, today = json.loads(RELEASE["documents"][name]), world.json(DIRECTORY.prefix + name)
    assert shape(then) == shape({member: today[member] for member in then})


def shape(value: Any) -> Any:
    """The types in the place of the values."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    return [shape(one) for one in value[:1]] if isinstance(value, list) else type(value).__name__
