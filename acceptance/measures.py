"""What bench/limits.py assumes of AWS, measured in the account, beside the assumption."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from acceptance.judged import own
from acceptance.places import BrokenError, NotSeenError
from acceptance.run import Run
from acceptance.suite import ROLE_SECONDS, call_function
from bench import limits

SAMPLES: Final = 20
CHILDREN: Final = 21
COLD: Final = ("dispatch", "decide", "complete", "end")  # the functions of a small job
# What an execution waits for, until the event that follows it.
WAITING: Final = frozenset({"TaskStarted", "WaitStateEntered", "MapRunStarted"})
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
    here = "from the request's put, by this machine's clock, to its execution's start"
    figures: list[tuple[str, str, Callable[[], list[float]]]] = [
        ("EVENT", f"{here}; by notifications", lambda: run.times["notifications"]),
        ("EVENT", f"{here}; by EventBridge", lambda: run.times["eventbridge"]),
        ("TRANSITION", "of an execution, beside its tasks, by state", lambda: _transitions(run)),
        ("LATENCY", "a put of some bytes, from a function", lambda: _timed(run)["puts"]),
        ("ITEM", "a PutItem, from a function", lambda: _timed(run)["items"]),
        ("COLD", f"the sum of the median inits of {', '.join(COLD)}", lambda: _inits(run)),
    ]
    found = [_measure(name, how, look) for name, how, look in figures]
    try:
        map_run, child, start = _map(run, role)
    except (BotoCoreError, ClientError, BrokenError) as error:
        map_run, child, start, why = [], [], [], f": {error}"
    else:
        why = "" if run.express else "; standard children here"
    how = f"the deployed Map over {CHILDREN} children that do nothing, one after the other{why}"
    rest = {
        "MAP_RUN": (map_run, how),
        "CHILD": (child, how),
        "START": (start, "from the caller's machine"),
    }
    return found + [_measure(name, how, partial(list, some)) for name, (some, how) in rest.items()]


def _measure(name: str, how: str, look: Callable[[], list[float]]) -> Measure:
    fact = getattr(limits, name)
    try:
        samples = look()
    except NotSeenError as error:
        samples, how = [], str(error)
    except Exception as error:  # of whatever kind: it stops no other figure
        samples, how = [], f"{type(error).__name__}: {error}"
    seconds = round(median(samples), 4) if samples else None
    counted = f"{how}; median of {len(samples)}" if samples else f"not seen here: {how}"
    return Measure(name, fact.what, float(fact), seconds, counted)


def _timed(run: Run) -> dict[str, list[float]]:
    name = own(run, "suite")
    found: dict[str, list[float]] = call_function(
        name, bucket=own(run, "plain"), table=own(run, "ledger")
    )
    return found


def _transitions(run: Run) -> list[float]:
    """Of each execution: its time without its tasks, by the number of states that it entered."""
    found = []
    for execution in run.executions[:SAMPLES]:
        events = run.history(execution)
        times = {event["id"]: event["timestamp"].timestamp() for event in events}
        waiting = {event["id"] for event in events if event["type"] in WAITING}
        waited = sum(
            times[event["id"]] - times[event["previousEventId"]]
            for event in events
            if event.get("previousEventId") in waiting
        )
        states = sum(event["type"].endswith("StateEntered") for event in events)
        found.append((max(times.values()) - min(times.values()) - waited) / max(states, 1))
    return found


def _inits(run: Run) -> list[float]:
    """By the reports that Lambda logs.

    https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html
    """
    if not run.place.is_aws:
        raise NotSeenError("no emulator logs the starts of functions")
    pages = run.clients("logs").get_paginator("filter_log_events")
    each = []
    for name in COLD:
        function = run.functions[name]
        usual = {"LogGroup": f"/aws/lambda/{function['FunctionName']}"}
        group = function.get("LoggingConfig", usual)["LogGroup"]
        found = pages.paginate(logGroupName=group, filterPattern='"Init Duration"')
        lines = [event["message"] for page in found for event in page["events"]]
        inits = [float(ms) / 1000 for line in lines for ms in INIT.findall(line)]
        if not inits:
            raise BrokenError(f"no log of {name} has a report of Lambda's")
        each.append(median(inits))
    return [sum(each)]


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
