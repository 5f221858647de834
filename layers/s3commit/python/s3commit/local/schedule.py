"""Rules with a schedule: ``rate()``, and the ticker that calls what is due.

https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-scheduled-rule-pattern.html
"""

# ruff: noqa: PLC0415 - moto takes half a second: who only reads this module does not pay
from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from s3commit.local.errors import UnsupportedTemplateError

Now = Callable[[], datetime]  # the present, in UTC


def rate(expression: str) -> timedelta:
    """The period of ``rate(5 minutes)``.

    Raises `UnsupportedTemplateError` for what AWS refuses, and for ``cron()``.
    """
    found = re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", expression)
    if not found or int(found[1]) < 1:
        raise UnsupportedTemplateError(f"the schedule {expression!r} is no rate()")
    return timedelta(**{f"{found[2]}s": int(found[1])})


@dataclass(frozen=True, slots=True)
class Timer:
    """Something that fires again and again: ``key`` tells it from others."""

    key: str
    every: timedelta
    fire: Callable[[], None]


class Ticker:
    """Looks at its timers each second and fires what is due, each at most once a look.

    ``timers`` is asked anew each time, so that rules may come and go. A timer's first time is
    counted from the first look that saw it. Times that were missed are not made up for.
    """

    def __init__(
        self, timers: Callable[[], Iterable[Timer]], now: Now, *, interval: float = 1.0
    ) -> None:
        self._timers = timers
        self._now = now
        self._interval = interval
        self._due: dict[tuple[str, timedelta], datetime] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ticker", daemon=True)

    def start(self) -> None:
        """Look in a thread of its own from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Stop looking."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> int:
        """Fire what is due and return how many timers that were."""
        now = self._now()
        due: dict[tuple[str, timedelta], datetime] = {}
        fired = 0
        for timer in self._timers():
            key = (timer.key, timer.every)
            due[key] = self._due.get(key, now + timer.every)
            if due[key] <= now:
                timer.fire()
                fired += 1
                due[key] = now + timer.every
        self._due = due
        return fired

    def _run(self) -> None:
        while not self._stopping.wait(self._interval):
            self.look()


def scheduled_rules(account: str, region: str) -> Iterator[Timer]:
    """A timer for each enabled rule of moto's EventBridge; it calls the rule's functions."""
    from moto.events.models import events_backends

    for rule in list(events_backends[account][region].event_buses["default"].rules.values()):
        if rule.scheduled_expression and rule.state == "ENABLED":
            call = partial(_call_targets, account, region, rule.targets)
            yield Timer(rule.arn, rate(rule.scheduled_expression), call)


def _call_targets(account: str, region: str, targets: list[dict[str, Any]]) -> None:
    """Call each function in a thread of its own: the ticker does not wait."""
    from moto.awslambda.models import lambda_backends

    functions = lambda_backends[account][region]
    for target in targets:
        call = partial(_call, functions, target)
        threading.Thread(target=call, name="scheduled call", daemon=True).start()


def _call(functions: Any, target: dict[str, Any]) -> None:
    try:
        functions.get_function(target["Arn"]).invoke(target["Input"], {}, {})
    except Exception as error:
        # AWS retries and then drops the event, in silence.
        print(f"{target['Arn']} was not called: {error}", file=sys.stderr)  # noqa: T201
