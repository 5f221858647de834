"""The checks of the account: what S3 and DynamoDB promise, rights, alarms, and a redeployment."""

from __future__ import annotations

import json
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from acceptance.checks import keys
from acceptance.places import ROOT, STACKS, BrokenError, NotSeenError, running
from acceptance.run import Run, check, equal
from s3commit.aws import env
from s3commit.aws.ledger_items import bind
from stacks.access import ACCESS, Access
from tests.contract.given import make_bucket

ALARM_SECONDS: Final = 900  # two periods of five minutes, and CloudWatch's own delay
ROLE_SECONDS: Final = 60  # until Step Functions may assume a new role
# The tests whose names say which assumption of docs/proof.md they hold. A6 is about rights.
ASSUMPTIONS: Final = {f"_a{n}_": f"A{n}" for n in (1, 2, 3, 4, 7)} | {"_i5_": "A5"}
FILES: Final = ("test_races.py", "test_uploads.py", "test_ledger_notes.py")


def own(run: Run, what: str) -> str:
    """The name of a thing that the run makes beside the deployment."""
    return f"s3commit-{run.place.name}-{what}"


def furnish(run: Run) -> str:
    """Two buckets, a table and a role for tests and measures; the ARN of the role."""
    s3, iam = run.clients("s3"), run.clients("iam")
    make_bucket(s3, own(run, "plain"))
    versioned = make_bucket(s3, own(run, "versions"))
    s3.put_bucket_versioning(Bucket=versioned, VersioningConfiguration={"Status": "Enabled"})
    bind(own(run, "ledger")).job.create_table(billing_mode="PAY_PER_REQUEST", wait=True)
    trusted = {"Effect": "Allow", "Principal": {"Service": "states.amazonaws.com"}}
    role = iam.create_role(
        RoleName=own(run, "machine"),
        AssumeRolePolicyDocument=_policy({**trusted, "Action": "sts:AssumeRole"}),
    )["Role"]["Arn"]
    _, partition, _, _, account, _ = role.split(":", 5)
    states = f"arn:{partition}:states:*:{account}:*:{own(run, 'map')}*"
    objects = f"arn:{partition}:s3:::{own(run, 'plain')}/*"
    iam.put_role_policy(
        RoleName=own(run, "machine"),
        PolicyName="map",
        PolicyDocument=_policy(
            {"Effect": "Allow", "Action": "s3:GetObject", "Resource": objects},
            {"Effect": "Allow", "Action": "states:StartExecution", "Resource": states},
        ),
    )
    return str(role)


def _policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


@check("S3 and DynamoDB keep the assumptions A1 to A5 and A7 that correctness rests on", minutes=6)
def the_assumptions(run: Run) -> str:
    """By the contract suite, from the machine of the caller."""
    given = {
        "--bucket": own(run, "plain"),
        "--versioned-bucket": own(run, "versions"),
        "--table": own(run, "ledger"),
        "--machine-role": "none",
        "--differences": "aws" if run.place.is_aws else "moto",
    }
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += [f"--junitxml={report.name}", "-k", " or ".join(ASSUMPTIONS)]
        command += [word for option in given.items() for word in option]
        command += [str(ROOT / "tests" / "contract" / name) for name in FILES]
        with running(command, cwd=ROOT) as process:
            process.wait()
        text = Path(report.name).read_text()
    cases = [*ElementTree.fromstring(text).iter("testcase")] if text else []
    names = [case.attrib["name"] for case in cases]
    held = Counter(one for name in names for part, one in ASSUMPTIONS.items() if part in name)
    failed = [case.attrib["name"] for case in cases if len(case)]
    if failed or process.returncode != 0:
        raise BrokenError(f"{len(failed)} tests fail (above): {', '.join(failed[:3])}")
    equal(sorted(held), sorted(ASSUMPTIONS.values()), "assumptions with tests")
    counts = ", ".join(f"{name} by {held[name]}" for name in sorted(held))
    return f"from the caller's machine, not from the functions' network: {counts} tests"


# A key of each kind of name, as stacks/access.py has patterns for them.
SAMPLES: Final = (
    "t/part-0-x.parquet",
    "t/_SUCCESS",
    "t/_commits/_x.jsonl",
    "t/__magic_job-x/_job.json",
    "t/__magic_job-x/_request.json",
    "t/__magic_job-x/_result.json",
    "t/__magic_job-x/_tasks/0/_0.pendingset",
    "_s3commit/x/_decision.json",
    "_s3commit/x/_index-0.json",
    "_s3commit/x/_pages/_0.jsonl",
    "_s3commit/_keys/x/_0.json",
)
ON_OBJECTS: Final = ("GetObject", "PutObject", "DeleteObject")
CHANGED: Final[dict[str, Any]] = {"maxConcurrency": 20}  # in the environment of functions
NEVER: Final = ("DeleteBucket", "PutBucketPolicy", "PutLifecycleConfiguration")


def allowed(access: Access, action: str, key: str) -> bool:
    """Whether the function has the right, by the table of the rights."""
    given = [at for at, actions in access.objects.items() if action in actions]
    may = any(fnmatchcase(key, at) for at in given)
    return may and not any(fnmatchcase(key, at) for at in access.denied.get(action, ()))


@check("Each function may do what its steps need and nothing else, as IAM judges it", minutes=2)
def rights_of_the_functions(run: Run) -> str:
    """By https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html."""
    if not run.place.is_aws:
        raise NotSeenError("no emulator has SimulatePrincipalPolicy")
    judged = denied = 0
    for name, role in _roles(run):
        arn = f"arn:{role.split(':')[1]}:s3:::{run.bucket}"
        for key in SAMPLES:
            for action, decision in _simulated(run, role, ON_OBJECTS, f"{arn}/{key}"):
                expected = allowed(ACCESS[name], action, key)
                equal(decision == "allowed", expected, f"{name} may {action} {key}")
                judged, denied = judged + 1, denied + (not expected)
        for action, decision in _simulated(run, role, NEVER, arn):
            equal(decision == "allowed", False, f"{name} may {action}")
            judged, denied = judged + 1, denied + 1
    return f"{judged} simulated calls, {denied} of them denied, as stacks/access.py says"


def _roles(run: Run) -> Iterator[tuple[str, str]]:
    """The deployment's functions by their modules, with the ARNs of their roles."""
    for page in run.clients("lambda").get_paginator("list_functions").paginate():
        for one in page["Functions"]:
            if run.place.name in one["Role"]:
                yield one["Handler"].removesuffix(".handler"), one["Role"]


def _simulated(run: Run, role: str, actions: tuple[str, ...], arn: str) -> list[tuple[str, str]]:
    owner = {
        "ContextKeyName": "aws:ResourceAccount",
        "ContextKeyValues": [role.split(":")[4]],
        "ContextKeyType": "string",
    }
    answer = run.clients("iam").simulate_principal_policy(
        PolicySourceArn=role,
        ActionNames=[f"s3:{action}" for action in actions],
        ResourceArns=[arn],
        ContextEntries=[owner],
    )
    found = answer["EvaluationResults"]
    return [(one["EvalActionName"].partition(":")[2], one["EvalDecision"]) for one in found]


@check("Documents that the pipeline refuses ring the alarm DocumentsRefused", minutes=15)
def an_alarm_that_rings(run: Run) -> str:
    job, counted = run.write("alarm")
    for number in range(20):
        key = job.directory.manifest("bad", str(number))
        run.ports.store.put(run.bucket, key, b"no manifest")
    job.commit(counted)
    service, prefix = run.clients("cloudwatch"), f"{STACKS[0]}-{run.place.name}"
    found = service.describe_alarms(AlarmNamePrefix=prefix)["MetricAlarms"]
    alarms = [one["AlarmName"] for one in found if env.DOCUMENTS_REFUSED in one["AlarmName"]]
    began = time.monotonic()

    def rings() -> bool:
        state = service.describe_alarms(AlarmNames=alarms)["MetricAlarms"][0]["StateValue"]
        return bool(state == "ALARM")

    run.until(rings, f"alarm {alarms[0]}", ALARM_SECONDS)
    return f"{len(found)} alarms are deployed; this one rang after {time.monotonic() - began:.0f} s"


@check("Jobs are committed while the pipeline is deployed again", minutes=8)
def a_redeployment_beside_jobs(run: Run) -> str:
    # Not by `with`: that would wait for a deployment which an interrupted run is to kill.
    deploying, jobs = ThreadPoolExecutor(1).submit(run.place.update, **CHANGED), 0
    while not deploying.done():
        jobs += run.commit(f"redeployed-{uuid.uuid4().hex[:8]}").files == 3
        wait([deploying], 5)
    deploying.result()
    return f"{jobs} jobs were committed during the deployment"


@check("Keys with spaces, `+`, `%` and unicode are found by EventBridge", minutes=14)
def keys_by_eventbridge(run: Run) -> str:
    """It takes five minutes until S3 sends events there.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/enable-event-notifications-eventbridge.html
    """
    run.place.update(**CHANGED, events="eventbridge")
    return keys(run, "eventbridge")
