"""The runtime as a program that leaves nothing behind, and its functions in workers."""

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPCookieProcessor, build_opener, urlopen

import pytest

from s3commit.local import REGION, LocalRuntimeError
from s3commit.local.foreground import read_running
from s3commit.local.runtime import LocalRuntime
from s3commit.local.serving import Endpoint
from tests.e2e.conftest import Deployed
from tests.local.conftest import Local
from tests.local.programs import environment
from tests.servers import read_line, until

PROGRAM = """
import sys
from functools import partial
from pathlib import Path
from s3commit.cli.ui import page_beside
from s3commit.local.foreground import run_foreground
beside = partial(page_beside, 0)
project = Path(sys.argv[3])
run_foreground(
    Path(sys.argv[1]), 0, sys.argv[2], versioned=True, project=project, beside=beside
)
"""


@pytest.fixture
def program(assembly: Path, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(assembly), "my-bucket", str(tmp_path)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def ready(process: subprocess.Popen[str]) -> Deployed:
    return Deployed(**json.loads(read_line(process)))


def invoke(deployed: Deployed) -> int:
    """Call a function and return its worker's process id."""
    functions = deployed.client("lambda")
    names = [one["FunctionName"] for one in functions.list_functions()["Functions"]]
    (name,) = [name for name in names if name.endswith("Probe")]
    answer = functions.invoke(FunctionName=name, Payload='{"do":"describe"}')
    return int(json.load(answer["Payload"])["pid"])


def is_forgotten(project: Path) -> bool:
    with suppress(LocalRuntimeError):
        return not read_running(project)
    return True


def is_gone(pid: int) -> bool:
    """Also if it has ended, and whoever inherited it has yet to reap it."""
    with suppress(FileNotFoundError):
        stat = Path(f"/proc/{pid}/stat").read_text()
        return stat.rsplit(")", 1)[1].split()[0] == "Z"
    return True


def test_it_and_its_page_are_found_until_it_ends(
    program: subprocess.Popen[str], tmp_path: Path
) -> None:
    """Even if it is killed: then its workers end too."""
    deployed = ready(program)
    worker = invoke(deployed)
    found = read_running(tmp_path)
    assert found["AWS_ENDPOINT_URL"] == deployed.endpoint
    assert (found["S3COMMIT_TABLE"], found["BUCKET"]) == (deployed.table, "my-bucket")
    assert found["S3COMMIT_STATE_MACHINE"] == deployed.stateMachine
    versioning = deployed.client("s3").get_bucket_versioning(Bucket="my-bucket")
    assert versioning["Status"] == "Enabled"  # as it was asked to
    assert program.stderr is not None
    address = next(line for line in program.stderr if "browser" in line).split(": ")[-1].strip()
    job = f"s3://{deployed.bucket}/sales/__magic_job-{uuid.uuid4()}/"
    with pytest.raises(HTTPError) as told:
        looking = build_opener(HTTPCookieProcessor(CookieJar()))
        looking.open(address.replace("/?", f"/job?job={job}&"), timeout=30)
    assert told.value.code == 404
    assert ": check the ID and the destination" in told.value.read().decode()
    with pytest.raises(HTTPError, match="403"):
        urlopen(address.partition("?")[0], timeout=30)
    program.kill()
    program.wait(30)
    until(lambda: is_gone(worker), "its end")
    # Its workers have inherited the lock, and end a moment later.
    until(lambda: is_forgotten(tmp_path), "that none is found")


def test_a_call_that_runs_does_not_hold_up_the_end(program: subprocess.Popen[str]) -> None:
    deployed = ready(program)
    worker = invoke(deployed)
    event = '{"do":"sleep","seconds":50}'
    machines = deployed.client("stepfunctions")
    machines.start_execution(stateMachineArn=deployed.stateMachine, input=event)
    program.send_signal(signal.SIGINT)
    _, err = program.communicate(timeout=30)
    assert program.returncode == 0
    # The lines for people, and no trace.
    assert all(line.startswith("s3commit: ") for line in err.splitlines())
    until(lambda: is_gone(worker), "its end")


def test_two_at_a_time_or_on_one_port_are_refused(local: Local, assembly: Path) -> None:
    with (
        pytest.raises(LocalRuntimeError, match="running in this process already"),
        LocalRuntime(assembly),
    ):
        pass
    assert json.loads(local.runtime.ready_line())["table"] == local.runtime.table
    port = int(local.runtime.endpoint.rsplit(":", 1)[1])
    with pytest.raises(LocalRuntimeError, match=f"^port {port} can't be used: Address already in"):
        Endpoint(port)


def test_a_key_and_names_of_metadata_arrive_as_they_were_sent(local: Local, key: str) -> None:
    odd, metadata = f"{key}/a b+c%2Fd//e=é&?#", {"run_id": "7", "who": "me", "a-b_c": "d"}
    local.s3.put_object(Bucket=local.bucket, Key=odd, Body=b"", Metadata=metadata)
    listed = local.s3.list_objects_v2(Bucket=local.bucket, Prefix=key)["Contents"]
    assert [found["Key"] for found in listed] == [odd]
    assert local.s3.head_object(Bucket=local.bucket, Key=odd)["Metadata"] == metadata


def test_a_connection_is_kept(local: Local) -> None:
    with closing(HTTPConnection(urlsplit(local.runtime.endpoint).netloc)) as connection:
        used = []
        for _ in range(2):
            connection.request("GET", f"/{local.bucket}?list-type=2")
            assert connection.getresponse().read()
            used.append(connection.sock)
    assert used[0] is used[1] is not None


# Functions run in workers of their own, as Lambda runs them


def test_a_worker_has_its_own_environment(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_no_call_meets_a_worker_that_has_died_at_rest(local: Local) -> None:
    died = local.invoke("Probe", {"do": "describe"})["Result"]["pid"]
    os.kill(died, signal.SIGKILL)
    os.waitid(os.P_PID, died, os.WEXITED | os.WNOWAIT)
    assert local.invoke("Probe", {"do": "describe"})["Result"]["pid"] != died


def test_a_module_that_does_not_import_is_the_error_of_the_call(local: Local) -> None:
    answer = local.invoke("Broken", {})
    assert answer["FunctionError"] == "Unhandled"
    assert answer["Result"]["errorType"] == "RuntimeError"
    assert answer["Result"]["errorMessage"] == "broken on import"


def test_a_functions_errors_go_to_stderr(local: Local, capsys: pytest.CaptureFixture[str]) -> None:
    local.invoke("Probe", {"do": "log"})
    local.invoke("Probe", {"do": "echo"})
    shown = capsys.readouterr().err
    assert shown.count("an error line") == 1
    assert "an info line" not in shown
