"""Functions run in workers of their own, as Lambda runs them."""

from __future__ import annotations

import pytest

from s3commit.local import REGION
from tests.local.conftest import Local


def test_a_worker_has_the_environment_of_its_function_and_none_of_ours(
    local: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "somebody")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    local.invoke("Slow", {"do": "exit", "status": 1})  # a new worker follows
    seen = local.invoke("Slow", {"do": "describe"})["Result"]["environment"]
    assert seen["TABLE"] == local.runtime.table
    assert seen["AWS_ENDPOINT_URL"] == local.runtime.endpoint
    assert seen["AWS_REGION"] == REGION
    assert "AWS_PROFILE" not in seen
    assert "PYTHONPATH" not in seen


def test_a_worker_sees_its_code_and_layers_and_no_package_of_ours(local: Local) -> None:
    layer = local.invoke("Probe", {"do": "import", "name": "from_layer"})["Result"]["file"]
    assert "/asset.1a7e5/" in layer
    for name in ("boto3", "s3commit", "moto", "pytest"):
        answer = local.invoke("Probe", {"do": "import", "name": name})
        assert answer["Result"]["errorType"] == "ModuleNotFoundError", name
    path = local.invoke("Probe", {"do": "describe"})["Result"]["path"]
    assert not [entry for entry in path if "site-packages" in entry]


def test_a_function_that_takes_too_long_is_killed(local: Local) -> None:
    answer = local.invoke("Slow", {"do": "sleep", "seconds": 30})
    assert answer["FunctionError"] == "Unhandled"
    assert answer["Result"]["errorType"] == "Sandbox.Timedout"
    assert "timed out after 1.00 seconds" in answer["Result"]["errorMessage"]
    assert local.invoke("Slow", {"do": "echo"})["Result"] == {"echo": {"do": "echo"}}


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
