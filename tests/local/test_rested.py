"""On the real template: the functions have rested, and the calls that wake them fail."""

from __future__ import annotations

import json

from tests.local.programs import run
from tests.stacks.synthesized import synthesize

# The first two calls of each function of the machine are answered as Lambda answers for one that is
# inactive, and then pending: https://docs.aws.amazon.com/lambda/latest/dg/functions-states.html
PROGRAM = """
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
    os.environ.update(runtime.environment())
    for function in runtime.client("lambda").list_functions()["Functions"]:
        does = function["Handler"].removesuffix(".handler")
        if does in ("decide", "complete", "end"):
            waking = answers[does] = ["ResourceConflictException", "ResourceNotReadyException"]
            answers[function["FunctionName"]] = answers[function["FunctionArn"]] = waking
    import s3commit
    with s3commit.open_job(f"s3://{runtime.bucket}/t/") as job:
        with job.task("0") as task, task.open("a.csv") as file:
            file.write(b"1,2")
        result = job.commit([task.counted], timeout=90)
    machine = runtime.client("stepfunctions")
    found = machine.list_executions(stateMachineArn=runtime.state_machine_arn)["executions"]
    events = machine.get_execution_history(executionArn=result.execution)["events"]
    failed = [one["taskFailedEventDetails"]["error"] for one in events
              if "taskFailedEventDetails" in one]
    left = [len(answers[name]) for name in ("decide", "complete", "end")]
    print(json.dumps({"outcome": result.outcome, "executions": len(found), "failed": failed,
                      "left": left}))
"""


def test_a_pipeline_that_rested_commits_its_first_job_by_itself() -> None:
    report = json.loads(run(PROGRAM, synthesize().directory))
    waking = ["Lambda.ResourceNotReadyException", "Lambda.ResourceConflictException"]
    # No sweep has started another execution.
    assert report == {
        "outcome": "COMMITTED",
        "executions": 1,
        "failed": waking * 3,
        "left": [0] * 3,
    }
