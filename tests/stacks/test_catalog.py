"""What tells catalogs of commits is there if the parameter names a table, and stands aside."""

import json

from s3commit.aws import env
from tests.stacks.synthesized import Assembly, functions, of_type
from tests.stacks.test_pipeline import alarm_of

# What sums over all functions or queues, or shares out how many run at once.
CHANGED = ("ObservabilityDashboard", "ObservabilityFunction", "ObservabilitySweepsNotCalled")
SHARED = ("DecideFunction", "EndFunction")


def test_what_a_table_adds_stands_beside_the_pipeline(
    assembly: Assembly, telling: Assembly
) -> None:
    before, after = (each.pipeline["Resources"] for each in (assembly, telling))
    own = {name for name in after if name.startswith(("Catalog", "ObservabilityCatalogs"))}
    assert after.keys() - own == before.keys()
    changed = {name for name in before if before[name] != after[name]}
    assert {name for name in changed if not name.startswith((*CHANGED, *SHARED))} == set()
    assert assembly.storage["Resources"] == telling.storage["Resources"]


def test_a_commit_of_this_bucket_comes_by_a_queue_and_a_failure_rings(telling: Assembly) -> None:
    rules = of_type(telling.pipeline, "AWS::Events::Rule").values()
    (rule,) = [one["Properties"] for one in rules if "EventPattern" in one["Properties"]]
    assert rule["EventPattern"]["source"] == [env.EVENT_SOURCE]
    assert rule["EventPattern"]["detail"]["outcome"] == ["COMMITTED"]
    assert "S3CommitBucketArn" in json.dumps(rule["EventPattern"]["detail"]["bucket"])
    queues = of_type(telling.pipeline, "AWS::SQS::Queue")
    (inbox,) = [name for name in queues if name.startswith("CatalogsQueue")]
    queue = queues[inbox]["Properties"]
    assert rule["Targets"][0]["Arn"]["Fn::GetAtt"] == [inbox, "Arn"]
    assert queue["RedrivePolicy"]["maxReceiveCount"] == 5
    dead = alarm_of(telling, "CatalogsDeadLetters")["Dimensions"][0]["Value"]["Fn::GetAtt"][0]
    assert queue["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0] == dead
    assert rule["Name"] in json.dumps(alarm_of(telling, "SweepsNotCalled")["Metrics"])
    _, function = functions(telling.pipeline)["catalog"]
    assert json.loads(function["Properties"]["Environment"]["Variables"][env.CATALOGS]) == [
        *("sales/=analytics.sales dropEmpty", "orders/eu/=other.orders")
    ]
