"""The routes of the state machine: the only table of them.

`stacks.definition` makes the deployed machine of it, `run_call` and the tests' machines follow it.
"""

from typing import Final, NamedTuple

from s3commit.core.documents.ticket import Ticket
from s3commit.core.model.states import JobState

FIRST: Final = "SealJob"

# Before the decision a job may be refused; each of these steps can say so.
REFUSING: Final = ("VerifyManifests", "AcquireDestination", "CheckConditions", "DecideCommit")

# Which function carries out a step.
STEPS: Final = {
    **dict.fromkeys((FIRST, *REFUSING), "decide"),
    **dict.fromkeys(("BeginPublish", "RemoveReplaced", "PublishSuccess"), "end"),
    **dict.fromkeys(("AbortJob", "RollBack", "TidyUp"), "end"),
}

# The ways to complete uploads: of a job of one unit a call, of a small job a Map within the
# machine, of any a Map Run. `COUNTED` follows all of them.
AT_ONCE, FEW, ALL = "CompleteAtOnce", "CompleteFew", "CompleteUploads"
COUNTED: Final = "BeginPublish"

# The steps after a wait, whose length the ticket has.
WAITS: Final = {
    "WaitForLedger": FIRST,  # an empty table heals itself before any job is sealed in it
    "WaitForDestination": "AcquireDestination",
    "WaitForNextRound": ALL,
    # A task that still runs may open uploads; or a call's time was over.
    "WaitForUploads": "AbortJob",
    "WaitToRollBack": "RollBack",
}

# The last states, which send the event.
ENDS: Final = {
    JobState.COMMITTED: "JobCommitted",
    JobState.ABORTED: "JobAborted",
    JobState.ROLLED_BACK: "JobRolledBack",
}


class Way(NamedTuple):
    """Of a job in ``state``, if the ticket's member ``given`` is neither empty nor 0, ``to``."""

    state: JobState
    to: str
    given: str = ""


# Decided, perhaps not in S3 yet: DecideCommit sees to that.
_BY_A_TWIN: Final = Way(JobState.COMMITTING, "DecideCommit")

# After a step the first way that fits; then those by which a job is resumed, as after SealJob.
AFTER: Final[dict[str, tuple[Way, ...]]] = {
    "VerifyManifests": (
        # A job that appends, without a key, waits for no other.
        Way(JobState.SEALED, "CheckConditions", "acquired"),
        Way(JobState.SEALED, "AcquireDestination"),
        _BY_A_TWIN,
    ),
    "AcquireDestination": (
        Way(JobState.SEALED, "CheckConditions", "acquired"),
        Way(JobState.SEALED, "WaitForDestination"),
        _BY_A_TWIN,
    ),
    "CheckConditions": (Way(JobState.SEALED, "DecideCommit"), _BY_A_TWIN),
    "BeginPublish": (Way(JobState.COMMITTING, "WaitForNextRound"),),
    # A long list takes more than one call has time for: in rounds, page by page.
    "RemoveReplaced": (
        Way(JobState.PUBLISHING, "RemoveReplaced", "page"),
        Way(JobState.PUBLISHING, "PublishSuccess"),
    ),
    "PublishSuccess": (Way(JobState.COMMITTED, "TidyUp"),),
    "AbortJob": (Way(JobState.ABORTING, "WaitForUploads"), Way(JobState.ABORTED, "TidyUp")),
    "RollBack": (Way(JobState.ROLLING_BACK, "WaitToRollBack"), Way(JobState.ROLLED_BACK, "TidyUp")),
    # A loser may have left more uploads than a call has time for.
    "TidyUp": (
        *(Way(state, "TidyUp", "page") for state in ENDS),
        *(Way(state, end) for state, end in ENDS.items()),
    ),
}
RESUMED: Final = (
    Way(JobState.OPEN, "WaitForLedger"),
    Way(JobState.SEALED, "VerifyManifests"),
    Way(JobState.COMMITTING, AT_ONCE, "is_one_unit"),
    Way(JobState.COMMITTING, FEW, "few"),
    # The documents do not say how a Map ends with an empty dataset; a job without files has one.
    Way(JobState.COMMITTING, ALL, "units"),
    Way(JobState.COMMITTING, COUNTED),
    Way(JobState.PUBLISHING, "RemoveReplaced", "replaces"),
    Way(JobState.PUBLISHING, "PublishSuccess"),
    Way(JobState.ABORTING, "AbortJob"),
    Way(JobState.ROLLING_BACK, "RollBack"),
    # Ended in the ledger, perhaps without its result: the last step repeats safely.
    Way(JobState.COMMITTED, "PublishSuccess"),
    Way(JobState.ABORTED, "AbortJob"),
    Way(JobState.ROLLED_BACK, "RollBack"),
)
# Where BeginPublish may find a job that a twin has continued.
BEHIND: Final = {
    *(JobState.PUBLISHING, JobState.COMMITTED),
    *(JobState.ROLLING_BACK, JobState.ROLLED_BACK),
}


def following(step: str, ticket: Ticket) -> str:
    """The state that follows a step which has returned this ticket."""
    return next(
        way.to
        for way in (*AFTER.get(step, ()), *RESUMED)
        if way.state is ticket.state and (not way.given or getattr(ticket, way.given))
    )


def reached_after(function: str) -> list[str]:
    """The states to which a call of the function may lead: it may run several steps."""
    after = [way for step, one in STEPS.items() if one == function for way in AFTER.get(step, ())]
    resumed = [way for way in RESUMED if function == STEPS[FIRST] or way.state in BEHIND]
    return [*dict.fromkeys(way.to for way in (*after, *resumed))]
