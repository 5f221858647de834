"""What must survive is kept, and only S3 in our name may wake the pipeline."""

import json
from typing import Any

import pytest

from s3commit.aws import env
from stacks.access import protected
from tests.stacks.synthesized import OPERATOR, Assembly, functions, of_type, only, properties
from tests.stacks.test_pipeline import alarm_of

STATEFUL = {
    "DataBucketE3889A50": "AWS::S3::Bucket",
    "LedgerB7379752": "AWS::DynamoDB::Table",
    "IngestQueue95F6DB49": "AWS::SQS::Queue",
    "IngestDeadLetters1228E37E": "AWS::SQS::Queue",
    "RequestQueue5926CB32": "AWS::SQS::Queue",
    "RequestDeadLetters3DB310C1": "AWS::SQS::Queue",
}


def test_logical_ids_of_stateful_resources_never_change(assembly: Assembly) -> None:
    found = {
        name: resource["Type"]
        for name, resource in assembly.storage["Resources"].items()
        if not resource["Type"].endswith("Policy")
    }
    assert found == STATEFUL


@pytest.mark.parametrize(
    ("kind", "policy"),
    [
        # A first deployment that fails has to give the bucket's name free.
        ("AWS::S3::Bucket", "RetainExceptOnCreate"),
        ("AWS::DynamoDB::Table", "Retain"),
    ],
)
def test_data_and_ledger_outlive_their_stack(assembly: Assembly, kind: str, policy: str) -> None:
    (resource,) = of_type(assembly.storage, kind).values()
    assert resource["DeletionPolicy"] == policy
    assert resource["UpdateReplacePolicy"] == "Retain"


def test_the_ledger_can_be_restored_expires_items_and_resists_deletion(assembly: Assembly) -> None:
    table = only(assembly.storage, "AWS::DynamoDB::Table")
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}
    assert table["DeletionProtectionEnabled"] is True
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert [key["AttributeName"] for key in table["KeySchema"]] == ["pk", "sk"]


def test_the_bucket_is_private_and_takes_tls_only(assembly: Assembly) -> None:
    bucket = only(assembly.storage, "AWS::S3::Bucket")
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert bucket["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    policy = only(assembly.storage, "AWS::S3::BucketPolicy")["PolicyDocument"]
    assert [
        (one["Effect"], one["Condition"]) for one in policy["Statement"] if one["Action"] == "s3:*"
    ] == [("Deny", {"Bool": {"aws:SecureTransport": "false"}})]


def test_i12_only_functions_and_operators_touch_it(assembly: Assembly, encrypted: Assembly) -> None:
    assert _protection(assembly) == []
    others, results = _protection(encrypted)
    for statement in (others, results):
        assert (statement["Effect"], statement["Principal"]) == ("Deny", {"AWS": "*"})
        assert statement["Condition"] == {
            "ArnNotLike": {"aws:PrincipalArn": [_arn_of_roles(encrypted), OPERATOR]}
        }
    keys = {one["Fn::Join"][1][1] for one in (*others["Resource"], results["Resource"])}
    assert keys == {f"/{name}" for name in protected("documents")}
    assert set(others["Action"]) - set(results["Action"]) == {"s3:DeleteObject"}


def _arn_of_roles(assembly: Assembly) -> dict[str, Any]:
    """That of every role of a function, whatever its name."""
    resources = assembly.pipeline["Resources"]
    roles = [resources[one.role] for one in functions(assembly.pipeline).values()]
    (path,) = {role["Properties"]["Path"] for role in roles}
    account: list[Any] = [":iam::", {"Ref": "AWS::AccountId"}, f":role{path}*"]
    return {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, *account]]}


def _protection(assembly: Assembly) -> list[dict[str, Any]]:
    policy = only(assembly.storage, "AWS::S3::BucketPolicy")["PolicyDocument"]
    return [one for one in policy["Statement"] if "ArnNotLike" in one["Condition"]]


def test_i4_a_lifecycle_rule_stands_behind_the_sweep(assembly: Assembly) -> None:
    bucket = only(assembly.storage, "AWS::S3::Bucket")
    assert bucket["LifecycleConfiguration"]["Rules"] == [
        {
            "Id": "abort-incomplete-uploads",
            "Status": "Enabled",
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
        }
    ]


def test_the_queues_admit_the_bucket_before_it_notifies(assembly: Assembly) -> None:
    policies = of_type(assembly.storage, "AWS::SQS::QueuePolicy")
    admitting = {name for name, policy in policies.items() if "sqs:SendMessage" in str(policy)}
    (bucket,) = of_type(assembly.storage, "AWS::S3::Bucket").values()
    assert admitting <= set(bucket["DependsOn"])
    assert len(admitting) == 2


@pytest.mark.parametrize(
    ("deployment", "service"),
    [
        ("assembly", "s3"),
        ("imported", "s3"),
        ("encrypted", "s3"),
        ("bridged", "events"),
        ("bridged_import", "events"),
    ],
)
def test_only_this_account_may_send(
    request: pytest.FixtureRequest, deployment: str, service: str
) -> None:
    senders = _senders(request.getfixturevalue(deployment))
    assert len(senders) == 2
    for sender in senders:
        assert sender["Principal"] == {"Service": f"{service}.amazonaws.com"}
        assert sender["Condition"]["StringEquals"] == {
            "aws:SourceAccount": {"Ref": "AWS::AccountId"}
        }
        assert sender["Condition"]["ArnLike"]["aws:SourceArn"]


@pytest.mark.parametrize("deployment", ["bridged", "bridged_import"])
def test_by_eventbridge_rules_fill_queues(request: pytest.FixtureRequest, deployment: str) -> None:
    storage = request.getfixturevalue(deployment).storage
    rules = properties(storage, "AWS::Events::Rule")
    details = [rule["EventPattern"]["detail"] for rule in rules]
    assert [detail["object"]["key"] for detail in details] == [
        [{"wildcard": "*/_tasks/*.pendingset"}, {"suffix": "/_job.json"}],
        [{"suffix": "/_request.json"}],
    ]
    if deployment == "bridged":
        bucket = only(storage, "AWS::S3::Bucket")["NotificationConfiguration"]
        assert bucket == {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}
        names: set[Any] = {detail["bucket"]["name"][0]["Ref"] for detail in details}
        assert names == {"DataBucketE3889A50"}
    else:
        notified = only(storage, "Custom::S3BucketNotifications")
        assert notified["NotificationConfiguration"] == {"EventBridgeConfiguration": {}}
        assert {detail["bucket"]["name"][0] for detail in details} == {"lake"}


def test_a_named_bucket_alone_may_send(encrypted: Assembly) -> None:
    sources = [str(sender["Condition"]["ArnLike"]) for sender in _senders(encrypted)]
    assert len(sources) == 2
    assert all(":s3:::named-lake" in source for source in sources)


def test_a_bucket_has_its_key_and_forgets_old_versions(encrypted: Assembly) -> None:
    bucket = only(encrypted.storage, "AWS::S3::Bucket")
    (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
    assert rule["BucketKeyEnabled"] is True
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    rules = {rule["Id"]: rule for rule in bucket["LifecycleConfiguration"]["Rules"]}
    assert rules["expire-noncurrent-versions"]["NoncurrentVersionExpiration"] == {
        "NoncurrentDays": 30
    }


def test_an_imported_bucket_is_notified_from_and_otherwise_left_alone(imported: Assembly) -> None:
    assert not of_type(imported.storage, "AWS::S3::Bucket")
    notification = only(imported.storage, "Custom::S3BucketNotifications")
    assert notification["BucketName"] == "lake"
    handler = only(imported.storage, "AWS::Lambda::Function")
    ((group, described),) = of_type(imported.storage, "AWS::Logs::LogGroup").items()
    assert handler["LoggingConfig"] == {"LogGroup": {"Ref": group}}
    assert described["Properties"]["RetentionInDays"] == 30
    assert notification["Managed"] is False  # keeps the notifications that are there already
    suffixes = {
        rule["Filter"]["Key"]["FilterRules"][0]["Value"]
        for rule in notification["NotificationConfiguration"]["QueueConfigurations"]
    }
    assert suffixes == {".pendingset", "/_job.json", "/_request.json"}


def _senders(assembly: Assembly) -> list[dict[str, Any]]:
    policies = properties(assembly.storage, "AWS::SQS::QueuePolicy")
    statements = [one for policy in policies for one in policy["PolicyDocument"]["Statement"]]
    return [one for one in statements if one["Action"] == "sqs:SendMessage"]


# What sums over all functions or queues, or shares out how many run at once.
CHANGED = ("ObservabilityDashboard", "ObservabilityFunction", "ObservabilitySweepsNotCalled")
SHARED = ("DecideFunction", "EndFunction")


def test_what_a_table_adds_stands_beside_it(assembly: Assembly, telling: Assembly) -> None:
    before, after = (each.pipeline["Resources"] for each in (assembly, telling))
    own = {name for name in after if name.startswith(("Catalog", "ObservabilityCatalogs"))}
    assert after.keys() - own == before.keys()
    changed = {name for name in before if before[name] != after[name]}
    assert {name for name in changed if not name.startswith((*CHANGED, *SHARED))} == set()
    assert assembly.storage["Resources"] == telling.storage["Resources"]


def test_a_commit_of_this_bucket_comes_by_a_queue_and_a_failure_fires(telling: Assembly) -> None:
    rules = properties(telling.pipeline, "AWS::Events::Rule")
    (rule,) = [one for one in rules if "EventPattern" in one]
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
    tables = functions(telling.pipeline)["catalog"].variables[env.CATALOGS]
    assert json.loads(tables) == ["sales/=analytics.sales dropEmpty", "orders/eu/=other.orders"]
