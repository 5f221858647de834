"""The scheduled sweep: it finds the jobs that no event leads to."""

from typing import Any

from s3commit.aws import env
from s3commit.aws.clients import make_client
from s3commit.aws.executions import StateMachine
from s3commit.aws.notifications import unheard
from s3commit.aws.settings import value
from s3commit.aws.telemetry import count, logger
from s3commit.aws.wiring import make_ports
from s3commit.core.jobs.healing import heal
from s3commit.core.model.errors import PAGE_CHANGED, NeedsOperatorError, TransientError
from s3commit.core.sweep.actions import encode_report
from s3commit.core.sweep.questions import run_sweep
from s3commit.core.sweep.sweep import Limits, Sweep

client = make_client()
ports = make_ports(client)
machine = StateMachine(value(env.STATE_MACHINE))
bucket = value(env.BUCKET)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Sweep once, with the limits that the schedule sends; the answer is the report."""
    heal(ports, bucket)  # in an empty ledger there is nothing to be found before
    report = run_sweep(Sweep(ports, machine, Limits.of(event)))
    document = encode_report(report)
    logger.info("swept", **document)
    count(env.JOBS_ABANDONED, report.aborted)
    count(env.JOBS_RESUMED, report.started - report.tidying)
    count(env.SWEEP_FAILURES, report.failed)
    if report.broken:
        raise TransientError("the sweep could not read ledger or bucket; the log says why")
    if unread := ports.ledger.healing(bucket, now=ports.clock.now()).unread:
        raise NeedsOperatorError(
            f"[{PAGE_CHANGED}] decision records of {bucket} can't be read, and their tables wait:"
            f" restore, or, if another program has put them there, delete {', '.join(unread)}",
            code=PAGE_CHANGED,
        )
    if lacking := unheard(client, bucket):
        raise NeedsOperatorError(
            f"[NOT_NOTIFIED] bucket {bucket} sends no notifications for keys that end in"
            f" {' and '.join(lacking)}, so jobs start only at the next sweep. Another program"
            " replaced the notifications: deploy again, and see docs/deploy.md, An existing bucket",
            code="NOT_NOTIFIED",
        )
    return document
