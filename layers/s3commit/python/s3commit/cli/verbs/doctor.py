"""``s3commit doctor``."""

from __future__ import annotations

from dataclasses import asdict

import click

from s3commit.cli.printer import Printer
from s3commit.cli.session import Session
from s3commit.cli.text import many
from s3commit.cli.verb import FAILED, Problem, verb


@verb()
@click.option("--name", metavar="NAME", help="The deployment's parameter name, if it has one.")
@click.option("--bucket", metavar="BUCKET", help="The data bucket, if no stack is to say it.")
@click.option("--role", metavar="ARN", help="A role of Spark jobs, whose rights are simulated.")
@click.option("--prefix", metavar="PREFIX", default="", help="Where it writes, or else the caller.")
def doctor(
    session: Session,
    printer: Printer,
    *,
    name: str | None,
    bucket: str | None,
    role: str | None,
    prefix: str,
) -> None:
    """Check the account and the deployment.

    Run it before the first deployment, after it, and on a cluster. It changes nothing. One line a
    check: ok, what to do, or why it was skipped. It reads sts:GetCallerIdentity,
    lambda:GetAccountSettings, cloudformation:DescribeStacks, s3:GetBucketNotification and
    GetLifecycleConfiguration, and asks iam:SimulatePrincipalPolicy; what the caller may not read is
    skipped. With --prefix and no --role the caller's own rights there are tried, by calls for an
    upload that does not exist. Exit code 1 if there is something to do.
    """
    from s3commit.cli.doctor import Verdict, examine  # noqa: PLC0415 - as in `Session`

    around = session.surroundings(name=name, bucket=bucket, role=role, prefix=prefix)
    found = []
    for check, finding in examine(around):
        found.append((check, finding))
        if not printer.json:
            printer.line(f"{finding.verdict.value:<8}{check}: {finding.text}")
    wrong = [check for check, finding in found if finding.verdict is Verdict.DO]
    if printer.json:
        checks = [{"check": check, **asdict(finding)} for check, finding in found]
        printer.document({"ok": not wrong, "checks": checks})
    if wrong:
        count = many(len(wrong), "check")
        raise Problem(f"{count} of {len(found)} failed: {', '.join(wrong)}", FAILED)
