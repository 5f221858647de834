"""What goes wrong at a port call, drawn by seed."""

import random
from collections import Counter

READS = frozenset(
    {"get", "head", "list", "list_uploads", "upload_is_open", "job", "locks",
     "attempts", "jobs_with_id", "key_holder", "appends", "locks_below", "describe",
     "is_running", "jobs_in", "turns_asked", "turns_done",
     "first_bytes", "list_versions"}
)  # fmt: skip
# What botocore may send again by itself after a lost answer, so that the caller sees the second.
RESENT = frozenset(
    {"put", "delete", "complete_upload", "create_upload", "abort_upload", "delete_seen",
     "upload_part", "copy_part", "free_key", "take_over", "advance", "decide", "note",
     "note_healing", "lock", "unlock", "release", "give_up", "unlist", "open_job", "record_attempt"}
)  # fmt: skip

KINDS = (
    "crash before", "crash after", "error", "throttled", "answer lost", "sent twice",
    "stall before", "stall after", "conflict 409", "clock jump",
)  # fmt: skip
# A run has all of them, or more of some: rare orders need several of one kind.
_PROFILES: dict[str, tuple[str, ...]] = {
    "all": tuple(kind for kind in KINDS if kind != "conflict 409"),
    "stalls": ("stall before", "stall after"),
    "crashes": ("crash before", "crash after", "stall before"),
    "answers": ("answer lost", "sent twice", "error", "stall after"),
}
_OF_READS = frozenset({"crash before", "error", "throttled", "stall before", "clock jump"})


class Faults:
    """Draws a fault, or none, for each call; counts what struck, by kind."""

    def __init__(self, rng: random.Random, rate: float) -> None:
        self.rate = rate
        self.injected: Counter[str] = Counter()
        self.profile = rng.choice(["all", "all", "stalls", "stalls", "crashes", "answers"])
        self._writes = _PROFILES[self.profile]
        self._reads = [kind for kind in self._writes if kind in _OF_READS]
        self._rng = rng

    def strike(self, kind: str) -> str:
        """Count a fault that is injected elsewhere than at a call."""
        self.injected[kind] += 1
        return kind

    def draw(self, verb: str, *, conditional: bool) -> str:
        """The kind of fault for this call; empty for none."""
        if self._rng.random() >= self.rate:
            return ""
        if verb in READS:
            return self.strike(self._rng.choice(self._reads))
        if conditional and self._rng.random() < 0.2:
            return self.strike("conflict 409")
        kind = self._rng.choice(self._writes)
        if kind == "sent twice" and verb not in RESENT:
            kind = "answer lost"
        return self.strike(kind)

    def chance(self, probability: float) -> bool:
        """Whether something that is no port call goes wrong; never in a run without faults."""
        if self.profile == "stalls":
            probability *= 2
        return self.rate > 0 and self._rng.random() < probability

    def stall(self) -> float:
        """How long a stalled process sleeps, in seconds."""
        return self._rng.choice([1.0, 10.0, 120.0, 1200.0, 4000.0])
