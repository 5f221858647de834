"""The real app in the embedded runtime: any deployment of it starts, and jobs meet what AWS may do.

tests/e2e run jobs on one deployment, as a program of its own.
"""

import json
import re
import shutil
from pathlib import Path

import pytest

from s3commit.local import UnsupportedTemplateError
from s3commit.local.assembly import load_assembly
from s3commit.local.loader import check
from stacks.definition import STEPS
from tests.local.programs import run
from tests.stacks.synthesized import IMPORTED, KEY_ARN, OPERATOR, synthesize

START = """
with LocalRuntime(Path(sys.argv[1])) as runtime:
    print(runtime.bucket)
"""

COMMIT = """
with LocalRuntime(Path(sys.argv[1])) as runtime:
    print(commit(runtime, "a b+c/ü=1%2F").outcome)
"""


def test_every_parameter_of_a_deployment_gives_a_template_that_runs() -> None:
    deployment = synthesize(
        bucketName="named-lake",
        kmsKeyArn=KEY_ARN,
        accessLogsBucket="logs",
        versioned="true",
        protectNames="all",
        operators=OPERATOR,
        alarmEmail="oncall@example.com",
        replacePrefixes="a/,b/",
        sweepMinutes=61,
    )
    assert run(START, deployment.directory) == "named-lake\n"


def test_a_job_is_committed_whose_events_eventbridge_brings() -> None:
    """With names that a notification would encode; and the writer finds the pipeline first."""
    assert run(COMMIT, synthesize(events="eventbridge").directory) == "COMMITTED\n"


def test_an_imported_bucket_is_refused_in_one_line() -> None:
    """Its notifications are set by a function of the CDK's own, which does not run here."""
    imported = synthesize(**IMPORTED)
    with pytest.raises(UnsupportedTemplateError, match="Custom::S3BucketNotifications"):
        check(load_assembly(imported.directory))


# From the result on EventBridge refuses each event, and S3 to list the open uploads.
AFTER_THE_RESULT = """
ended, refused = threading.Event(), set()

def around(application):
    def answer(environ, start_response):
        method, path, query = request(environ)
        if method == "PUT" and path.endswith("/_result.json"):
            ended.set()
        is_event = environ.get("HTTP_X_AMZ_TARGET", "").endswith(".PutEvents")
        if ended.is_set() and (is_event or "uploads" in query):
            refused.add("event" if is_event else "uploads")
            return refuse(start_response, "403 Forbidden", "AccessDenied")
        return application(environ, start_response)
    return answer

with LocalRuntime(Path(sys.argv[1]), middleware=around) as runtime:
    result = commit(runtime)
    machine = runtime.client("stepfunctions")
    while True:
        found = machine.describe_execution(executionArn=result.execution)["status"]
        if found != "RUNNING":
            break
        time.sleep(0.1)
    print(json.dumps({"outcome": result.outcome, "status": found, "refused": sorted(refused)}))
"""


def test_what_fails_after_the_result_fails_no_execution(tmp_path: Path) -> None:
    assembly = shutil.copytree(synthesize().directory, tmp_path / "assembly", symlinks=True)
    template = assembly / "S3CommitPipeline.template.json"
    # A step and the event are tried once more, and not for minutes, as on AWS.
    text, patient = re.subn(r'(\\"MaxAttempts\\": )1[02]\b', r"\g<1>1", template.read_text())
    assert patient == len(STEPS) + 1
    template.write_text(text)
    assert json.loads(run(AFTER_THE_RESULT, assembly)) == {
        "outcome": "COMMITTED",
        "status": "SUCCEEDED",
        "refused": ["event", "uploads"],
    }


FILES = 40  # three units
# One worker does not find its page of the plan: no retry of a request or of a worker mends that, so
# the child fails, and the Map with it.
FAILED_UNIT = (
    f"FILES = {FILES}"
    + """
seen, decided, refused, lock = [], [], [], threading.Lock()

def around(application):
    def answer(environ, start_response):
        method, path, query = request(environ)
        is_completion = method == "POST" and "uploadId=" in query
        with lock:
            if is_completion or (method == "HEAD" and "/part-" in path):
                seen.append([method, path.rpartition("/")[2]])
            if method == "PUT" and path.endswith("/_decision.json"):
                decided.append(path)
            if method == "GET" and "/_pages/" in path and decided and not refused:
                refused.append(path)
                return refuse(start_response, "404 Not Found", "NoSuchKey")
        return application(environ, start_response)
    return answer

with LocalRuntime(Path(sys.argv[1]), middleware=around) as runtime:
    result = commit(runtime, files=FILES)
    entered = events_of(runtime, result.execution, "stateEnteredEventDetails")
    maps = [one["name"] for one in entered if one["name"] in ("CompleteFew", "CompleteUploads")]
    print(json.dumps({"files": result.files, "seen": seen, "refused": len(refused), "maps": maps}))
"""
)


def test_i2_the_round_after_a_failed_unit_completes_what_is_left() -> None:
    report = json.loads(run(FAILED_UNIT, synthesize().directory))
    assert (report["files"], report["refused"]) == (FILES, 1)
    assert report["maps"] == ["CompleteFew", "CompleteUploads"]
    asked = [int(name.split("-")[1].removesuffix(".csv")) for _, name in report["seen"]]
    again = {number for number in asked if asked.count(number) > 1}
    assert 0 < len(again) < FILES  # those of the units that did not fail
    assert set(asked) == set(range(FILES))


# The first two calls of each function of the machine are answered as Lambda answers for one that is
# inactive, and then pending: https://docs.aws.amazon.com/lambda/latest/dg/functions-states.html
RESTED = """
answers = {}

def around(application):
    def answer(environ, start_response):
        name = environ["PATH_INFO"].removeprefix("/2015-03-31/functions/")
        waking = answers.get(name.removesuffix("/invocations"))
        if waking:
            code = waking.pop()
            headers = [("x-amzn-errortype", code), ("x-amzn-requestid", "1")]
            start_response("502 Bad Gateway", headers)
            return [json.dumps({"Message": "The function is not ready"}).encode()]
        return application(environ, start_response)
    return answer

with LocalRuntime(Path(sys.argv[1]), middleware=around) as runtime:
    for function in runtime.client("lambda").list_functions()["Functions"]:
        does = function["Handler"].removesuffix(".handler")
        if does in ("decide", "complete", "end"):
            waking = answers[does] = ["ResourceConflictException", "ResourceNotReadyException"]
            answers[function["FunctionName"]] = answers[function["FunctionArn"]] = waking
    result = commit(runtime)
    machine = runtime.client("stepfunctions")
    found = machine.list_executions(stateMachineArn=runtime.state_machine_arn)["executions"]
    failures = events_of(runtime, result.execution, "taskFailedEventDetails")
    left = [len(answers[name]) for name in ("decide", "complete", "end")]
    print(json.dumps({"outcome": result.outcome, "executions": len(found),
                      "failed": [one["error"] for one in failures], "left": left}))
"""


def test_a_pipeline_that_rested_commits_its_first_job_by_itself() -> None:
    report = json.loads(run(RESTED, synthesize().directory))
    waking = ["Lambda.ResourceNotReadyException", "Lambda.ResourceConflictException"]
    # No sweep has started another execution.
    assert report == {
        "outcome": "COMMITTED",
        "executions": 1,
        "failed": waking * 3,
        "left": [0] * 3,
    }
