"""A job that is refused beside others, whom nothing happens to."""

from s3commit.core.documents.request_json import CountedAttempt
from s3commit.core.documents.result_json import JobResult
from s3commit.core.model.outcome import Outcome
from tests.core.world import BUCKET, NEIGHBOUR, OTHER_JOB, World, job_directory

DIRECTORY = job_directory()
THEIRS = job_directory(NEIGHBOUR)
NOBODY = CountedAttempt("t0", "a0", DIRECTORY.manifest_name("t0", "a0"), "0" * 64, 1, 5)


class Neighbourhood(World):
    """A table with files of a committed job, and a second job that is under way in it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        settled = job_directory(OTHER_JOB)
        self.request(settled, self.attempt(settled, "t0"))
        self.run(settled)
        self.open(THEIRS)
        self.their_attempt = self.attempt(THEIRS, "t0")
        self.store.create_upload(BUCKET, "sales/stranger.csv", metadata={}, content_type="x")
        self.before = (self.visible(), self.open_uploads())
        self.plan.forget_calls()

    def refused(self, code: str) -> JobResult:
        """Run the job; its result, when it was refused whole and nobody else was touched."""
        assert self.run(DIRECTORY)[-1] == "TidyUp"
        result = self.result(DIRECTORY)
        assert result.outcome is Outcome.ABORTED
        assert result.error is not None
        assert result.error.code == code, result.error
        assert result.error.message.isprintable()
        assert 0 < len(result.error.message) <= 4000
        assert (self.visible(), self.open_uploads()) == self.before
        assert self.plan.count("complete_upload") == 0
        self.request(THEIRS, self.their_attempt)
        self.run(THEIRS, "execution-of-the-neighbour")
        assert self.result(THEIRS).outcome is Outcome.COMMITTED
        return result
