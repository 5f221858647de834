"""The checks of the account: what S3 and DynamoDB promise, rights, alarms, and a redeployment."""

import json
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final

from acceptance.checks import keys
from acceptance.places import STACKS, BrokenError, NotSeenError
from acceptance.run import Run, check, equal
from acceptance.suite import call_function, make_function
from s3commit.aws import env
from s3commit.aws.ledger_items import bind
from stacks.access import ACCESS, Access
from tests.contract.given import make_bucket

ALARM_SECONDS: Final = 900  # two periods of five minutes, and CloudWatch's own delay
# The tests whose names say which assumption of docs/proof.md they hold. A6 is about rights.
ASSUMPTIONS: Final = {f"_a{n}_": f"A{n}" for n in (1, 2, 3, 4, 7)} | {"_i5_": "A5"}
FILES: Final = ("test_races.py", "test_uploads.py", "test_ledger_notes.py")


def own(run: Run, what: str) -> str:
    """The name of a thing that the run makes beside the deployment."""
    return f"s3commit-{run.place.name}-{what}"


def furnish(run: Run) -> str:
    """Buckets, a table, a function and roles for tests and measures; the ARN of the machine's."""
    s3 = run.clients("s3")
    make_bucket(s3, own(run, "plain"))
    versioned = make_bucket(s3, own(run, "versions"))
    s3.put_bucket_versioning(Bucket=versioned, VersioningConfiguration={"Status": "Enabled"})
    bind(own(run, "ledger")).job.create_table(billing_mode="PAY_PER_REQUEST", wait=True)
    role = _role(run, "machine", "states")
    _, partition, _, _, account, _ = role.split(":", 5)
    buckets = [f"arn:{partition}:s3:::{own(run, what)}" for what in ("plain", "versions")]
    states = f"arn:{partition}:states:*:{account}:*:{own(run, 'map')}*"
    table = f"arn:{partition}:dynamodb:*:{account}:table/{own(run, 'ledger')}"
    _allow(run, "machine", {"s3:GetObject": [f"{buckets[0]}/*"], "states:StartExecution": [states]})
    suite = _role(run, "suite", "lambda")
    everything = {"s3:*": [*buckets, *(f"{one}/*" for one in buckets)]}
    _allow(run, "suite", {**everything, "dynamodb:*": [table, f"{table}/index/*"]})
    make_function(run, own(run, "suite"), suite)
    return role


def _role(run: Run, what: str, service: str) -> str:
    """A new role that the service may assume; its ARN."""
    trusted = {"Effect": "Allow", "Principal": {"Service": f"{service}.amazonaws.com"}}
    policy = _policy({**trusted, "Action": "sts:AssumeRole"})
    made = run.clients("iam").create_role(RoleName=own(run, what), AssumeRolePolicyDocument=policy)
    return str(made["Role"]["Arn"])


def _allow(run: Run, what: str, actions: dict[str, list[str]]) -> None:
    """Let the role do each action with what is named."""
    statements = [
        {"Effect": "Allow", "Action": action, "Resource": resources}
        for action, resources in actions.items()
    ]
    run.clients("iam").put_role_policy(
        RoleName=own(run, what), PolicyName="own", PolicyDocument=_policy(*statements)
    )


def _policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


@check("S3 and DynamoDB keep the assumptions A1 to A5 and A7 that correctness rests on", minutes=6)
def the_assumptions(run: Run) -> str:
    """By the contract suite, in a function."""
    given = {
        "--bucket": own(run, "plain"),
        "--versioned-bucket": own(run, "versions"),
        "--table": own(run, "ledger"),
        "--machine-role": "none",
        "--differences": "aws" if run.place.is_aws else "moto",
        "-k": " or ".join(ASSUMPTIONS),
    }
    arguments = [word for option in given.items() for word in option]
    held: Counter[str] = Counter()
    for name in FILES:
        said = call_function(own(run, "suite"), arguments=[*arguments, f"tests/contract/{name}"])
        if said["failed"] or said["code"]:
            failed = "; ".join(f"{test}: {why}" for test, why in [*said["failed"].items()][:3])
            raise BrokenError(f"{name}, {len(said['failed'])} fail, exit {said['code']}: {failed}")
        passed = said["passed"]
        held.update(one for test in passed for part, one in ASSUMPTIONS.items() if part in test)
    equal(sorted(held), sorted(ASSUMPTIONS.values()), "assumptions with tests")
    counts = ", ".join(f"{name} {held[name]}" for name in sorted(held))
    return f"tests that passed in a function: {counts}"


# A key of each kind of name, as stacks/access.py has patterns for them.
SAMPLES: Final = (
    "t/part-0-x.parquet",
    "t/_SUCCESS",
    "t/_commits/_x.jsonl",
    "t/__magic_job-x/_job.json",
    "t/__magic_job-x/_request.json",
    "t/__magic_job-x/_result.json",
    "t/__magic_job-x/_tasks/0/_0.pendingset",
    "_s3commit/_owner.json",
    "_s3commit/x/_decision.json",
    "_s3commit/x/_index-0.json",
    "_s3commit/x/_pages/_0.jsonl",
    "_s3commit/_keys/x/_0.json",
)
ON_OBJECTS: Final = ("GetObject", "PutObject", "DeleteObject")
ON_BUCKET: Final = ("ListBucket", "ListBucketMultipartUploads", "GetBucketNotification")
ON_LEDGER: Final = sorted(
    {"DeleteTable", "Scan", *(right for access in ACCESS.values() for right in access.ledger)}
)
CHANGED: Final[dict[str, Any]] = {"maxConcurrency": 20}  # in the environment of functions
NEVER: Final = ("DeleteBucket", "PutBucketPolicy", "PutLifecycleConfiguration")


def allowed(access: Access, action: str, key: str) -> bool:
    """Whether the function has the right, by the table of the rights."""
    given = [at for at, actions in access.objects.items() if action in actions]
    may = any(fnmatchcase(key, at) for at in given)
    return may and not any(fnmatchcase(key, at) for at in access.denied.get(action, ()))


@check(
    "IAM allows each function the calls of its table, and denies the others that are tried (A6)",
    minutes=2,
)
def rights_of_the_functions(run: Run) -> str:
    """By https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html."""
    if not run.place.is_aws:
        raise NotSeenError("no emulator has SimulatePrincipalPolicy")
    judged: Counter[bool] = Counter()
    for name, function in run.functions.items():
        role = function["Role"]
        _, partition, _, region, account, *_ = run.arn.split(":")
        bucket = f"arn:{partition}:s3:::{run.bucket}"
        table = f"arn:{partition}:dynamodb:{region}:{account}:table/{run.table}"
        for resource, actions in expected(ACCESS[name], bucket, table).items():
            for action, decision in _simulated(run, role, list(actions), resource):
                may = decision == "allowed"
                equal(may, actions[action], f"{name} may {action} {resource}")
                judged[may] += 1
    calls = f"{judged.total()} simulated calls of S3 and DynamoDB, {judged[False]} of them denied"
    return f"{calls}, as stacks/access.py says"


def expected(access: Access, bucket: str, table: str) -> dict[str, dict[str, bool]]:
    """Whether a function may do it, by the ARN of what it is done to and the action."""
    of_bucket = {f"s3:{action}": action in access.bucket for action in (*ON_BUCKET, *NEVER)}
    of_table = {f"dynamodb:{action}": action in access.ledger for action in ON_LEDGER}
    of_index = {f"dynamodb:{action}": action in access.index for action in ("Query", "Scan")}
    of_keys = {
        f"{bucket}/{key}": {f"s3:{action}": allowed(access, action, key) for action in ON_OBJECTS}
        for key in SAMPLES
    }
    return {
        **of_keys,
        bucket: of_bucket,
        table: of_table,
        f"{table}/index/{env.BY_STATE}": of_index,
    }


def _simulated(run: Run, role: str, actions: list[str], arn: str) -> list[tuple[str, str]]:
    owner = {
        "ContextKeyName": "aws:ResourceAccount",
        "ContextKeyValues": [role.split(":")[4]],
        "ContextKeyType": "string",
    }
    answer = run.clients("iam").simulate_principal_policy(
        PolicySourceArn=role, ActionNames=actions, ResourceArns=[arn], ContextEntries=[owner]
    )
    return [(one["EvalActionName"], one["EvalDecision"]) for one in answer["EvaluationResults"]]


FIRED: Final = ("DocumentsRefused", "JobsFailed")


@check(
    f"Refused documents and a failed execution fire the alarms {' and '.join(FIRED)}", minutes=15
)
def alarms_that_fire(run: Run) -> str:
    run.clients("stepfunctions").start_execution(stateMachineArn=run.arn, input="{}")
    job, counted = run.write("alarm")
    for number in range(20):
        key = job.directory.manifest("bad", str(number))
        run.ports.store.put(run.bucket, key, b"no manifest")
    job.commit(counted)
    service, prefix = run.clients("cloudwatch"), f"{STACKS[0]}-{run.place.name}"
    began = time.monotonic()

    def states() -> dict[str, str]:
        pages = service.get_paginator("describe_alarms").paginate(AlarmNamePrefix=prefix)
        found = pages.search("MetricAlarms[]")
        return {one["AlarmName"]: one["StateValue"] for one in found}

    def fires(name: str) -> bool:
        return any(name in alarm and state == "ALARM" for alarm, state in states().items())

    for name in FIRED:
        run.until(
            partial(fires, name), f"the alarm {name}", began + ALARM_SECONDS - time.monotonic()
        )
    took = time.monotonic() - began
    when = f"within {took:.0f} s" if took >= 1 else "at the first look"
    return f"{len(states())} alarms are deployed; both fired {when}"


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
    run.events = "eventbridge"
    return keys(run, run.events)
