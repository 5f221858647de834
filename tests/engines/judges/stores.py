"""The suite of assumptions on versitygw, an S3 server that shares no code with the others.

`differences.json` has what it does otherwise, with the reason: each of these tests has to fail so
still, and no other may.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from xml.etree import ElementTree

from stacks.layers import ROOT
from tests.engines.judges.tools import HERE, go, wait_for
from tests.engines.suites.report import Results, Suite, problems
from tests.servers import NO_NETWORK, REGION, free_ports

SERVER = "github.com/versity/versitygw/cmd/versitygw"
VERSION = "v1.8.0"
TESTS = 93  # at least


def judge() -> tuple[str, list[str]]:
    """How many tests ran, and each that ended otherwise than it should."""
    program = go(SERVER, VERSION)
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as directory:
        for name in ("data", "versions"):
            Path(directory, name).mkdir()
        command = [str(program), "--port", f"127.0.0.1:{port}", "--quiet"]
        command += ["--access", NO_NETWORK["AWS_ACCESS_KEY_ID"], "--region", REGION]
        command += ["--secret", NO_NETWORK["AWS_SECRET_ACCESS_KEY"], "posix"]
        command += ["--versioning-dir", f"{directory}/versions", f"{directory}/data"]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            wait_for(port)
            report = Path(directory, "report.xml")
            suite = [sys.executable, "-m", "pytest", "tests/contract", "-p", "no:cacheprovider"]
            suite += [f"--s3=http://127.0.0.1:{port}", f"--junitxml={report}", "--tb=line"]
            subprocess.run(suite, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        finally:
            server.kill()
            server.wait()
        found = read(report)
    known = differences(found)
    wrong = list(problems(Suite("contract", TESTS, both=known), found, own=True))
    return f"versitygw {VERSION}: {len(found)} tests, {len(known)} differ", wrong


def read(report: Path) -> Results:
    """Each test that ran, from a report in JUnit's form."""
    found: dict[str, str | None] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        wrong = case.find("failure") if case.find("error") is None else case.find("error")
        if case.find("skipped") is None:
            why = None if wrong is None else wrong.get("message") or wrong.text or "?"
            found[case.attrib["name"]] = why and " ".join(why.split())
    return found


def differences(found: Collection[str]) -> dict[str, str]:
    """The reason of each test that has to fail; a name without ``[`` is all that has it."""
    reasons: dict[str, list[str]] = json.loads((HERE / "differences.json").read_text())
    known: dict[str, str] = {}
    for reason, names in reasons.items():
        for name in names:
            of_it = [one for one in found if name in (one, one.partition("[")[0])]
            known |= dict.fromkeys(of_it or [name], reason)
    return known
