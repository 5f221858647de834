"""Any deployment of the real app starts in the embedded runtime; tests/e2e run jobs on one.

That which EventBridge brings its events runs one here.
"""

from __future__ import annotations

import pytest

from s3commit.local import UnsupportedTemplateError
from s3commit.local.assembly import load_assembly
from s3commit.local.loader import check
from tests.local.programs import run
from tests.stacks.synthesized import IMPORTED, KEY_ARN, OPERATOR, synthesize

START = """
with LocalRuntime(Path(sys.argv[1])) as runtime:
    print(runtime.bucket)
"""

COMMIT = """
with LocalRuntime(Path(sys.argv[1])) as runtime:
    os.environ.update(runtime.environment())
    import s3commit
    with s3commit.open_job(f"s3://{runtime.bucket}/a b+c/ü=1%2F/") as job:
        with job.task("0") as task, task.open("a.txt") as file:
            file.write(b"abc")
        print(job.commit([task.counted], timeout=60).outcome)
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
    assert run(START, deployment.directory) == "named-lake\n"


def test_a_job_is_committed_whose_events_eventbridge_brings() -> None:
    """With names that a notification would encode; and the writer finds the pipeline first."""
    assert run(COMMIT, synthesize(events="eventbridge").directory) == "COMMITTED\n"


def test_an_imported_bucket_is_refused_in_one_line() -> None:
    """Its notifications are set by a function of the CDK's own, which does not run here."""
    imported = synthesize(**IMPORTED)
    with pytest.raises(UnsupportedTemplateError, match="Custom::S3BucketNotifications"):
        check(load_assembly(imported.directory))
