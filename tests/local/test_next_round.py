"""One unit of a small job fails on the real template: the Map Run completes what is left."""

from __future__ import annotations

import json

from tests.local.programs import run
from tests.stacks.synthesized import synthesize

FILES = 40  # three units
# One worker does not find its page of the plan: no retry of a request or of a worker mends that, so
# the child fails, and the Map with it.
PROGRAM = (
    f"FILES = {FILES}"
    + """
seen, decided, refused, lock = [], [], [], threading.Lock()

def around(application):
    def answer(environ, start_response):
        method, path, query = (environ[name] for name in
            ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING"))
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
    os.environ.update(runtime.environment())
    import s3commit
    with s3commit.open_job(f"s3://{runtime.bucket}/t/") as job:
        with job.task("0") as task:
            for number in range(FILES):
                with task.open(f"part-{number:02}.csv") as file:
                    file.write(b"1,2")
        files = job.commit([task.counted], timeout=120).files
    machine = runtime.client("stepfunctions")
    [execution] = machine.list_executions(stateMachineArn=runtime.state_machine_arn)["executions"]
    events = machine.get_execution_history(executionArn=execution["executionArn"])["events"]
    entered = [one["stateEnteredEventDetails"]["name"] for one in events
               if "stateEnteredEventDetails" in one]
    maps = [name for name in entered if name in ("CompleteFew", "CompleteUploads")]
    print(json.dumps({"files": files, "seen": seen, "refused": len(refused), "maps": maps}))
"""
)


def test_i2_the_round_after_a_failed_unit_completes_what_is_left() -> None:
    report = json.loads(run(PROGRAM, synthesize().directory))
    assert (report["files"], report["refused"]) == (FILES, 1)
    assert report["maps"] == ["CompleteFew", "CompleteUploads"]
    asked = [int(name.split("-")[1].removesuffix(".csv")) for _, name in report["seen"]]
    again = {number for number in asked if asked.count(number) > 1}
    assert 0 < len(again) < FILES  # those of the units that did not fail
    assert set(asked) == set(range(FILES))
