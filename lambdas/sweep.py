"""The scheduled sweep: it finds the jobs that no event leads to."""

from functools import cache
from typing import Any

from botocore.config import Config

from s3commit.aws import env
from s3commit.aws.clients import IMPATIENT, make_client, make_session
from s3commit.aws.executions import StateMachine
from s3commit.aws.notifications import configured, listening, told, unheard
from s3commit.aws.settings import value
from s3commit.aws.telemetry import count, logger
from s3commit.aws.wiring import make_ports, owning
from s3commit.core.jobs.healing import heal
from s3commit.core.model.errors import PAGE_CHANGED, NeedsOperatorError, TransientError
from s3commit.core.sweep.actions import encode_report
from s3commit.core.sweep.questions import run_sweep
from s3commit.core.sweep.sweep import Limits, Sweep

client = make_client()
ports = owning(make_ports(client), claims=True)
machine = StateMachine(value(env.STATE_MACHINE))
bucket = value(env.BUCKET)


@cache
def connect(service: str) -> Any:
    """A client of another service than S3, made when a sweep first needs it."""
    return make_session().create_client(service, config=Config(**IMPATIENT))


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Sweep once, with the limits that the schedule sends; the answer is the report."""
    heal(ports, bucket)  # in an empty ledger there is nothing to be found before
    report = run_sweep(Sweep(ports, machine, Limits.of(event)))
    document = encode_report(report)
    logger.info("swept", **document)
    count(env.JOBS_ABANDONED, report.aborted)
    count(env.JOBS_RESUMED, report.started - report.tidied)
    count(env.SWEEP_FAILURES, report.failed)
    if report.incomplete:
        raise TransientError("the sweep could not read ledger or bucket; the log says why")
    if unread := ports.ledger.healing(bucket, now=ports.clock.now()).unread:
        raise NeedsOperatorError(
            f"[{PAGE_CHANGED}] decision records of {bucket} can't be read, and their tables wait:"
            f" restore, or, if another program has put them there, delete {', '.join(unread)}",
            code=PAGE_CHANGED,
        )
    ears = listening(connect, value(env.LISTENS))
    for ear in ears.values():
        if ear.unseen:
            logger.warning("not looked at", reason=ear.unseen)
    if lacking := unheard(configured(client, bucket), ears):
        raise NeedsOperatorError(
            f"[NOT_NOTIFIED] bucket {bucket}: {told(lacking)}. Jobs start only at the next sweep."
            " Another program changed it: deploy again, and see docs/deploy.md, An existing bucket",
            code="NOT_NOTIFIED",
        )
    return document
