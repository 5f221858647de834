"""What a function loads, and what the executions of the release before ask of it."""

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from bench.cold import LAMBDAS, environment
from s3commit.aws import clients, wiring
from s3commit.core.calls.routes import ENDS, STEPS
from s3commit.core.documents.job_json import decode_job
from s3commit.core.documents.pages import UNIT
from s3commit.core.documents.pendingset import decode_pendingset
from s3commit.core.documents.request_json import decode_request
from s3commit.core.documents.result_json import decode_result
from s3commit.core.documents.ticket import execution_input
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.limits import COMPLETE_WORKERS
from s3commit.core.model.states import JobState
from stacks.definition import MAP_FUNCTION
from stacks.functions import FUNCTIONS
from stacks.layers import ROOT, dependencies_layer
from tests.core.world import World, job_directory
from tests.lambdas.conftest import ENVIRONMENT, Call

PROGRAM = """
import gc, json, sys
sys.path[:0] = sys.argv[2:]
__import__(sys.argv[1])
from botocore.client import BaseClient
clients = [one.meta.service_model.service_name for one in gc.get_objects()
           if issubclass(type(one), BaseClient)]
print(json.dumps({"modules": sorted(sys.modules), "clients": sorted(clients)}))
"""
STEP = "s3commit.core.commit."
WITHOUT_A_STATE = {MAP_FUNCTION: "complete_unit", "ingest": "note_arrivals"}
# Each takes 5 to 50 ms, and nothing of it is used: of boto3 botocore is enough.
NEEDLESS = {"boto3", "s3transfer", "multiprocessing", "unittest", "asyncio", "pydantic", "pyarrow"}
LEDGER_AND_STORE = {"pynamodb", "s3commit.aws.s3", "s3commit.aws.ledger"}


@cache
def started(name: str) -> dict[str, list[str]]:
    """The modules and the clients of a function that has just started."""
    package = ROOT / "layers" / "s3commit" / "python"
    paths: list[Path] = [LAMBDAS, package, dependencies_layer() / "python"]
    answer = subprocess.check_output(
        [sys.executable, "-I", "-S", "-B", "-c", PROGRAM, name, *map(str, paths)], env=environment()
    )
    found: dict[str, list[str]] = json.loads(answer)
    return found


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_imports_no_step_but_its_own(name: str) -> None:
    steps = {module.removeprefix(STEP) for module in started(name)["modules"] if STEP in module}
    called = [step for step, function in STEPS.items() if function == name]
    own = {"_".join(re.findall("[A-Z][a-z]+", step)).lower() for step in called}
    if name in WITHOUT_A_STATE:
        own.add(WITHOUT_A_STATE[name])
    assert steps == own


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_imports_nothing_that_it_does_not_need(name: str) -> None:
    """Jobs need neither sweep nor check, who starts executions neither ledger nor store."""
    elsewhere = ("s3commit.core.sweep", "s3commit.core.fsck") if name != "sweep" else ()
    needless = NEEDLESS | (LEDGER_AND_STORE if name == "dispatch" else set())
    modules = started(name)["modules"]
    assert [one for one in modules if one in needless or one.startswith(elsewhere)] == []


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_has_its_clients_before_its_first_call(name: str) -> None:
    """One of each service. While it starts a function has more of a processor than in its calls."""
    expected = ["stepfunctions"] if name in {"ingest", "dispatch", "sweep"} else []
    if name != "dispatch":
        expected += ["glue" if name == "catalog" else "dynamodb", "s3"]
    assert started(name)["clients"] == sorted(expected)


def test_a_worker_has_so_many_under_way_and_slows_down(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    made = list[Any]()

    def make_client(**how: Any) -> Any:
        made.append(clients.make_client(**how))
        return made[-1]

    monkeypatch.setattr(wiring, "make_client", make_client)
    for name in ("complete", "end"):
        monkeypatch.delitem(sys.modules, f"lambdas.{name}", raising=False)
    worker = importlib.import_module("lambdas.complete").ports
    together = Barrier(COMPLETE_WORKERS)
    assert len(list(worker.parallel(lambda _: together.wait(10), range(COMPLETE_WORKERS)))) > 1
    importlib.import_module("lambdas.end")
    config, other = (client.meta.config for client in made)
    assert config.retries["mode"] == "adaptive"
    assert config.max_pool_connections == COMPLETE_WORKERS
    assert other.retries["mode"] == "standard"


RELEASE: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "golden" / "release.json").read_text()
)
DIRECTORY = job_directory()
COMMIT = [step for step in RELEASE["tickets"] if step != "CompleteUnit"]
RELEASE_STEPS: dict[str, str] = {
    name: state["Calls"] for name, state in RELEASE["states"].items() if "Calls" in state
}


def replacing(world: World) -> None:
    world.store.put("lake", "sales/old.csv", b"old")
    world.ask(DIRECTORY, "t0", "t1", "t2", conflict=Conflict.REPLACE)


def test_each_step_that_its_executions_call_is_where_they_call_it() -> None:
    """A running execution keeps its definition, and calls the newest code."""
    assert RELEASE_STEPS.items() <= STEPS.items()
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
        ticket = json.loads(json.dumps(call(RELEASE_STEPS[step], event)))
        if step == "DecideCommit":
            pieces = {name: ticket[name] for name in RELEASE["tickets"]["CompleteUnit"]}
            units = world.json(ticket["plan"])
            ticket["completed"] = [
                call("complete", {"unit": unit, "ticket": pieces}) for unit in units
            ]
    assert world.result(DIRECTORY).outcome == "COMMITTED"
    assert len(world.visible()) == 3


def refused(world: World) -> None:
    world.store.put("lake", f"sales/part-t0-{DIRECTORY.job_id}.parquet", b"a stranger's")
    world.ask(DIRECTORY)


def lost(world: World) -> None:
    world.ask(DIRECTORY, "t0", "t1")
    world.lose_after_decision("sales/", slice(1))


@pytest.mark.parametrize(
    ("prepare", "end"),
    [
        (lambda world: world.ask(DIRECTORY, idempotency_key="k"), "JobCommitted"),
        (lambda world: world.request(DIRECTORY), "JobCommitted"),
        (replacing, "JobCommitted"),
        (lambda world: world.request_abort(DIRECTORY), "JobAborted"),
        (refused, "JobAborted"),
        (lost, "JobRolledBack"),
    ],
)
def test_an_execution_that_began_before_an_upgrade_ends(
    world: World, call: Call, prepare: Callable[[World], None], end: str
) -> None:
    """By the choices of its own definition, and by today's functions."""
    prepare(world)
    ticket: dict[str, Any] = execution_input(DIRECTORY)
    name = before = "SealJob"
    while name:
        state, before = RELEASE["states"][name], name
        name = state.get("Next", "")
        if "Choices" in state:
            name = next(way["Next"] for way in state["Choices"] if is_met(way, ticket))
        if state["Type"] == "Map":
            units = ticket["few"] or world.json(ticket["plan"])
            done = [call("complete", {"unit": unit, "ticket": ticket}) for unit in units]
            ticket["completed"] = done
        if "Calls" in state:
            event = {"step": before, "execution": "arn", "ticket": ticket}
            try:
                ticket = json.loads(json.dumps(call(state["Calls"], event)))
            except JobRefusedError as error:
                cause = json.dumps({"errorMessage": str(error)})
                ticket["refusal"] = {"Error": "JobRefusedError", "Cause": cause}
                name = "AbortJob"
    assert before == end
    assert world.open_uploads("sales/") == []
    assert end == ENDS[JobState(world.result(DIRECTORY).outcome)]


def is_met(way: dict[str, Any], ticket: dict[str, Any]) -> bool:
    """Whether the ticket is what the choice asks for."""
    if "IsPresent" in way:
        return bool(ticket["few"])
    found = ticket[way["Variable"].removeprefix("$.")]
    if "NumericGreaterThan" in way:
        return bool(found > way["NumericGreaterThan"])
    return found in [value for name, value in way.items() if name.endswith("Equals")]


def test_its_documents_are_read_today() -> None:
    texts = {name: text.encode() for name, text in RELEASE["documents"].items()}
    spec = decode_job(texts["_job.json"], DIRECTORY)
    assert spec.conflict is Conflict.REPLACE
    assert decode_request(texts["_request.json"], DIRECTORY)
    name = DIRECTORY.manifest_name("t0", "a0")
    assert len(decode_pendingset(texts["pendingset"], DIRECTORY, name).files) == 1
    assert decode_result(texts["_result.json"], DIRECTORY).files == 3
    assert [UNIT.read(unit).number for unit in json.loads(texts["index"])] == [0]


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
