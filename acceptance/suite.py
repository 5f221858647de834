"""The contract suite as a function of Lambda, so that S3 and DynamoDB are tried from there.

This module is the function's handler too: there it is alone with the suite, pytest and s3commit.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import time
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from acceptance.run import Run

MEMORY: Final = 1_769  # MB, which buy a whole processor
SAMPLES: Final = 20
# A NAT gateway closes a connection that was idle for 350:
# https://docs.aws.amazon.com/vpc/latest/userguide/nat-gateway-troubleshooting.html
SECONDS: Final = 340
ROLE_SECONDS: Final = 60  # until a service may assume a new role
_HERE: Final = Path(__file__).parent
_TOOLS: Final = ("pytest", "iniconfig", "packaging", "pluggy", "pygments")
# As pyproject.toml has it for the checkout; the directory of the code can only be read.
_HOW: Final = ("-q", "-p", "no:cacheprovider", "--import-mode=importlib", f"--rootdir={_HERE}")
_SUITE: Final = ("servers.py", "contract", "fakes")


class _Seen:
    """A plugin of pytest: the tests by whether they passed. One that is skipped did not."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.failed: dict[str, str] = {}  # the last line of what pytest says, by the test

    def pytest_collectreport(self, report: Any) -> None:
        """Called by pytest for each file, which it may not be able to read."""
        if report.failed:
            self.failed[report.nodeid] = str(report.longrepr).strip().rpartition("\n")[2]

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Called by pytest for each phase of a test."""
        name = report.nodeid.rpartition("::")[2]
        if report.outcome != "passed":
            self.failed[name] = str(report.longrepr).strip().rpartition("\n")[2]
        elif report.when == "call":
            self.passed.add(name)


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Run the tests that pytest's ``arguments`` choose, or time requests to the ``bucket``."""
    return _tested(**event) if "arguments" in event else _timed(**event)


def _tested(arguments: list[str]) -> dict[str, Any]:
    import pytest  # noqa: PLC0415 - only the function has to have it

    os.chdir(_HERE)
    sys.dont_write_bytecode = True  # the code's directory is read-only
    seen = _Seen()
    code = pytest.main([*_HOW, *arguments], plugins=[seen])
    return {"code": int(code), "passed": sorted(seen.passed), "failed": seen.failed}


def _timed(bucket: str, table: str) -> dict[str, Any]:
    """Seconds of each put of some bytes, and of each PutItem; the first ones connect."""
    import boto3  # noqa: PLC0415 - here and below: what a function imports at its first call

    s3, dynamodb = boto3.client("s3"), boto3.client("dynamodb")
    found: dict[str, list[float]] = {"puts": [], "items": []}
    for number in range(SAMPLES + 1):
        item = {"pk": {"S": "measure"}, "sk": {"S": str(number)}}
        times = [time.perf_counter()]
        s3.put_object(Bucket=bucket, Key=f"put-{number}", Body=b"x")
        times.append(time.perf_counter())
        dynamodb.put_item(TableName=table, Item=item)
        times.append(time.perf_counter())
        found["puts"].append(times[1] - times[0])
        found["items"].append(times[2] - times[1])
    return {name: seconds[1:] for name, seconds in found.items()}


def make_function(run: Run, name: str, role: str) -> None:
    """Make the function; `things.remove` removes it."""
    from botocore.exceptions import ClientError  # noqa: PLC0415

    functions, like = run.clients("lambda"), run.functions["decide"]
    folder = _filled(run.place.home / "suite")
    given = {
        "FunctionName": name,
        "Role": role,
        "Handler": "suite.handler",
        "Code": {"ZipFile": _zipped(folder) if run.place.is_aws else os.fsencode(folder)},
        "Runtime": like["Runtime"],
        "Architectures": like["Architectures"],
        "Layers": [layer["Arn"] for layer in like["Layers"]],
        "Timeout": SECONDS,
        "MemorySize": MEMORY,
    }

    def made() -> Any:
        try:
            return functions.create_function(**given)
        except ClientError as error:
            if "cannot be assumed" in str(error):  # the role is not known everywhere yet
                return None
            raise

    run.until(made, "a function with the run's role", ROLE_SECONDS)
    functions.get_waiter("function_active_v2").wait(FunctionName=name)


def call_function(name: str, **event: Any) -> dict[str, Any]:
    """What the function answers. Raises `BrokenError` if it fails."""
    import boto3  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    from acceptance.places import BrokenError  # noqa: PLC0415

    patient = Config(read_timeout=SECONDS, retries={"total_max_attempts": 1})
    answer = boto3.client("lambda", config=patient).invoke(
        FunctionName=name, Payload=json.dumps(event)
    )
    said: dict[str, Any] = json.loads(answer["Payload"].read())
    if answer.get("FunctionError"):
        raise BrokenError(f"the suite's function failed: {said}")
    return said


def _filled(folder: Path) -> Path:
    """The code of the function."""
    import s3commit  # noqa: PLC0415

    package, tests = Path(s3commit.__file__).parent, _HERE.parent / "tests"
    left_out = shutil.ignore_patterns("__pycache__", "jars", "cli", "local")
    shutil.copytree(package, folder / "s3commit", ignore=left_out)
    for name in _SUITE:
        if (tests / name).is_dir():
            shutil.copytree(tests / name, folder / "tests" / name, ignore=left_out)
        else:
            (folder / "tests").mkdir(exist_ok=True)
            shutil.copy(tests / name, folder / "tests")
    shutil.copy(__file__, folder)
    for tool in map(distribution, _TOOLS):
        for file in tool.files or ():
            if not {"..", "__pycache__"} & {*file.parts}:
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(file.locate()), folder / file)
    return folder


def _zipped(folder: Path) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                entry = zipfile.ZipInfo(str(file.relative_to(folder)))
                entry.external_attr = 0o644 << 16  # whatever the umask: Lambda has to read it
                archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return packed.getvalue()
