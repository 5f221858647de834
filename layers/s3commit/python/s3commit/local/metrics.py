"""CloudWatch's metrics, as the runtime counts them, and the states of the alarms on them.

moto keeps alarms and evaluates none: they are evaluated here whenever someone describes them.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html
"""

# ruff: noqa: PLC0415 - moto takes half a second: who only reads this module does not pay
from __future__ import annotations

import json
import operator
import threading
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from s3commit.local import ACCOUNT, REGION
from s3commit.local.triggers import Now
from s3commit.local.worker import CallOutcome

Metric = tuple[str, str, frozenset[tuple[str, str]]]  # namespace, name, dimensions
LAMBDA: Final = "AWS/Lambda"
# The one expression that is known, over all metrics of the alarm.
SUM: Final = "SUM(METRICS())"
_ENDED: Final = {"ExecutionsFailed": "FAILED", "ExecutionsTimedOut": "TIMED_OUT"}
COMPARED: Final = {
    "GreaterThanThreshold": operator.gt,
    "LessThanThreshold": operator.lt,
}


class Metrics:
    """Counts by the minute, of all that was called; queues and executions are looked at.

    A period ends with the present minute, by ``now``. The time before the runtime began says
    nothing: there, silence is not missing data.
    """

    def __init__(self, now: Now) -> None:
        self._now = now
        self._began = self._minute(now())
        self._counts: defaultdict[tuple[Metric, int], float] = defaultdict(float)
        self._lock = threading.Lock()

    def count(self, namespace: str, name: str, value: float = 1, **dimensions: str) -> None:
        """Add to a metric, in the present minute."""
        metric = (namespace, name, frozenset(dimensions.items()))
        with self._lock:
            self._counts[metric, self._minute(self._now())] += value

    def called(self, function: str, outcome: CallOutcome) -> None:
        """Count a call of a function, and what it counts itself: lines of the embedded format.

        https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
        """
        self.count(LAMBDA, "Invocations", FunctionName=function)
        self.count(LAMBDA, "Errors", outcome.failed, FunctionName=function)
        for line in outcome.logs.splitlines():
            if '"_aws"' not in line:
                continue
            with suppress(ValueError):
                said = json.loads(line)
                for directive in said["_aws"]["CloudWatchMetrics"]:
                    for names in directive["Dimensions"]:
                        dimensions = {name: said[name] for name in names}
                        for metric in directive["Metrics"]:
                            value = sum(said[metric["Name"]])
                            self.count(directive["Namespace"], metric["Name"], value, **dimensions)

    def evaluate(self, backend: Any) -> None:
        """Set the state of each alarm of moto's CloudWatchBackend."""
        for alarm in list(backend.alarms.values()):
            rings, why = self._rings(alarm)
            state = "ALARM" if rings else "OK"
            if state != alarm.state_value:
                backend.set_alarm_state(alarm.name, why, "{}", state)

    def _rings(self, alarm: Any) -> tuple[bool, str]:
        stats = [query.metric_stat for query in alarm.metric_data_queries if query.metric_stat]
        watched = [_metric(one.metric) for one in stats] or [_metric(alarm)]
        length = int(stats[0].period if stats else alarm.period) // 60
        end, latest = self._minute(self._now()) + 1, "no value"
        for number in range(int(alarm.evaluation_periods)):
            minutes = range(end - (number + 1) * length, end - number * length)
            values = list(self._values(watched, minutes))
            if not values and not (
                alarm.treat_missing_data == "breaching" and minutes.start >= self._began
            ):
                return False, "no value, which this alarm ignores"
            if values and not COMPARED[alarm.comparison_operator](sum(values), alarm.threshold):
                return False, f"{sum(values):g} is within the threshold of {alarm.threshold:g}"
            latest = f"{sum(values):g}" if values and number == 0 else latest
        return True, f"{latest} in {length} minutes: {alarm.comparison_operator} is so"

    def _values(self, watched: list[Metric], minutes: range) -> Iterable[float]:
        """The metrics' values in these minutes; of one that has none, none."""
        from moto.sqs.models import sqs_backends
        from moto.stepfunctions.parser.models import stepfunctions_parser_backends

        for metric in watched:
            namespace, name, dimensions = metric
            of = dict(dimensions)
            if namespace == "AWS/SQS":
                queue = sqs_backends[ACCOUNT][REGION].queues.get(of["QueueName"])
                if queue is not None:  # it was deleted
                    yield self._of_queue(queue, name)
            elif namespace == "AWS/States":
                machines = stepfunctions_parser_backends[ACCOUNT][REGION].state_machines
                yield sum(
                    each.status == _ENDED[name]
                    and each.stop_date is not None
                    and self._minute(each.stop_date) in minutes
                    for machine in machines
                    if machine.arn == of["StateMachineArn"]
                    for each in list(machine.executions)
                )
            else:
                with self._lock:
                    found = [(metric, at) for at in minutes if (metric, at) in self._counts]
                    if found:
                        yield sum(self._counts[one] for one in found)

    def _of_queue(self, queue: Any, name: str) -> float:
        """As it is now; the age in seconds, of what is not deleted."""
        if name == "ApproximateNumberOfMessagesVisible":
            return float(queue.approximate_number_of_messages)
        sent = [message.sent_timestamp / 1000 for message in list(queue._messages)]
        return self._now().timestamp() - min(sent) if sent else 0.0

    @staticmethod
    def _minute(moment: datetime) -> int:
        return int(moment.timestamp()) // 60


def _metric(named: Any) -> Metric:
    """The metric that moto's alarm, or one of its queries, names."""
    dimensions = frozenset((one.name, one.value) for one in named.dimensions)
    return named.namespace, named.metric_name, dimensions
