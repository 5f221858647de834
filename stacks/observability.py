"""Alarms that call for a person, and a dashboard. `docs/operations.md` says what to do on each."""

from collections.abc import Iterable, Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from s3commit.aws import env
from stacks.config import DeployConfig
from stacks.functions import PipelineFunction
from stacks.inbox import Inbox, oldest_seconds

_PERIOD = cdk.Duration.minutes(5)
_HOUR = cdk.Duration.hours(1)
_HIGHEST: dict[str, Any] = {"period": _PERIOD, "statistic": "Maximum"}
# One client's mistake is a document or two; some in a row are a broken client, or an attack.
REFUSED_DOCUMENTS = 10
# One job may lose its execution in an hour. More of them, and events do not arrive.
RESUMED_JOBS = 3
FAILED_CALLS = 10
RUNBOOK = "Runbook: docs/operations.md#{}"  # the row of the alarm
# The graphs of the dashboard: our own metrics by title, and those of each function.
_COUNTED = {
    "Jobs": (env.JOBS_COMMITTED, env.JOBS_ABORTED, env.JOBS_ROLLED_BACK),
    "Documents": (env.MANIFESTS_RECORDED, env.DOCUMENTS_REFUSED),
    "Swept": (env.JOBS_ABANDONED, env.JOBS_RESUMED, env.SWEEP_FAILURES),
}
_REFUSING = ("ingest", "dispatch", "end")
_OF_QUEUES = {
    "Messages that wait": "metric_approximate_number_of_messages_visible",
    "Oldest message": "metric_approximate_age_of_oldest_message",
}
_OF_FUNCTIONS = {
    "Errors": "metric_errors",
    "Duration": "metric_duration",
    "Throttles": "metric_throttles",
}


class Observability(Construct):
    """Alarms to one SNS topic and a dashboard of queues, jobs and functions."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        functions: Mapping[str, PipelineFunction],
        machine: sfn.StateMachine,
        inboxes: Mapping[str, Inbox],
        schedule: events.Rule,
        config: DeployConfig,
    ) -> None:
        super().__init__(scope, construct_id)
        self._functions = {name: each.function for name, each in functions.items()}
        self._logs = {name: each.log_group.log_group_name for name, each in functions.items()}
        self._machine, self._inboxes, self._namespace = machine, inboxes, config.namespace
        alarms: list[cloudwatch.Alarm] = []
        if config.alarms:
            action = actions.SnsAction(self._topic(config))
            alarms += [*self._alarms(), *self._alarms_of_silence(schedule, config)]
            for alarm in alarms:
                alarm.add_alarm_action(action)
                alarm.add_ok_action(action)
        if config.dashboard:
            self._dashboard(alarms)

    def _topic(self, config: DeployConfig) -> sns.ITopic:
        """The deployer's, whose policy stays as it is, or one of our own."""
        if config.alarm_topic_arn:
            return sns.Topic.from_topic_arn(self, "Alarms", config.alarm_topic_arn)
        # Any policy of its own replaces the default one of SNS, so CloudWatch has to be allowed to
        # publish, for alarms of this account:
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Notify_Users_Alarm_Changes.html
        topic = sns.Topic(self, "Alarms", enforce_ssl=True)
        of_account = {"StringEquals": {"aws:SourceAccount": cdk.Stack.of(self).account}}
        topic.grant_publish(iam.ServicePrincipal("cloudwatch.amazonaws.com", conditions=of_account))
        if config.alarm_email:
            topic.add_subscription(subscriptions.EmailSubscription(config.alarm_email))
        return topic

    def _alarm(
        self,
        name: str,
        metric: cloudwatch.IMetric,
        meaning: str,
        *,
        above: float = 0,
        silent_periods: int = 0,
    ) -> cloudwatch.Alarm:
        """It fires ``above`` a value, or if nothing is counted in so many ``silent_periods``.

        Where nothing is counted, CloudWatch has no value at all.
        """
        compared, missing = cloudwatch.ComparisonOperator, cloudwatch.TreatMissingData
        silent = silent_periods > 0
        return cloudwatch.Alarm(
            self,
            name,
            alarm_name=env.ALARM.format(cdk.Stack.of(self).stack_name, name),
            metric=metric,
            threshold=1 if silent else above,
            comparison_operator=(
                compared.LESS_THAN_THRESHOLD if silent else compared.GREATER_THAN_THRESHOLD
            ),
            evaluation_periods=silent_periods or 1,
            treat_missing_data=missing.BREACHING if silent else missing.NOT_BREACHING,
            alarm_description=f"{meaning} {RUNBOOK.format(name.partition('-')[0])}",
        )

    def _alarms(self) -> Iterable[cloudwatch.Alarm]:
        """Of what happens. A function's error is retried by queue or machine: a few wake no one."""
        for name, inbox in self._inboxes.items():
            yield self._alarm(
                f"{name}DeadLetters",
                inbox.dead_letters.metric_approximate_number_of_messages_visible(**_HIGHEST),
                f"A message of the {name.lower()} queue failed repeatedly.",
            )
            yield self._alarm(
                f"{name}Backlog",
                inbox.queue.metric_approximate_age_of_oldest_message(**_HIGHEST),
                f"The {name.lower()} queue is not being processed.",
                above=oldest_seconds(name),
            )
        unfinished = (
            ": its job may have no result yet, and block others. `s3commit status` marks it with"
            " !, `s3commit show JOB` says why, `s3commit commit JOB` resumes it."
        )
        failed, timed_out = self._machine.metric_failed, self._machine.metric_timed_out
        yield self._alarm("JobsFailed", failed(period=_PERIOD), f"An execution failed{unfinished}")
        yield self._alarm(
            "JobsTimedOut", timed_out(period=_PERIOD), f"An execution timed out{unfinished}"
        )
        yield self._alarm(
            "SweepsFailed",
            self._functions["sweep"].metric_errors(period=_PERIOD),
            "A sweep failed: the objects and uploads that jobs left behind remain for now.",
        )
        yield self._alarm(
            "DocumentsRefused",
            self._own(env.DOCUMENTS_REFUSED, _PERIOD),
            "A client's documents are refused: the dashboard shows below which prefix.",
            above=REFUSED_DOCUMENTS,
        )
        for name, metric_name, meaning in (
            ("FunctionErrors", "metric_errors", "The functions fail repeatedly."),
            ("FunctionThrottles", "metric_throttles", "Lambda's concurrency is used up."),
        ):
            of_all = [getattr(one, metric_name)(period=_PERIOD) for one in self._functions.values()]
            yield self._sum_alarm(name, of_all, meaning, above=FAILED_CALLS)

    def _sum_alarm(
        self, name: str, metrics: list[cloudwatch.Metric], meaning: str, *, above: float = 0
    ) -> cloudwatch.Alarm:
        """Of ten metrics at most, as many as an alarm takes."""
        named = {f"m{index}": metric for index, metric in enumerate(metrics)}
        total = cloudwatch.MathExpression(
            expression="SUM(METRICS())", using_metrics=named, period=_PERIOD, label=name
        )
        return self._alarm(name, total, meaning, above=above)

    def _alarms_of_silence(
        self, schedule: events.Rule, config: DeployConfig
    ) -> Iterable[cloudwatch.Alarm]:
        """The sweep finds what no event leads to, so it must not stop unheard; nor may events."""
        yield self._alarm(
            "SweepsMissing",
            self._functions["sweep"].metric_invocations(
                period=cdk.Duration.minutes(2 * config.sweep_minutes), statistic="Sum"
            ),
            "No sweep has begun in two of its periods: its rule is disabled, as after `s3commit"
            " pause`, or is not allowed to call it.",
            silent_periods=1,
        )
        names = [schedule.rule_name, *(one.rule for one in self._inboxes.values() if one.rule)]
        # https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-monitoring.html
        failed = [
            cloudwatch.Metric(
                namespace="AWS/Events",
                metric_name="FailedInvocations",
                dimensions_map={"RuleName": name},
                statistic="Sum",
                period=_PERIOD,
            )
            for name in names
        ]
        yield self._sum_alarm(
            "SweepsNotCalled", failed, "A rule could not call the sweep, or send to a queue."
        )
        yield self._alarm(
            "EventsLost",
            self._own(env.JOBS_RESUMED, _HOUR),
            "The sweep started more jobs than fail by chance: events are lost, or executions"
            " fail. Run `s3commit doctor`.",
            above=RESUMED_JOBS,
        )
        for prefix, hours in config.fresh.items():
            # Periods of an hour may look back a week at most:
            # https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
            yield self._alarm(
                f"TableStale-{prefix}",
                self._own(env.TABLE_COMMITS, _HOUR, **{env.DIMENSION_TABLE: prefix}),
                f"Nothing was committed below {prefix} for {hours} hours. `s3commit log` shows the"
                " outcome of the table's last jobs.",
                silent_periods=hours,
            )

    def _dashboard(self, alarms: list[cloudwatch.Alarm]) -> None:
        board, machine = cloudwatch.Dashboard(self, "Dashboard"), self._machine
        queues = {name: inbox.queue for name, inbox in self._inboxes.items()}
        times = [self._own(env.REQUEST_TO_RESULT, statistic=one) for one in ("p50", "p95")]
        began, succeeded = machine.metric_started(), machine.metric_succeeded()
        completed = cloudwatch.MathExpression(
            expression="counted / PERIOD(counted)",
            using_metrics={"counted": self._own(env.FILES_COMPLETED)},
            label="per second",
        )
        if alarms:
            status = cloudwatch.AlarmStatusWidget(title="Alarms", alarms=alarms, width=24)
            board.add_widgets(status)
        board.add_widgets(
            *(_graph(title, *map(self._own, names), width=6) for title, names in _COUNTED.items()),
            _graph("Completions per second", completed, width=6),
        )
        board.add_widgets(
            _graph("Executions", began, succeeded, machine.metric_failed()),
            _graph("Seconds from request to result", *times),
            *_graphs(_OF_QUEUES, queues),
        )
        board.add_widgets(*_graphs(_OF_FUNCTIONS, self._functions))
        # They cost nothing until someone looks, and then by what is read, 0.005 USD a GB. A
        # Contributor Insights rule costs 0.50 USD a month, and more by the line, whether anyone
        # looks or not: https://aws.amazon.com/cloudwatch/pricing/
        waiting = f"filter message = '{env.DONE_MESSAGE}' and state = 'SEALED' and {env.PAUSE} > 0"
        board.add_widgets(
            self._query(
                "How many jobs wait for another one",
                ["decide"],
                waiting,
                # Each says so once a minute at least.
                "stats count_distinct(job_id) as jobs by bin(5m)",
                view=cloudwatch.LogQueryVisualizationType.LINE,
            ),
            self._query(
                "The jobs that wait",
                ["decide"],
                waiting,
                "stats min(@timestamp) as since, max(@timestamp) as last by job_id",
                *("sort last desc", "limit 20"),
            ),
        )
        board.add_widgets(
            self._query(
                "Whose documents were refused",
                _REFUSING,
                f"filter message = '{env.REFUSED_MESSAGE}'",
                f"stats count(*) as refused by {env.REFUSED_PREFIX}, code",
                *("sort refused desc", "limit 20"),
                width=24,
            )
        )

    def _query(
        self, title: str, functions: Iterable[str], *lines: str, width: int = 12, **how: Any
    ) -> cloudwatch.LogQueryWidget:
        """A query of the functions' logs."""
        names = [self._logs[name] for name in functions]
        return cloudwatch.LogQueryWidget(
            title=title, log_group_names=names, query_lines=list(lines), width=width, **how
        )

    def _own(
        self, name: str, period: cdk.Duration | None = None, statistic: str = "Sum", **more: str
    ) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=self._namespace,
            metric_name=name,
            dimensions_map={"service": env.SERVICE, **more},
            statistic=statistic,
            period=period,
            label=name if statistic == "Sum" else statistic,
        )


def _graph(title: str, *metrics: cloudwatch.IMetric, width: int = 8) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(metrics), width=width)


def _graphs(metrics: Mapping[str, str], things: Mapping[str, Any]) -> Iterable[cloudwatch.IWidget]:
    """A graph of each metric by its title, with a line for each thing by its name."""
    for title, metric in metrics.items():
        lines = (getattr(thing, metric)(label=name) for name, thing in things.items())
        yield _graph(title, *lines)
