"""The stack that can be removed and deployed again: functions, state machine, routing, alarms.

`build` puts it upon the storage, for `app.py` and the tests.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_s3_assets import Asset
from cdk_nag import AwsSolutionsChecks
from constructs import Construct

from s3commit.aws import env
from s3commit.aws.env import LEAST_OF_A_QUEUE
from s3commit.core.calls.routes import STEPS
from s3commit.version import __version__
from stacks.config import PREFIX, DeployConfig, parameter_name
from stacks.definition import MAP_FUNCTION
from stacks.functions import FUNCTIONS, RUNTIME, PipelineFunction, allow
from stacks.inbox import CONSUMERS, Inbox
from stacks.layers import PYTHON_VERSION, ROOT, dependencies_layer, function_code, runtime_python
from stacks.observability import Observability
from stacks.storage import S3CommitStorage
from stacks.workflow import WHY_EXECUTIONS, Workflow

# The sweep's input.
LIMITS = ("stuck_minutes", "abandoned_hours", "retention_days")
# Messages of one call. Any client may write a manifest that takes a call's whole time. A call that
# is killed gives back all of its messages, and puts them aside after five times: so each has only
# one.
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
BATCHES = {"Ingest": 1, "Request": 10, "Catalogs": 1}
_WHY_MANIFESTS = "The commit manifests of a table's jobs, some of them in its partitions."


class S3CommitPipeline(cdk.Stack):
    """The stateless stack: it holds nothing that a second deployment would miss."""

    def __init__(
        self, scope: Construct, construct_id: str, *, config: DeployConfig, storage: S3CommitStorage
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=config.stack_name(construct_id),
            description="s3commit: the pipeline that decides and completes jobs",
        )
        self.add_stack_dependency(storage)
        make = partial(
            PipelineFunction,
            self,
            config=config,
            code=self._code(),
            layer=lambda_.LayerVersion(
                self,
                "DependenciesLayer",
                code=lambda_.Code.from_asset(str(dependencies_layer())),
                compatible_runtimes=[RUNTIME],
                compatible_architectures=[lambda_.Architecture.ARM_64, lambda_.Architecture.X86_64],
            ),
            bucket_arn=storage.bucket_arn,
            table_arn=storage.ledger.table_arn,
            values=_values(config, storage),
        )
        functions = {name: make(name) for name in FUNCTIONS if name != "catalog" or config.catalogs}
        workflow = Workflow(
            self,
            "CommitJob",
            functions={
                name: functions[name].function.function_arn
                for name in sorted({*STEPS.values(), MAP_FUNCTION})
            },
            bucket_arn=storage.bucket_arn,
            config=config,
        )
        machine, sweep = workflow.machine, functions["sweep"]
        for starter in (functions["ingest"], functions["dispatch"], sweep):
            allow(starter.role, ["states:StartExecution"], machine.state_machine_arn)
            starter.function.add_environment(env.STATE_MACHINE, machine.state_machine_arn)
        allow(
            sweep.role, ["states:DescribeExecution"], f"{workflow.executions}:*", why=WHY_EXECUTIONS
        )
        for inbox in storage.inboxes.values():
            allow(sweep.role, ["sqs:GetQueueUrl"], inbox.queue.queue_arn)
            if inbox.rule:
                rules = f"arn:{self.partition}:events:{self.region}:{self.account}:rule"
                allow(sweep.role, ["events:DescribeRule"], f"{rules}/{inbox.rule}")
        workflow.allow_to_ask(functions["decide"].role)
        inboxes = dict(storage.inboxes)
        if config.catalogs:
            inboxes["Catalogs"] = self._tell(functions["catalog"], storage.bucket_arn, config)
        self._feed(functions, workflow, inboxes, config)
        Observability(
            self,
            "Observability",
            functions=functions,
            machine=machine,
            inboxes=inboxes,
            schedule=self._schedule(sweep.function, config),
            config=config,
        )
        # For the command.
        cdk.CfnOutput(self, env.STATE_MACHINE_OUTPUT, value=machine.state_machine_arn)
        cdk.CfnOutput(self, env.VERSION_OUTPUT, value=__version__)
        cdk.CfnOutput(self, env.CONCURRENCY_OUTPUT, value=str(config.lambda_concurrency))

    def _code(self) -> lambda_.Code:
        """Handlers and package, without what only clients need."""
        if runtime_python() is None:
            cdk.Annotations.of(self).add_warning_v2(
                "s3commit:bytecode",
                f"No Python {PYTHON_VERSION} on the PATH: the functions have no byte code, and each"
                " cold start takes three times as long (docs/deploy.md)",
            )
        # The CDK copies the content immediately.
        with tempfile.TemporaryDirectory(prefix="s3commit-code-") as scratch:
            content = function_code(Path(scratch) / "code")
            asset = Asset(self, "Code", path=str(content))
        cdk.Annotations.of(asset.bucket).acknowledge_warning(
            "@aws-cdk/aws-lambda:codeFromBucketObjectVersionNotSpecified", "The key is a digest."
        )
        return lambda_.Code.from_bucket(asset.bucket, asset.s3_object_key)

    def _feed(
        self,
        functions: dict[str, PipelineFunction],
        workflow: Workflow,
        inboxes: Mapping[str, Inbox],
        config: DeployConfig,
    ) -> None:
        """Feed each queue to its function; a failed message alone returns.

        https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
        """
        most = {"Ingest": config.shares.manifests, "Request": config.shares.requests}
        for name, inbox in inboxes.items():
            consumer = functions[CONSUMERS[name]]
            allow(
                consumer.role,
                ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"],
                inbox.queue.queue_arn,
            )
            mapping = lambda_.EventSourceMapping(
                self,
                f"{name}Queue",
                target=consumer.function,
                event_source_arn=inbox.queue.queue_arn,
                batch_size=BATCHES[name],
                max_concurrency=most.get(name, LEAST_OF_A_QUEUE),
                report_batch_item_failures=True,
            )
            # Lambda tries to read the queue when the mapping is made.
            mapping.node.add_dependency(consumer.role)
            if name == "Request":  # otherwise a first job could reach a Map that cannot start
                mapping.node.add_dependency(workflow.map_runs)
            # For `s3commit pause`, as is the rule's name, and for `redrive`.
            cdk.CfnOutput(self, env.MAPPING_OUTPUTS[name], value=mapping.event_source_mapping_id)

    def _tell(self, function: PipelineFunction, bucket_arn: str, config: DeployConfig) -> Inbox:
        """The queue of committed jobs, of which the function notifies the tables of the catalog.

        It is beside the pipeline: it gets jobs that have ended, so it cannot delay any.
        """
        inbox = Inbox(self, "Catalogs")
        where = {"outcome": ["COMMITTED"], "bucket": [_name(bucket_arn)]}
        inbox.add_rule(env.EVENT_SOURCE, env.EVENT_DETAIL_TYPE, where)
        for one in config.told:
            glue = f"arn:{self.partition}:glue:{self.region}:{self.account}"
            actions, resources = one.rights(glue)
            allow(function.role, actions, *resources)
            manifests = f"{bucket_arn}/{one.prefix}*_commits/*"
            allow(function.role, ["s3:GetObject"], manifests, why=_WHY_MANIFESTS)
        # For `s3commit doctor`.
        cdk.CfnOutput(self, env.CATALOG_ROLE_OUTPUT, value=function.role.role_arn)
        return inbox

    def _schedule(self, sweep: lambda_.IFunction, config: DeployConfig) -> events.Rule:
        """Call the sweep again and again with the deployment's limits; two together do no harm."""
        limits = {parameter_name(name): getattr(config, name) for name in LIMITS}
        rule = events.Rule(
            self,
            "SweepSchedule",
            description="Starts a sweep",
            schedule=events.Schedule.rate(cdk.Duration.minutes(config.sweep_minutes)),
            targets=[
                targets.LambdaFunction(sweep, event=events.RuleTargetInput.from_object(limits))
            ],
        )
        cdk.CfnOutput(self, env.SWEEP_RULE_OUTPUT, value=rule.rule_name)
        return rule


def _values(config: DeployConfig, storage: S3CommitStorage) -> dict[str, str | None]:
    """The values in the functions' environments; None where a name is not set."""
    is_own, is_key = config.encryption != "bucket", config.encryption == "aws:kms"
    return {
        env.TABLE: storage.ledger.table_name,
        env.LEDGER: storage.ledger.table_arn,
        env.BUCKET: _name(storage.bucket_arn),
        env.LISTENS: storage.listens,
        env.LEDGER_TTL_DAYS: str(config.ledger_ttl_days),
        env.PREFIXES: json.dumps(config.served) if config.prefixes != ("",) else None,
        env.REPLACE_BELOW: json.dumps(config.replace_prefixes),
        env.WORKERS: json.dumps([config.shares.workers, config.max_concurrency]),
        env.CATALOGS: json.dumps(config.catalogs),
        env.FRESH_TABLES: json.dumps(list(config.fresh)) if config.fresh else None,
        # The header of the pipeline's own puts, where the bucket's default is not meant.
        env.ENCRYPTION: config.encryption if is_own else None,
        env.ENCRYPTION_KEY: config.kms_key_arn if is_key else None,
    }


def _name(bucket_arn: str) -> str:
    """Out of the ARN, which is what the storage stack exports."""
    return cdk.Fn.select(5, cdk.Fn.split(":", bucket_arn))


def cdk_json(project: Path) -> dict[str, Any]:
    """The context of the project's `cdk.json`; for the embedded runtime without our parameters."""
    context: dict[str, Any] = json.loads((project / "cdk.json").read_text())["context"]
    if not os.environ.get(env.LOCAL):
        return context
    return {key: each for key, each in context.items() if not key.startswith(PREFIX)}


def build(parameters: Mapping[str, Any] | None = None, outdir: str | None = None) -> cdk.App:
    """The application, not yet synthesized. Raises `stacks.config.ConfigError`.

    ``parameters`` are context keys such as ``s3commit:name``; those of the command line win. The
    context of `cdk.json` is read here too, because the CDK command alone would read it, and
    `python app.py` has to give the same templates.
    """
    app = cdk.App(context={**cdk_json(ROOT), **(parameters or {})}, outdir=outdir)
    config = DeployConfig.from_context(app.node.get_all_context())
    storage = S3CommitStorage(app, env.STORAGE_STACK, config=config)
    S3CommitPipeline(app, env.PIPELINE_STACK, config=config, storage=storage)
    cdk.Tags.of(app).add("application", "s3commit")
    # Each template is checked at synth; a finding that is not acknowledged fails it.
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app, verbose=True))
    return app
