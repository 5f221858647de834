"""SealJob and the steps up to the decision in one call, for a small job that need not wait."""

from dataclasses import replace
from functools import partial

from s3commit.core.commit.check_conditions import refuse_taken
from s3commit.core.commit.decide_commit import decide
from s3commit.core.commit.seal_job import Asked, seal_job
from s3commit.core.commit.verify_manifests import FEW_FILES, verify
from s3commit.core.documents.decision_json import refuse_unfit
from s3commit.core.documents.job_json import refuse_changed
from s3commit.core.documents.pages import Unit, in_groups
from s3commit.core.documents.ticket import Ticket
from s3commit.core.jobs.guards import unless_overtaken
from s3commit.core.jobs.idempotency import refuse_held
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.limits import PAGE_FILES
from s3commit.core.model.record import PlanFacts
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.ledger import HeldError, LostRaceError
from s3commit.core.ports.parallel import together


def seal_and_decide(ports: Ports, ticket: Ticket) -> Ticket:
    """As `seal_job`; a small append is decided in the same call.

    Each of its responses would be waited for, and each state of the machine takes time. The steps
    judge the same, by what the call has read once. An error before the decision leaves the job
    SEALED: the machine's own steps continue from there, and they refuse it if they find the same.
    Only the call that has sealed the job continues. Raises as `seal_job`, and `LostRaceError`; run
    again, it finds its own decision.
    """
    sealed, asked = seal_job(ports, ticket)
    if asked is None or asked.request.files > FEW_FILES:
        return sealed
    if asked.record.conflict is not Conflict.APPEND:  # it may have to wait
        return sealed
    try:
        with unless_overtaken(ports, sealed, JobState.SEALED):
            plan, few = _checked(ports, sealed, asked)
            planned = replace(asked.record, plan=plan)
            refuse_unfit(planned, ports.clock.now())
    except LostRaceError:  # another execution has the job, or a twin has moved it on
        raise
    except S3CommitError:
        return sealed
    try:
        decided = decide(ports, planned, plan)
    except HeldError:  # another job was faster with the key
        return sealed
    return replace(sealed.after(decided), few=few)


def _checked(ports: Ports, sealed: Ticket, asked: Asked) -> tuple[PlanFacts, tuple[Unit, ...]]:
    """The plan, verified and written; beside the last puts the job's conditions are judged."""
    record, spec = asked.record, asked.spec
    refuse_changed(spec, record)

    def judge(counts: PlanFacts, keys: list[str]) -> None:
        counted, pages = replace(record, plan=counts), [*in_groups(keys, PAGE_FILES)]
        together(
            ports.parallel,
            partial(refuse_taken, ports, spec, counted, pages),
            partial(refuse_held, ports, counted),
            partial(ports.ledger.healing, sealed.bucket, now=ports.clock.now()),
        )

    return verify(ports, sealed, record, spec, asked.request, judge=judge)
