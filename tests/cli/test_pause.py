"""`s3commit pause` and `s3commit resume` switch what calls the functions, and nothing else."""

import io
import json
import uuid
import zipfile
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from s3commit.aws import env
from tests.cli.support import deploy_stack, run
from tests.conftest import REGION
from tests.stacks.synthesized import synthesize

MAPPINGS = [env.MAPPING_OUTPUTS[inbox] for inbox in env.PAUSED]
TRUST = json.dumps({"Version": "2012-10-17", "Statement": []})


def client(service: str) -> Any:
    return boto3.client(service, region_name=REGION)  # type: ignore[call-overload]


def make_mapping(name: str) -> str:
    """An event source mapping from a queue to a function, and its id."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as zipped:
        zipped.writestr("x.py", "")
    role = client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=TRUST)["Role"]["Arn"]
    client("lambda").create_function(
        FunctionName=name,
        Runtime="python3.13",
        Role=role,
        Handler="x.handler",
        Code={"ZipFile": body.getvalue()},
    )
    client("sqs").create_queue(QueueName=name)
    arn = f"arn:aws:sqs:{REGION}:123456789012:{name}"
    mapping = client("lambda").create_event_source_mapping(FunctionName=name, EventSourceArn=arn)
    return str(mapping["UUID"])


def refuse(patch: pytest.MonkeyPatch, operation: str, code: str) -> None:
    """Have AWS refuse an operation."""
    send = BaseClient._make_api_call  # type: ignore[attr-defined]

    def answer(client: Any, name: str, parameters: Any) -> Any:
        if name == operation:
            status = {"HTTPStatusCode": 400}
            error: Any = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": status}
            raise ClientError(error, name)
        return send(client, name, parameters)

    patch.setattr(BaseClient, "_make_api_call", answer)


@pytest.fixture
def deployed(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, dict[str, str]]:
    """The parameter name of a deployment, and the outputs of its stack."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    monkeypatch.setenv("AWS_REGION", REGION)
    name = f"p{uuid.uuid4().hex[:12]}"
    outputs = {output: make_mapping(f"{name}-{output}") for output in MAPPINGS}
    outputs[env.SWEEP_RULE_OUTPUT] = name
    client("events").put_rule(Name=name, ScheduleExpression="rate(1 hour)")
    deploy_stack(client("cloudformation"), f"{env.PIPELINE_STACK}-{name}", outputs)
    return name, outputs


def states(outputs: dict[str, str]) -> set[str]:
    mappings = (
        client("lambda").get_event_source_mapping(UUID=outputs[output])["State"]
        for output in MAPPINGS
    )
    return {*mappings, client("events").describe_rule(Name=outputs[env.SWEEP_RULE_OUTPUT])["State"]}


def test_all_that_calls_the_functions_is_switched_off_and_on(
    deployed: tuple[str, dict[str, str]],
) -> None:
    name, outputs = deployed
    assert states(outputs) == {"Enabled", "ENABLED"}
    for _again in range(2):
        told = json.loads(run("pause", "--name", name, "--output", "json").stdout)
        assert told == {"deployment": f"S3CommitPipeline-{name}", "state": "paused"}
        assert states(outputs) == {"Disabled", "DISABLED"}
    run("resume", "--name", name)
    assert states(outputs) == {"Enabled", "ENABLED"}


@pytest.mark.parametrize(
    ("operation", "lacking"),
    [("UpdateEventSourceMapping", "IngestMapping, RequestMapping"), ("DisableRule", "SweepRule")],
)
def test_a_right_that_lacks_stops_nothing_else_and_is_not_said_to_change_nothing(
    deployed: tuple[str, dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    operation: str,
    lacking: str,
) -> None:
    name, outputs = deployed
    refuse(monkeypatch, operation, "AccessDeniedException")
    told = run("pause", "--name", name, exit_code=1).stderr
    assert f"not switched: {lacking}. Repeat the command" in told
    assert "nothing was changed" not in told
    assert len(states(outputs) & {"Enabled", "ENABLED"}) == 1


def test_a_change_that_is_under_way_is_to_be_repeated(
    deployed: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for operation in ("UpdateEventSourceMapping", "EnableRule"):
        refuse(monkeypatch, operation, "ResourceInUseException")
    told = run("resume", "--name", deployed[0], exit_code=1).stderr
    assert "it is safe to run the command again" in told


@pytest.mark.parametrize("verb", ["pause", "redrive"])
def test_where_nothing_is_deployed_it_says_so(deployed: object, verb: str) -> None:
    told = run(verb, "--name", "nobody", exit_code=1).output
    assert "no stack S3CommitPipeline-nobody" in told
    assert "deploy again" in told


@pytest.mark.parametrize(
    ("operation", "code", "why"),
    [
        ("", "", "its function fails"),
        ("Invoke", "ThrottlingException", "no (ThrottlingException)"),
        ("Invoke", "AccessDeniedException", None),
    ],
)
def test_dead_letters_stay_until_their_function_works_as_far_as_the_caller_may_try(
    deployed: tuple[str, dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    operation: str,
    code: str,
    why: str | None,
) -> None:
    name, _ = deployed
    url = client("sqs").create_queue(QueueName=f"{name}-dead")["QueueUrl"]
    client("sqs").send_message(QueueUrl=url, MessageBody="x")
    stack, moved = f"{env.PIPELINE_STACK}-{name}", []
    template = client("cloudformation").get_template(StackName=stack)["TemplateBody"]
    template["Outputs"][env.DEAD_LETTERS_OUTPUTS["Request"]] = {"Value": url}
    client("cloudformation").update_stack(StackName=stack, TemplateBody=json.dumps(template))
    send = BaseClient._make_api_call  # type: ignore[attr-defined]

    def answer(asked: Any, called: str, parameters: Any) -> Any:
        if called == "StartMessageMoveTask":
            return moved.append(parameters["SourceArn"])
        if called == "Invoke":
            return {"FunctionError": "Unhandled", "Payload": io.BytesIO(b"{}")}
        return send(asked, called, parameters)

    monkeypatch.setattr(BaseClient, "_make_api_call", answer)
    if operation:
        refuse(monkeypatch, operation, code)
    asked = ("redrive", "--name", name, "--output", "json")
    result = run(*asked, exit_code=3 if why else 0)
    (row,) = json.loads(result.stdout)["queues"]
    assert (row["deadLetters"], row["moved"], len(moved)) == (1, why is None, int(why is None))
    assert (why or "") in (row["why"] or "")


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
