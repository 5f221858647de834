"""Functions run in workers of their own, as Lambda runs them."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from s3commit.local.packages import link_runtime
from s3commit.local.worker import Worker
from tests.local.conftest import Local


def test_a_function_gets_its_event_and_its_context(local: Local) -> None:
    answer = local.invoke("Probe", {"do": "describe"})
    seen = answer["Result"]
    assert "FunctionError" not in answer
    assert seen["name"] == local.output("Probe")
    assert seen["arn"].endswith(":function:" + local.output("Probe"))
    assert 55_000 < seen["remaining"] <= 60_000


def test_a_worker_is_used_again(local: Local) -> None:
    first = local.invoke("Probe", {"do": "describe"})["Result"]
    second = local.invoke("Probe", {"do": "describe"})["Result"]
    assert first["pid"] == second["pid"]
    assert first["request"] != second["request"]


def test_a_worker_has_the_environment_of_its_function_and_none_of_ours(
    local: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "somebody")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    local.invoke("Slow", {"do": "exit", "status": 1})  # a new worker follows
    seen = local.invoke("Slow", {"do": "describe"})["Result"]["environment"]
    assert seen["TABLE"] == local.runtime.table
    assert seen["AWS_ENDPOINT_URL"] == local.runtime.endpoint
    assert seen["AWS_REGION"] == local.runtime.region
    assert "AWS_PROFILE" not in seen
    assert "PYTHONPATH" not in seen


def test_a_worker_signs_with_credentials_of_its_own(local: Local) -> None:
    seen = local.invoke("Probe", {"do": "describe"})["Result"]
    owner = {worker.id: worker.spec for worker in local.runtime.workers()}
    assert owner[seen["environment"]["AWS_ACCESS_KEY_ID"]].name == seen["name"]


def test_whoever_waits_for_a_worker_is_told_that_it_is_ready(local: Local, tmp_path: Path) -> None:
    local.invoke("Probe", {"do": "describe"})
    [probe, *_] = [one for one in local.runtime.workers() if one.spec.name == local.output("Probe")]
    worker = Worker(probe.spec, link_runtime(tmp_path), {})
    try:
        with ThreadPoolExecutor(4) as threads:
            waiting = [threads.submit(worker.wait_ready) for _ in range(4)]
            assert [one.result(30) for one in waiting] == [True] * 4
    finally:
        worker.close()


def test_a_worker_sees_its_code_and_layers_and_no_package_of_ours(local: Local) -> None:
    layer = local.invoke("Probe", {"do": "import", "name": "from_layer"})["Result"]["file"]
    assert "/packages/" in layer
    for name in ("boto3", "s3commit", "moto", "pytest"):
        answer = local.invoke("Probe", {"do": "import", "name": name})
        assert answer["Result"]["errorType"] == "ModuleNotFoundError", name
    path = local.invoke("Probe", {"do": "describe"})["Result"]["path"]
    assert not [entry for entry in path if "site-packages" in entry]


def test_an_exception_is_handed_on_with_its_class_name(local: Local) -> None:
    answer = local.invoke("Probe", {"do": "raise", "message": "no luck"})
    assert answer["FunctionError"] == "Unhandled"
    assert answer["Result"]["errorType"] == "TransientError"
    assert answer["Result"]["errorMessage"] == "no luck"
    assert "probe.py" in "".join(answer["Result"]["stackTrace"])


def test_a_function_that_takes_too_long_is_killed(local: Local) -> None:
    answer = local.invoke("Slow", {"do": "sleep", "seconds": 30})
    assert answer["FunctionError"] == "Unhandled"
    assert answer["Result"]["errorType"] == "Sandbox.Timedout"
    assert "timed out after 1.00 seconds" in answer["Result"]["errorMessage"]
    assert local.invoke("Slow", {"do": "echo"})["Result"] == {"echo": {"do": "echo"}}


def test_a_function_whose_process_ends_has_failed(local: Local) -> None:
    answer = local.invoke("Slow", {"do": "exit", "status": 3})
    assert answer["Result"]["errorType"] == "Runtime.ExitError"
    assert answer["Result"]["errorMessage"].endswith("exit status 3")
    assert "FunctionError" not in local.invoke("Slow", {"do": "echo"})


def test_a_module_that_does_not_import_is_the_error_of_the_call(local: Local) -> None:
    answer = local.invoke("Broken", {})
    assert answer["FunctionError"] == "Unhandled"
    assert answer["Result"]["errorType"] == "RuntimeError"
    assert answer["Result"]["errorMessage"] == "broken on import"


def test_errors_of_a_function_go_to_stderr(
    local: Local, capsys: pytest.CaptureFixture[str]
) -> None:
    local.invoke("Probe", {"do": "log"})
    local.invoke("Probe", {"do": "echo"})
    shown = capsys.readouterr().err
    assert shown.count("an error line") == 1
    assert "an info line" not in shown


def test_calls_at_one_time_run_in_different_workers(local: Local) -> None:
    with ThreadPoolExecutor(2) as pool:
        long = pool.submit(local.invoke, "Probe", {"do": "sleep", "seconds": 1})
        pids = set()
        while not long.done():
            pids.add(local.invoke("Probe", {"do": "describe"})["Result"]["pid"])
    assert "FunctionError" not in long.result()
    assert pids
    assert os.getpid() not in pids


@pytest.mark.parametrize("kind", ["Event", "DryRun"])
def test_a_call_that_is_not_waited_for_is_refused(local: Local, kind: str) -> None:
    with pytest.raises(ClientError, match=f"the invocation type {kind} is not known here"):
        local.invoke("Probe", {"do": "raise", "message": "unheard"}, InvocationType=kind)
    assert not local.calls.of("unheard")


def test_code_is_unpacked_once(local: Local) -> None:
    files = [
        Path(local.invoke(name, {"do": "import", "name": "probe"})["Result"]["file"])
        for name in ("Probe", "Slow")
    ]
    assert files[0] == files[1]
