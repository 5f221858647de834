"""`s3commit pause` and `s3commit resume` switch what calls the functions, and nothing else."""

import io
import json

import pytest

from s3commit.aws import env
from tests.cli.account import Account
from tests.cli.browser import Browser
from tests.cli.support import TABLE, Desk
from tests.conftest import REGION
from tests.stacks.synthesized import synthesize

MAPPINGS = [env.MAPPING_OUTPUTS[inbox] for inbox in env.PAUSED]
TRUST = json.dumps({"Version": "2012-10-17", "Statement": []})


def make_mapping(account: Account, name: str) -> str:
    """An event source mapping from a queue to a function, and its id."""
    iam, functions = account.client("iam"), account.client("lambda")
    role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=TRUST)["Role"]["Arn"]
    functions.create_function(
        FunctionName=name,
        Runtime="python3.13",
        Role=role,
        Handler="x.handler",
        Code={"ZipFile": b"x"},
    )
    account.client("sqs").create_queue(QueueName=name)
    arn = f"arn:aws:sqs:{REGION}:123456789012:{name}"
    mapping = functions.create_event_source_mapping(FunctionName=name, EventSourceArn=arn)
    return str(mapping["UUID"])


@pytest.fixture
def deployed(account: Account) -> Account:
    """A deployment whose functions are called."""
    outputs = {output: make_mapping(account, f"{account.name}-{output}") for output in MAPPINGS}
    account.client("events").put_rule(Name=account.name, ScheduleExpression="rate(1 hour)")
    queue = account.client("sqs").create_queue(QueueName=f"{account.name}-dead")["QueueUrl"]
    outputs[env.DEAD_LETTERS_OUTPUTS["Request"]] = queue
    account.deploy(env.PIPELINE_STACK, **outputs, **{env.SWEEP_RULE_OUTPUT: account.name})
    return account


def states(account: Account) -> set[str]:
    found = account.client("lambda").list_event_source_mappings()["EventSourceMappings"]
    rule = account.client("events").describe_rule(Name=account.name)
    own = (one for one in found if f":{account.name}-" in one["FunctionArn"])
    return {rule["State"], *(one["State"] for one in own)}


def test_all_that_calls_the_functions_is_switched_off_and_on(desk: Desk, deployed: Account) -> None:
    name = ["--name", deployed.name]
    assert states(deployed) == {"Enabled", "ENABLED"}
    for _again in range(2):
        told = desk.json("pause", *name)
        assert told == {"deployment": f"S3CommitPipeline-{deployed.name}", "state": "paused"}
        assert states(deployed) == {"Disabled", "DISABLED"}
    verdict, text = deployed.ask()["event sources"]
    off = "IngestMapping, RequestMapping, SweepRule disabled"
    assert (verdict, text) == ("fix", f"paused, no job starts ({off}); s3commit resume")
    desk.run("resume", *name)
    assert states(deployed) == {"Enabled", "ENABLED"}
    assert deployed.ask()["event sources"] == ("ok", "all are enabled")
    deployed.deploy(env.STORAGE_STACK, **{env.TABLE_OUTPUT: TABLE})
    assert desk.json("status", *name)["disabled"] == []
    desk.run("pause", *name)
    assert desk.json("status", *name)["disabled"] == [*MAPPINGS, env.SWEEP_RULE_OUTPUT]
    last = desk.run("status", *name).stderr.splitlines()[-1]
    assert last.startswith("deployment: paused, no job starts (IngestMapping, ")
    assert "Paused" in Browser(desk).get("/")
    deployed.refuse("DescribeRule")
    assert "paused" not in desk.run("status", *name).stderr
    assert desk.json("status", *name)["disabled"] is None


@pytest.mark.parametrize(
    ("operation", "lacking"),
    [("UpdateEventSourceMapping", "IngestMapping, RequestMapping"), ("DisableRule", "SweepRule")],
)
def test_a_right_that_lacks_stops_nothing_else_and_is_not_said_to_change_nothing(
    desk: Desk, deployed: Account, operation: str, lacking: str
) -> None:
    deployed.refuse(operation)
    told = desk.fails("pause", "--name", deployed.name, exit_code=1)
    assert f"not switched: {lacking}. Repeat the command" in told
    assert "nothing was changed" not in told
    assert len(states(deployed) & {"Enabled", "ENABLED"}) == 1


def test_a_change_that_is_under_way_is_to_be_repeated(desk: Desk, deployed: Account) -> None:
    for operation in ("UpdateEventSourceMapping", "EnableRule"):
        deployed.refuse(operation, "ResourceInUseException")
    told = desk.fails("resume", "--name", deployed.name, exit_code=1)
    assert "it is safe to run the command again" in told


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("verb", ["pause", "redrive"])
def test_where_nothing_is_deployed_it_says_so(desk: Desk, verb: str) -> None:
    told = desk.fails(verb, "--name", "nobody", exit_code=1)
    assert "no stack S3CommitPipeline-nobody" in told
    assert "deploy again" in told


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("", "its function fails"),
        ("ThrottlingException", "not allowed (ThrottlingException)"),
        ("AccessDenied", None),
    ],
)
def test_dead_letters_stay_until_their_function_works_as_far_as_the_caller_may_try(
    desk: Desk, deployed: Account, code: str, why: str | None
) -> None:
    queue = f"{deployed.name}-dead"
    deployed.client("sqs").send_message(QueueUrl=queue, MessageBody="x")
    unhandled = {"FunctionError": "Unhandled", "Payload": io.BytesIO(b"{}")}
    deployed.answers = {"StartMessageMoveTask": {}, "Invoke": unhandled}
    if code:
        deployed.refuse("Invoke", code)
    told = desk.json("redrive", "--name", deployed.name, exit_code=3 if why else 0)
    (row,) = told["queues"]
    moved = deployed.calls.count("StartMessageMoveTask")
    assert (row["deadLetters"], row["moved"], moved) == (1, why is None, int(why is None))
    assert (why or "") in (row["why"] or "")


def test_a_queue_that_the_deployment_has_not_is_said(desk: Desk, deployed: Account) -> None:
    told = desk.fails("redrive", "--name", deployed.name, "request", "catalogs", exit_code=1)
    assert f"S3CommitPipeline-{deployed.name} has no queue Catalogs; it has Request (" in told


def test_the_outputs_name_all_that_calls_the_functions() -> None:
    template = synthesize().pipeline
    resources = template["Resources"]
    named = {
        output: resources[template["Outputs"][output]["Value"]["Ref"]]["Type"]
        for output in (*MAPPINGS, env.SWEEP_RULE_OUTPUT)
    }
    calling = ("AWS::Lambda::EventSourceMapping", "AWS::Events::Rule")
    assert sorted(named.values()) == sorted(
        one["Type"] for one in resources.values() if one["Type"] in calling
    )
