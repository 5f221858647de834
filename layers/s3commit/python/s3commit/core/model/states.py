"""The states of a job, and the only table that says which may follow which."""

from enum import StrEnum

from s3commit.core.model.errors import UnchangedError


class JobState(StrEnum):
    """The state of a job in the ledger."""

    OPEN = "OPEN"  # tasks are writing; no word from the driver yet
    SEALED = "SEALED"  # the counted attempts are fixed
    COMMITTING = "COMMITTING"  # decided: the uploads are being completed
    PUBLISHING = "PUBLISHING"  # every file is visible: no way back
    COMMITTED = "COMMITTED"  # ended: all files visible, the marker written
    ABORTING = "ABORTING"  # will not be committed; its uploads are being aborted
    ABORTED = "ABORTED"  # ended: no file was ever visible
    ROLLING_BACK = "ROLLING_BACK"  # decided, but a file is lost: being undone
    ROLLED_BACK = "ROLLED_BACK"  # ended: undone; no file is visible, unless its lists were lost


TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    JobState.OPEN: frozenset({JobState.SEALED, JobState.ABORTING}),
    JobState.SEALED: frozenset({JobState.COMMITTING, JobState.ABORTING}),
    JobState.COMMITTING: frozenset({JobState.PUBLISHING, JobState.ROLLING_BACK}),
    JobState.PUBLISHING: frozenset({JobState.COMMITTED}),
    JobState.COMMITTED: frozenset(),
    JobState.ABORTING: frozenset({JobState.ABORTED}),
    JobState.ABORTED: frozenset(),
    JobState.ROLLING_BACK: frozenset({JobState.ROLLED_BACK}),
    JobState.ROLLED_BACK: frozenset(),
}

ENDED = frozenset(state for state, following in TRANSITIONS.items() if not following)


class IllegalTransitionError(UnchangedError):
    """The step is not in the protocol's table. Nothing was changed."""

    code = "ILLEGAL_TRANSITION"


def check_transition(source: JobState, target: JobState) -> None:
    """Raise `IllegalTransitionError` unless ``target`` may follow ``source``."""
    if target not in TRANSITIONS[source]:
        allowed = ", ".join(sorted(TRANSITIONS[source])) or "nothing: the job has ended"
        raise IllegalTransitionError(f"{source} may be followed by {allowed}, not by {target}")
