"""``python -m acceptance``: try s3commit's promises in an account, report, remove all."""

import argparse
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError

import acceptance.checks  # noqa: F401 - it registers its checks
from acceptance import judged, things
from acceptance.measures import measured
from acceptance.places import ROOT, Aws, Embedded, Place, end_programs
from acceptance.plan import plan
from acceptance.report import Report
from acceptance.run import CHECKS, Run, tried
from s3commit.aws.clients import is_aws
from s3commit.local import REGION
from s3commit.local.runtime import LocalRuntime
from s3commit.local.synth import assembly_for

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SERVICES: Final = (
    *("cloudformation", "cloudwatch", "dynamodb", "events", "iam", "lambda"),
    *("logs", "s3", "sqs", "stepfunctions", "sts"),
)
REMOVALS: Final = 3  # AWS shows a thing for some seconds after it was deleted
PATIENCE: Final = {True: 900.0, False: 600.0}  # seconds that a job is given, on AWS or here


def main(arguments: list[str] | None = None) -> int:
    """0 if all that could be tried was kept and nothing is left, else 1; 2 if nothing was begun."""
    chosen = _parse(arguments)
    for one in SIGNALS:  # whatever the shell has set
        signal.signal(one, _interrupt)
    try:
        return _run(chosen)
    except (BotoCoreError, ClientError) as error:  # a run that has begun reports its own
        _say(f"AWS did not answer as needed, see docs/acceptance.md: {error}; nothing was begun.")
    except KeyboardInterrupt:
        _say("nothing was begun.")
    return 2


def _run(chosen: argparse.Namespace) -> int:
    """Try, or clean; the exit code, as of `main`. An error that it raises has begun nothing."""
    if chosen.region and (led := _elsewhere(chosen.region)):
        _say(f"AWS_ENDPOINT_URL or a profile leads past AWS: {led}. Unset it; nothing was begun.")
        return 2
    with _account(chosen) as region:
        place: Place = (Aws if chosen.region else Embedded)(chosen.clean or chosen.name)
        if chosen.clean:
            _, left = _removed(place)
            _say(f"of {place.name} is left: {', '.join(left) or 'nothing'}")
            return int(bool(left))
        facts: dict[str, Any] = {"is_aws": place.is_aws, "region": region}
        facts["where"] = _where(chosen)
        facts["account"] = _account_number(place) if place.is_aws else ""
        _say(plan(place.name, chosen.only, chosen.files, **facts))
        for other in sorted(_others(place)):
            _say(f"Another run, {other}, is there. If it has ended: --clean {other} removes it")
        if not (chosen.yes or _agreed(place.name)):
            return 2
        where = f"AWS, {region}" if place.is_aws else "the embedded runtime, on this machine"
        started = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        report = Report(place.name, where, started, _commit(), place.is_aws)
        _carry_out(place, report, chosen)
        page = report.keep(chosen.report)
        _say(f"{report.summary()} Report: {page}")
        return int(not report.is_well)


def _carry_out(place: Place, report: Report, chosen: argparse.Namespace) -> None:
    """Deploy, try, measure; whatever happens, remove all of it."""
    began = time.monotonic()
    try:
        _say(f"deploying {place.name} ...")
        run = Run(place, place.create(), chosen.files, PATIENCE[place.is_aws])
        role = judged.furnish(run)
        for name in chosen.only:
            _say(f"{name} ...")
            result = tried(run, CHECKS[name])
            report.results.append(result)
            _say(f"  {result.verdict}: {result.detail} ({result.seconds:g} s)")
        report.measures = measured(run, role)
    except KeyboardInterrupt:
        report.problem = "it was interrupted"
    except Exception as error:
        report.problem = " ".join(f"{type(error).__name__}: {error}".split())
        _say(f"failed: {report.problem}")
    finally:
        report.errors, report.left = _removed(place)
        report.seconds = round(time.monotonic() - began, 1)


def _removed(place: Place) -> tuple[list[str], list[str]]:
    """Remove all that has the name; errors, and what is left. No signal but SIGKILL ends it."""
    _ignore_signals()
    end_programs()
    _say(f"removing {place.name}: this takes some minutes on AWS, and is not interrupted ...")
    errors: list[str] = []
    left: list[str] = []
    for attempt in range(REMOVALS):
        try:
            errors, left = place.remove(), place.left()
        except (BotoCoreError, ClientError) as error:
            errors, left = [], [f"it is not known what: {error}"]
        if not left:
            return [], []
        if attempt < REMOVALS - 1:
            time.sleep(20 if place.is_aws else 1)
    return errors, left


def _ignore_signals() -> None:
    for one in SIGNALS:
        signal.signal(one, signal.SIG_IGN)


def _interrupt(*_: object) -> None:
    """Once: a second Ctrl-C must not end the removal that follows the first."""
    _ignore_signals()
    raise KeyboardInterrupt


def _account_number(place: Place) -> str:
    """That of the account to which the credentials lead, so that a person can compare it."""
    return str(place.clients("sts").get_caller_identity()["Account"])


def _commit() -> str:
    """The commit of the checkout; empty where git does not know it."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude", "*"]
    with suppress(OSError):  # there is no git
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip()
    return ""


def _agreed(name: str) -> bool:
    try:
        return input(f"Type {name} to begin: ") == name
    except EOFError:
        return False


def _others(place: Place) -> set[str]:
    """The names of runs that have left something of their own."""
    names = (thing for _, thing, _ in things.found(place.clients, "accept-", *things.OWN))
    return {found[0] for name in names if (found := things.NAME.search(name))} - {place.name}


@contextmanager
def _account(chosen: argparse.Namespace) -> Iterator[str]:
    """The process's AWS configuration leads to the account, in the region that is given back."""
    if chosen.local:
        with LocalRuntime(assembly_for(ROOT)) as runtime:
            _lead_to(runtime.endpoint)
            yield REGION
    elif chosen.endpoint:
        _lead_to(chosen.endpoint)
        yield REGION
    else:
        os.environ.update(AWS_REGION=chosen.region, AWS_DEFAULT_REGION=chosen.region)
        yield chosen.region


def _where(chosen: argparse.Namespace) -> str:
    """The option that leads there again: of an embedded runtime of the run's own, to a new one."""
    named = f"--endpoint {chosen.endpoint}" if chosen.endpoint else "--local"
    return f"--region {chosen.region}" if chosen.region else named


def _elsewhere(region: str) -> str:
    """The services whose address is not AWS's: a report that says AWS is of AWS."""
    session: Any = boto3.session.Session(region_name=region)
    addresses = {name: session.client(name) for name in SERVICES}
    led = {name: one.meta.endpoint_url for name, one in addresses.items() if not is_aws(one)}
    return ", ".join(f"{name} ({address})" for name, address in led.items())


def _lead_to(endpoint: str) -> None:
    """No setting of the shell's leads elsewhere."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(
        AWS_ENDPOINT_URL=endpoint,
        AWS_REGION=REGION,
        AWS_DEFAULT_REGION=REGION,
        AWS_ACCESS_KEY_ID="local",
        AWS_SECRET_ACCESS_KEY="local",
        AWS_EC2_METADATA_DISABLED="true",
        AWS_CONFIG_FILE=os.devnull,
        AWS_SHARED_CREDENTIALS_FILE=os.devnull,
    )


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m acceptance", description="Try s3commit in an AWS account (docs/acceptance.md)."
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--region", help="an AWS region, prepared for the CDK")
    where.add_argument("--local", action="store_true", help="an embedded runtime, started for it")
    where.add_argument("--endpoint", metavar="URL", help="that of `s3commit local up`")
    parser.add_argument("--yes", action="store_true", help="begin without a question")
    parser.add_argument("--files", type=int, default=10_500, help="of the large job; 10500")
    parser.add_argument("--only", action="append", choices=CHECKS, help="repeatable; all")
    parser.add_argument("--report", type=Path, default=Path(), metavar="DIR", help="here")
    parser.add_argument("--name", default=f"accept-{secrets.token_hex(3)}", help="by chance")
    parser.add_argument("--clean", metavar="NAME", help="only remove what that run has left")
    chosen = parser.parse_args(arguments)
    if not things.NAME.fullmatch(chosen.clean or chosen.name):
        parser.error("a run is named accept- and six hexadecimal digits")
    chosen.only = chosen.only or list(CHECKS)
    return chosen


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
