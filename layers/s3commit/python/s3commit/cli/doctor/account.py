"""What is installed here, who asks, where, and how much the account allows."""

from __future__ import annotations

import platform
import sys
from email.utils import parsedate_to_datetime
from importlib.metadata import PackageNotFoundError, version

from s3commit.aws import env
from s3commit.aws.concurrency import FULL, LEAST
from s3commit.aws.failures import translated
from s3commit.cli.doctor.surroundings import Finding, Surroundings, ok, skipped, to_do
from s3commit.core.model.errors import AccessError
from s3commit.spark.setup import LEAST as LEAST_FOR_SPARK
from s3commit.version import __version__

# State transitions of one job in `stacks/definition.py`, without waits, and a little more.
TRANSITIONS_OF_A_JOB = 20
MOST_OFF = 60  # seconds
_REFILL = "statetransition"  # of the quota's name; its code differs from region to region
CONSOLE = "https://console.aws.amazon.com/servicequotas/"


def credentials(around: Surroundings) -> Finding:
    """Whose credentials they are, as AWS sees them."""
    try:
        found = around.ask("asking STS who this is", "sts", "get_caller_identity")
    except AccessError as error:
        return to_do(error.message)
    return ok(f"{found['Arn']} in account {found['Account']}")


def region(around: Surroundings) -> Finding:
    """Where everything is looked for."""
    if around.region is None:
        return to_do("no region: set AWS_REGION, or region in the profile")
    return ok(around.region)


def clock(around: Surroundings) -> Finding:
    """How far this machine's clock is from AWS's, which refuses requests 15 minutes off.

    https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html (RequestTimeTooSkewed)
    """
    answer = around.ask("asking STS for the time", "sts", "get_caller_identity")
    there = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
    off = round(abs((around.now() - there).total_seconds()))
    if off > MOST_OFF:
        return to_do(f"this machine's clock is {off} s off AWS's: let it follow a time server")
    return ok(f"within {MOST_OFF} s of AWS's")


def endpoint(around: Surroundings) -> Finding:
    """Where requests to S3 go, which AWS_ENDPOINT_URL may have turned elsewhere."""
    url = str(around.connect("s3").meta.endpoint_url)
    return ok(url if "amazonaws.com" in url else f"{url}, which is not AWS")


def functions_at_once(around: Surroundings) -> Finding:
    """Lambda's concurrency, which new accounts have little of, and the parameter to set.

    https://docs.aws.amazon.com/lambda/latest/api/API_GetAccountSettings.html
    """
    doing = "reading Lambda's account settings"
    limit = around.ask(doing, "lambda", "get_account_settings")["AccountLimit"]
    free, quota = limit["UnreservedConcurrentExecutions"], limit["ConcurrentExecutions"]
    told = f"{free} functions at once are not reserved (the quota is {quota})"
    wanted = _deployed(around)
    if free >= wanted:
        return ok(f"{told}; the deployment uses {wanted} at most")
    if free < LEAST:
        return to_do(
            f"{told}, and the pipeline needs {LEAST}: request an increase of Lambda's quota"
            f" Concurrent executions at {CONSOLE}"
        )
    return to_do(
        f"{told}, and the deployment may use {wanted}: deploy with -c"
        f" s3commit:lambdaConcurrency={free} (it then works, slower), or request an increase at"
        f" {CONSOLE}"
    )


def transitions(around: Surroundings) -> Finding:
    """Step Functions' rate of state transitions: what is beyond it waits, and nothing is lost.

    https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html
    """
    with translated("reading the quotas of Step Functions"):
        pages = around.connect("service-quotas").get_paginator("list_service_quotas")
        quotas = [
            quota
            for page in pages.paginate(ServiceCode="states")
            for quota in page["Quotas"]
            if _REFILL in quota["QuotaName"].replace(" ", "").lower()
            and "refill" in quota["QuotaName"].lower()
        ]
    if not quotas:
        return skipped(f"no quota of state transitions is listed; see {CONSOLE}")
    rate = float(min(quota["Value"] for quota in quotas))
    jobs = rate / TRANSITIONS_OF_A_JOB
    told = f"{rate:g} state transitions a second are {jobs:g} jobs a second"
    if jobs < 1:
        return to_do(
            f"{told}: more jobs than that wait. Raise s3commit:sweepMinutes, or request an"
            f" increase of the refill rate of StateTransition at {CONSOLE}"
        )
    return ok(told)


def _deployed(around: Surroundings) -> int:
    """How many functions the deployment may use at once; without one, by default."""
    try:
        outputs = around.outputs(env.PIPELINE_STACK) or {}
    except AccessError:
        outputs = {}
    return min(FULL, int(outputs.get(env.CONCURRENCY_OUTPUT, FULL)))


PYTHON = (3, 11)
VERSIONS = {"boto3": (1, 44), **LEAST_FOR_SPARK}
NEEDED = {"boto3"}


def versions(_around: Surroundings) -> Finding:
    """Python, this package, and those of others that it writes with; Spark's only if it is here."""
    told, wrong = [f"s3commit {__version__}", f"Python {platform.python_version()}"], []
    if sys.version_info[:2] < PYTHON:
        wrong.append(f"Python {platform.python_version()} is too old: use {_text(PYTHON)} or later")
    for package, least in VERSIONS.items():
        found = _version(package)
        if found is None:
            if package in NEEDED:
                wrong.append(f"{package} is not installed: pip install '{package}>={_text(least)}'")
            continue
        told.append(f"{package} {found}")
        if tuple(map(int, found.split(".")[:2])) < least:
            wrong.append(f"{package} {found} is too old: s3commit needs {package}>={_text(least)}")
    return to_do("; ".join(wrong)) if wrong else ok(", ".join(told))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _text(least: tuple[int, ...]) -> str:
    return ".".join(map(str, least))
