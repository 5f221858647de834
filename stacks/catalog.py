"""What tells the Glue Data Catalog of commits: deployed where the parameter `catalogs` has a table.

Rule, queue and function stand beside the pipeline: they hear of a job when it has ended, so they
can hold up none, and undo none.
"""

from __future__ import annotations

import aws_cdk as cdk

from s3commit.aws import env
from s3commit.aws.env import LEAST_OF_A_QUEUE
from stacks.config import DeployConfig
from stacks.functions import PipelineFunction, allow
from stacks.inbox import Inbox

_WHY_MANIFESTS = (
    "The manifests of committed jobs, at the table or in one of its partitions, whose names are"
    " the jobs' choice."
)


def tell_catalogs(
    function: PipelineFunction, inbox: Inbox, bucket_arn: str, config: DeployConfig
) -> str:
    """Feed the events of committed jobs to the function, and let it tell its tables of them.

    Returns the name of the rule. Of a batch of one a failed call gives back that event alone.
    """
    stack = cdk.Stack.of(function)
    inbox.feed(stack, function, batch=1, most=LEAST_OF_A_QUEUE)
    bucket = cdk.Fn.select(5, cdk.Fn.split(":", bucket_arn))
    rule = inbox.add_pattern(
        "Jobs that s3commit has committed",
        {
            "source": [env.EVENT_SOURCE],
            "detail-type": [env.EVENT_DETAIL_TYPE],
            "detail": {"outcome": ["COMMITTED"], "bucket": [bucket]},
        },
    )
    for one in config.catalogs:
        resources = one.resources(stack.partition, stack.region, stack.account)
        allow(function.role, list(one.actions), *resources)
        manifests = f"{bucket_arn}/{one.prefix}*_commits/*"
        allow(function.role, ["s3:GetObject"], manifests, why_wide=_WHY_MANIFESTS)
    # For `s3commit doctor`.
    cdk.CfnOutput(stack, env.CATALOG_ROLE_OUTPUT, value=function.role.role_arn)
    return rule
