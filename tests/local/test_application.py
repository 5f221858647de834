"""Any deployment of the real app starts in the embedded runtime; tests/e2e run jobs on one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from s3commit.local import UnsupportedTemplateError
from s3commit.local.assembly import load_assembly
from s3commit.local.loader import check
from tests.stacks.synthesized import IMPORTED, KEY_ARN, OPERATOR, synthesize

PROJECT = Path(__file__).parents[2]
START = """
import sys
from pathlib import Path
from s3commit.local.server import LocalRuntime
with LocalRuntime(Path(sys.argv[1]), warm=False) as runtime:
    print(runtime.bucket)
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
    done = subprocess.run(
        [sys.executable, "-c", START, str(deployment.directory)],
        env=os.environ | {"PYTHONPATH": str(PROJECT / "layers/s3commit/python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("named-lake\n", 0), done.stderr


def test_an_imported_bucket_is_refused_in_one_line() -> None:
    """Its notifications are set by a function of the CDK's own, which does not run here."""
    imported = synthesize(**IMPORTED)
    with pytest.raises(UnsupportedTemplateError, match="Custom::S3BucketNotifications"):
        check(load_assembly(imported.directory))
