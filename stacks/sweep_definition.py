"""The state machine of the sweep: each step again and again, until it is through.

A pure function, as `stacks.definition` has one. A step that fails for good does not keep the next
one from its work; the execution then fails at its end.
"""

from __future__ import annotations

from collections.abc import Mapping

from stacks.definition import RETRIES, State, either, invoke

# In their order, each with the function that carries it out.
STEPS: dict[str, str] = {
    "LookAtOpenJobs": "sweep_jobs",
    "GoOnWithStuckJobs": "sweep_jobs",
    "AbortOrphanedUploads": "sweep_uploads",
    "TidyJobDirectories": "sweep_directories",
}
REPORT = "ReportSweep"
REPORT_FUNCTION = "sweep_jobs"

# Each step has six calls of ten minutes (`CALLS_A_PASS`, `CALL_SECONDS`): four hours, and as much
# again for repetitions. What is left then the next sweep comes to, which goes on from there.
EXECUTION_HOURS = 12


def _call(name: str, function_arn: str, bucket: str, limits: Mapping[str, int]) -> State:
    payload = {"sweep.$": "$", "bucket": bucket, "limits": dict(limits)}
    return {**invoke(function_arn, name, payload), "Retry": RETRIES}


def sweep_definition(functions: Mapping[str, str], bucket: str, limits: Mapping[str, int]) -> State:
    """The whole machine. ``functions`` maps a function's name to its ARN.

    ``limits`` are the deployment's parameters by their names.
    """
    states: dict[str, State] = {}
    following = [*list(STEPS)[1:], REPORT]
    for (step, name), after in zip(STEPS.items(), following, strict=True):
        more = f"More{step}"
        states[step] = {
            **_call(name, functions[name], bucket, limits),
            "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": after}],
            "Next": more,
        }
        states[more] = either("$.more", step, after)
    states[REPORT] = {
        **_call(REPORT_FUNCTION, functions[REPORT_FUNCTION], bucket, limits),
        "Next": "AllSwept",
    }
    states["AllSwept"] = either("$.broken", "SweepIncomplete", "Swept")
    states["Swept"] = {"Type": "Succeed"}
    states["SweepIncomplete"] = {
        "Type": "Fail",
        "Error": "SweepIncomplete",
        "Cause": "A step failed for good: it stands red above. The next sweep begins anew.",
    }
    return {
        "Comment": "s3commit: what jobs have left behind",
        "StartAt": next(iter(STEPS)),
        "TimeoutSeconds": EXECUTION_HOURS * 3600,
        "States": states,
    }
