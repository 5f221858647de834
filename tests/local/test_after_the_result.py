"""On the real template: what fails after the result does not fail the execution of the job."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from stacks.definition import STEPS
from tests.local.programs import run
from tests.stacks.synthesized import synthesize

# From the result on EventBridge refuses each event, and S3 to list the open uploads.
PROGRAM = """
ended, refused = threading.Event(), set()

def around(application):
    def answer(environ, start_response):
        method, path, query = (environ[name] for name in
            ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING"))
        if method == "PUT" and path.endswith("/_result.json"):
            ended.set()
        is_event = environ.get("HTTP_X_AMZ_TARGET", "").endswith(".PutEvents")
        if ended.is_set() and (is_event or "uploads" in query):
            refused.add("event" if is_event else "uploads")
            return refuse(start_response, "403 Forbidden", "AccessDenied")
        return application(environ, start_response)
    return answer

with LocalRuntime(Path(sys.argv[1]), middleware=around) as runtime:
    os.environ.update(runtime.environment())
    import s3commit
    with s3commit.open_job(f"s3://{runtime.bucket}/t/") as job:
        with job.task("0") as task, task.open("a.csv") as file:
            file.write(b"1,2")
        result = job.commit([task.counted], timeout=120)
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
    assert json.loads(run(PROGRAM, assembly)) == {
        "outcome": "COMMITTED",
        "status": "SUCCEEDED",
        "refused": ["event", "uploads"],
    }
