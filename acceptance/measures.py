"""What bench/limits.py assumes of AWS, measured in the account, beside the assumption."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from acceptance.judged import ROLE_SECONDS, own
from acceptance.places import STACKS, BrokenError
from acceptance.run import Run
from bench import limits

SAMPLES: Final = 20
CHILDREN: Final = 21
INIT: Final = re.compile(r"Init Duration: ([\d.]+) ms")


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure in seconds; None, with the reason in ``how``, where it could not be had."""

    name: str  # of the figure in bench/limits.py
    what: str
    assumed: float
    seconds: float | None
    how: str


def measured(run: Run, role: str) -> list[Measure]:
    """Each figure; one that fails stops no other."""
    figures: dict[str, tuple[str, Callable[[], list[float]]]] = {
        "EVENT": ("from the request's put to its execution's start", lambda: run.times["event"]),
        "TRANSITION": ("of an execution, beside its tasks, by state", lambda: _transitions(run)),
        "LATENCY": ("a put of some bytes, from the caller's machine", lambda: _puts(run)),
        "ITEM": ("a PutItem, from the caller's machine", lambda: _items(run)),
        "COLD": ("the sum of the functions' longest inits", lambda: _inits(run)),
    }
    found = [_measure(name, how, look) for name, (how, look) in figures.items()]
    try:
        map_run, child, start = _map(run, role)
    except (BotoCoreError, ClientError, BrokenError) as error:
        map_run, child, start, why = [], [], [], f": {error}"
    else:
        why = "" if run.express else "; standard children here"
    how = f"the deployed Map over {CHILDREN} children that do nothing, one after the other{why}"
    rest = {"MAP_RUN": (map_run, how), "CHILD": (child, how), "START": (start, "StartExecution")}
    return found + [_measure(name, how, partial(list, some)) for name, (some, how) in rest.items()]


def _measure(name: str, how: str, look: Callable[[], list[float]]) -> Measure:
    fact = getattr(limits, name)
    try:
        samples = look()
    except (BotoCoreError, ClientError, BrokenError) as error:
        samples, how = [], str(error)
    seconds = round(median(samples), 4) if samples else None
    counted = f"{how}; median of {len(samples)}" if samples else f"not seen here: {how}"
    return Measure(name, fact.what, float(fact), seconds, counted)


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _puts(run: Run) -> list[float]:
    put = run.ports.store.put
    return [_timed(partial(put, own(run, "plain"), f"put-{n}", b"x")) for n in range(SAMPLES)]


def _items(run: Run) -> list[float]:
    put = partial(run.clients("dynamodb").put_item, TableName=own(run, "ledger"))
    items = [{"pk": {"S": "measure"}, "sk": {"S": str(number)}} for number in range(SAMPLES)]
    return [_timed(partial(put, Item=item)) for item in items]


def _transitions(run: Run) -> list[float]:
    """Of each execution: its time without its tasks, by the number of states that it entered."""
    found = []
    for execution in run.executions[:SAMPLES]:
        events = run.history(execution)
        times = [event["timestamp"].timestamp() for event in events]
        kinds = [event["type"] for event in events]
        tasks = sum(
            later - earlier
            for kind, earlier, later in zip(kinds, times, times[1:], strict=False)
            if kind in {"TaskStarted", "WaitStateEntered"}
        )
        states = sum(kind.endswith("StateEntered") for kind in kinds)
        found.append((times[-1] - times[0] - tasks) / max(states, 1))
    return found


def _inits(run: Run) -> list[float]:
    """By the reports that Lambda logs.

    https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html
    """
    logs = run.clients("logs")
    longest: list[float] = []
    prefix = f"{STACKS[0]}-{run.place.name}"
    for group in logs.describe_log_groups(logGroupNamePrefix=prefix)["logGroups"]:
        named = {"logGroupName": group["logGroupName"], "filterPattern": '"Init Duration"'}
        lines = [event["message"] for event in logs.filter_log_events(**named)["events"]]
        inits = [float(ms) / 1000 for line in lines for ms in INIT.findall(line)]
        longest += [max(inits)] if inits else []
    if not longest:
        raise BrokenError("no log has a report of Lambda's")
    return [sum(longest)]


def _map(run: Run, role: str) -> tuple[list[float], list[float], list[float]]:
    """Seconds of a Map Run without its children, of a child, and of each StartExecution.

    By two runs of the deployed Map over children that pass their item on, one at a time.
    """
    from tests.contract import deployed_map  # noqa: PLC0415 - the CDK takes seconds to import

    service = run.clients("stepfunctions")
    kind = "EXPRESS" if run.express else "STANDARD"
    definition = deployed_map.machine_of(role.split(":")[1], kind=kind)
    create = {"name": own(run, "map"), "definition": definition, "roleArn": role}

    def made() -> Any:
        try:
            return service.create_state_machine(**create)["stateMachineArn"]
        except ClientError as error:  # the role is not known everywhere yet
            if "AccessDenied" in str(error) or "assume" in str(error):
                return None
            raise

    arn = run.until(made, "a state machine with the run's role", ROLE_SECONDS)
    starts: list[float] = []
    took: dict[int, float] = {}
    for count in (1, CHILDREN):
        units = [{"unit": number, "lost": False} for number in range(count)]
        key = f"units-{count}.json"
        run.ports.store.put(own(run, "plain"), key, json.dumps(units).encode())
        ticket = {"bucket": own(run, "plain"), "plan": key, "workers": 1, "jobId": "job"}
        given = json.dumps({**ticket, "directory": "", "generation": 1})
        began = time.perf_counter()
        started = service.start_execution(stateMachineArn=arn, name=f"of-{count}", input=given)
        starts.append(time.perf_counter() - began)
        what = f"the Map over {count} children"
        took[count] = run.until(partial(_map_seconds, run, started["executionArn"]), what)
    child = (took[CHILDREN] - took[1]) / (CHILDREN - 1)
    return [took[1] - child], [child], starts


def _map_seconds(run: Run, execution: str) -> float:
    """Seconds from the Map's beginning to its end; 0 while it runs."""
    times = {event["type"]: event["timestamp"].timestamp() for event in run.history(execution)}
    if "ExecutionFailed" in times:
        raise BrokenError("the Map failed over children that do nothing")
    if "MapStateExited" not in times:
        return 0.0
    return float(times["MapStateExited"] - times["MapStateEntered"])
