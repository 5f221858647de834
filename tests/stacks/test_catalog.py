"""What tells catalogs of commits is there if the parameter names a table, and stands aside."""

import json
from typing import Any

from s3commit.aws import env
from stacks.functions import ON_DEMAND
from tests.stacks.synthesized import Assembly, functions, of_type, synthesize
from tests.stacks.test_pipeline import alarm_of

# What sums over all functions or queues, or shares out how many run at once.
TOGETHER = ("ObservabilityDashboard", "ObservabilityFunction", "ObservabilitySweepsNotCalled")
SHARED = ("DecideFunction", "EndFunction")


def test_without_a_table_the_template_is_as_if_there_were_no_such_parameter(
    assembly: Assembly, telling: Assembly
) -> None:
    none = synthesize(catalogs={})
    assert (none.pipeline, none.storage) == (assembly.pipeline, assembly.storage)
    before, after = (each.pipeline["Resources"] for each in (assembly, telling))
    own = {name for name in after if name.startswith(("Catalog", "ObservabilityCatalog"))}
    assert after.keys() - own == before.keys()
    changed = {name for name in before if before[name] != after[name]}
    assert {name for name in changed if not name.startswith((*TOGETHER, *SHARED))} == set()
    assert assembly.storage["Resources"] == telling.storage["Resources"]


def test_a_commit_of_this_bucket_comes_by_a_queue_and_a_failure_rings(telling: Assembly) -> None:
    (rule,) = [
        one["Properties"]
        for one in of_type(telling.pipeline, "AWS::Events::Rule").values()
        if "EventPattern" in one["Properties"]
    ]
    assert rule["EventPattern"]["source"] == [env.EVENT_SOURCE]
    assert rule["EventPattern"]["detail"]["outcome"] == ["COMMITTED"]
    assert "S3CommitBucketArn" in json.dumps(rule["EventPattern"]["detail"]["bucket"])
    queues: Any = of_type(telling.pipeline, "AWS::SQS::Queue")
    (inbox,) = [name for name in queues if name.startswith("CatalogsQueue")]
    assert rule["Targets"][0]["Arn"]["Fn::GetAtt"] == [inbox, "Arn"]
    assert queues[inbox]["Properties"]["RedrivePolicy"]["maxReceiveCount"] == 5
    timeout = ON_DEMAND["catalog"].timeout
    assert queues[inbox]["Properties"]["VisibilityTimeout"] == 6 * timeout
    logical_id, function = functions(telling.pipeline)["catalog"]
    variables = function["Properties"]["Environment"]["Variables"]
    assert json.loads(variables[env.CATALOGS]) == [
        ["sales/", "analytics.sales", True],
        ["orders/eu/", "other.orders", False],
    ]
    (mapping,) = [
        one["Properties"]
        for one in of_type(telling.pipeline, "AWS::Lambda::EventSourceMapping").values()
        if one["Properties"]["FunctionName"] == {"Ref": logical_id}
    ]
    assert mapping["BatchSize"] == 1
    dead = alarm_of(telling, "CatalogDeadLetters")
    assert dead["Dimensions"][0]["Value"]["Fn::GetAtt"][0].startswith("CatalogsDeadLetters")
    rung = json.dumps(alarm_of(telling, "SweepsNotCalled")["Metrics"])
    assert rule["Name"] in rung
    assert telling.pipeline["Outputs"][env.CATALOG_ROLE_OUTPUT]
