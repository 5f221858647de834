"""The steps after the uploads are completed, or aborted: publish, remove, undo, tidy up."""

from dataclasses import replace
from typing import Any

from s3commit.aws import env
from s3commit.aws.settings import fresh_tables, workers
from s3commit.aws.steps import run_step
from s3commit.aws.telemetry import count, document_refused, logger, timed
from s3commit.aws.wiring import make_ports
from s3commit.core.commit.abort_job import abort_job
from s3commit.core.commit.begin_publish import begin_publish
from s3commit.core.commit.publish_success import publish_success
from s3commit.core.commit.remove_replaced import remove_replaced
from s3commit.core.commit.roll_back import roll_back
from s3commit.core.commit.tidy_up import tidy_up
from s3commit.core.model.errors import DOCUMENT_CODES
from s3commit.core.model.moments import seconds
from s3commit.core.model.states import JobState

ports = replace(make_ports(), workers=workers())
watched = fresh_tables()

STEPS = {
    "BeginPublish": begin_publish,
    "RemoveReplaced": remove_replaced,
    "PublishSuccess": publish_success,
    "AbortJob": abort_job,
    "RollBack": roll_back,
    "TidyUp": tidy_up,
}
ENDED = {
    JobState.COMMITTED: env.JOBS_COMMITTED,
    JobState.ABORTED: env.JOBS_ABORTED,
    JobState.ROLLED_BACK: env.JOBS_ROLLED_BACK,
}


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Run the step that the state machine names; count the job if the step has ended it."""
    ticket = run_step(ports, STEPS, event)
    ended = ENDED.get(ticket["outcome"])
    if ended and event["step"] != "TidyUp":
        count(ended)
        if ended == env.JOBS_COMMITTED:
            count(env.BYTES_COMMITTED, ticket["bytes"])
            announced = ticket.get("event") or {}  # a late twin has none
            if announced.get("requestedAt"):
                took = seconds(announced["requestedAt"], announced["finishedAt"])
                timed(env.REQUEST_TO_RESULT, took)
            for table in filter(ticket["directory"].startswith, watched):
                count(env.TABLE_COMMITS, table=table)
        elif ticket["code"] in DOCUMENT_CODES:
            document_refused(ticket["directory"], ticket["code"])
    return ticket
