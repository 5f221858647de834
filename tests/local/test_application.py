"""The real app in the embedded runtime: any deployment of it starts, and jobs meet what AWS may do.

tests/e2e run jobs on one deployment, as a program of its own.
"""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from s3commit.core.calls.routes import ENDS, STEPS
from s3commit.local import UnsupportedTemplateError
from s3commit.local.assembly import load_assembly
from s3commit.local.loader import check
from tests.local.programs import RUNTIME, environment, run
from tests.servers import ran
from tests.stacks.synthesized import IMPORTED, KEY_ARN, OPERATOR, synthesize

START = """
with LocalRuntime(Path(sys.argv[1])) as runtime:
    print(runtime.bucket)
"""

KILLED = """
LocalRuntime(Path(sys.argv[1])).__enter__()
os.kill(os.getpid(), 9)
"""

BESIDE = f"""
import subprocess, tempfile
another = [sys.executable, "-c", {RUNTIME + START!r}, sys.argv[1]]
with LocalRuntime(Path(sys.argv[1])):
    subprocess.run(another, check=True, stdout=subprocess.DEVNULL)
    print(len(list(Path(tempfile.gettempdir()).glob("s3commit-local-*"))))
"""

COMMIT = """
from s3commit.aws.function_logs import read_logs
from s3commit.core.model.errors import JobFailedError

with LocalRuntime(Path(sys.argv[1])) as runtime:
    result = commit(runtime, "sales/a b+c/ü=1%2F")
    lines, complete = read_logs(runtime.client("logs"), "S3CommitPipeline-", result.job_id, 0)
    items = runtime.client("dynamodb").scan(TableName=runtime.table)["Items"]
    (by,) = [one["requested_by"]["S"] for one in items if one["pk"]["S"].startswith("JOB#")]
    print(result.files, "SealJob" in {line["step"] for line in lines}, complete, by)
    try:
        commit(runtime, "sales-2")
    except JobFailedError as error:
        print(error.code)
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
    """With names that a notification would encode; the writer finds the pipeline first.

    What the functions log of it is found by its id, and the ledger knows who requested it. One
    outside the prefixes is refused; nobody enforces rights here.
    """
    said = run(COMMIT, synthesize(events="eventbridge", prefixes="sales/").directory)
    assert said == "1 True True 123456789012\nOUTSIDE_PREFIXES\n"


def test_what_a_killed_runtime_leaves_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assembly = synthesize().directory
    killed = ran(sys.executable, "-c", RUNTIME + KILLED, assembly, env=environment())
    assert (killed.returncode, len(list(tmp_path.glob("s3commit-local-*")))) == (-9, 1)
    assert run(BESIDE, assembly) == "1\n", "its own"
    assert list(tmp_path.glob("s3commit-local-*")) == []


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
    key = f"t/__magic_job-{commit(runtime).job_id}/_result.json"
    body = runtime.client("s3").get_object(Bucket=runtime.bucket, Key=key)["Body"]
    result, machine = json.load(body), runtime.client("stepfunctions")
    while True:
        found = machine.describe_execution(executionArn=result["execution"])["status"]
        if found != "RUNNING":
            break
        time.sleep(0.1)
    print(json.dumps({"outcome": result["outcome"], "status": found, "refused": sorted(refused)}))
"""


def test_what_fails_after_the_result_fails_no_execution(tmp_path: Path) -> None:
    assembly = shutil.copytree(synthesize().directory, tmp_path / "assembly", symlinks=True)
    template = assembly / "S3CommitPipeline.template.json"
    # A step and the event are tried once more, and not for minutes, as on AWS.
    text, patient = re.subn(r'(\\"MaxAttempts\\": )1[02]\b', r"\g<1>1", template.read_text())
    assert patient == len(STEPS) + len(ENDS)
    template.write_text(text)
    assert json.loads(run(AFTER_THE_RESULT, assembly)) == {
        "outcome": "COMMITTED",
        "status": "SUCCEEDED",
        "refused": ["event", "uploads"],
    }
