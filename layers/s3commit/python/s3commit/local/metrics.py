"""CloudWatch's metrics, as the runtime counts them, and the states of the alarms on them.

moto keeps alarms and evaluates none: they are evaluated here whenever someone describes them.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html
"""

import json
import operator
import threading
from collections import defaultdict
from contextlib import suppress
from datetime import datetime
from itertools import chain
from typing import Any, Final

from s3commit.local import ACCOUNT, REGION
from s3commit.local.triggers import Now
from s3commit.local.worker import CallOutcome

Metric = tuple[str, str, frozenset[tuple[str, str]]]  # namespace, name, dimensions
LAMBDA: Final = "AWS/Lambda"
# The one expression that is known, over all metrics of the alarm.
SUM: Final = "SUM(METRICS())"
_ENDED: Final = {"ExecutionsFailed": "FAILED", "ExecutionsTimedOut": "TIMED_OUT"}
COMPARED: Final = {"GreaterThanThreshold": operator.gt, "LessThanThreshold": operator.lt}


class Metrics:
    """Counts by the minute, of all that was called; queues and executions are looked at.

    A period ends with the present minute, by ``now``. The time before the runtime began says
    nothing: there, silence is not missing data.
    """

    def __init__(self, now: Now) -> None:
        self._now = now
        self._began = self._minute(now())
        self._counts: defaultdict[Metric, defaultdict[int, float]] = defaultdict(
            lambda: defaultdict(float)
        )
        self._lock = threading.Lock()

    def count(self, namespace: str, name: str, value: float = 1, **dimensions: str) -> None:
        """Add to a metric, in the present minute."""
        metric = (namespace, name, frozenset(dimensions.items()))
        with self._lock:
            self._counts[metric][self._minute(self._now())] += value

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
            fires, why = self._fires(alarm)
            state = "ALARM" if fires else "OK"
            if state != alarm.state_value:
                backend.set_alarm_state(alarm.name, why, "{}", state)

    def _fires(self, alarm: Any) -> tuple[bool, str]:
        """True if it fires, and why: the value of its latest period."""
        stats = [query.metric_stat for query in alarm.metric_data_queries if query.metric_stat]
        watched = [_metric(one.metric) for one in stats] or [_metric(alarm)]
        length = int(stats[0].period if stats else alarm.period) // 60
        end, count = self._minute(self._now()) + 1, int(alarm.evaluation_periods)
        starts = range(end - length, end - (count + 1) * length, -length)
        sums = [self._sum(watched, range(start, start + length)) for start in starts]
        is_silence, compared = alarm.treat_missing_data == "breaching", alarm.comparison_operator
        fires = all(
            is_silence and start >= self._began
            if value is None
            else COMPARED[compared](value, alarm.threshold)
            for start, value in zip(starts, sums, strict=True)
        )
        latest = "no value" if sums[0] is None else f"{sums[0]:g}"
        return fires, f"{latest} in {length} minutes; it fires by {compared}, {alarm.threshold:g}"

    def _sum(self, watched: list[Metric], minutes: range) -> float | None:
        """Of the metrics' values in these minutes; None if there is none."""
        values = [value for one in watched for value in self._values(one, minutes)]
        return sum(values) if values else None

    def _values(self, metric: Metric, minutes: range) -> list[float]:
        from moto.sqs.models import sqs_backends
        from moto.stepfunctions.parser.models import stepfunctions_parser_backends

        namespace, name, dimensions = metric
        of = dict(dimensions)
        if namespace == "AWS/SQS":  # as it is now; the age in seconds, of what is not deleted
            queue = sqs_backends[ACCOUNT][REGION].queues.get(of["QueueName"])
            if queue is None:  # it was deleted
                return []
            if name == "ApproximateNumberOfMessagesVisible":
                return [queue.approximate_number_of_messages]
            now = self._now().timestamp()
            messages: list[Any] = list(queue._messages)
            sent = (message.sent_timestamp / 1000 for message in messages)
            return [now - min(sent, default=now)]
        if namespace == "AWS/States":
            machines = stepfunctions_parser_backends[ACCOUNT][REGION].state_machines
            found = [list(one.executions) for one in machines if one.arn == of["StateMachineArn"]]
            ended = [one.stop_date for one in chain(*found) if one.status == _ENDED[name]]
            return [sum(self._minute(moment) in minutes for moment in ended if moment)]
        with self._lock:
            counts = self._counts[metric]
            return [value for minute, value in counts.items() if minute in minutes]

    @staticmethod
    def _minute(moment: datetime) -> int:
        return int(moment.timestamp()) // 60


def _metric(named: Any) -> Metric:
    """The metric that moto's alarm, or one of its queries, names."""
    dimensions = frozenset((one.name, one.value) for one in named.dimensions)
    return named.namespace, named.metric_name, dimensions
