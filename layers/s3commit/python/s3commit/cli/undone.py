"""The fate of a committed job, by one rule for all that tell of it: undone, or in effect."""

from contextlib import suppress
from dataclasses import dataclass

from s3commit.cli.log import by_of
from s3commit.cli.render import moment
from s3commit.cli.session import Session
from s3commit.core.documents.job_json import read_spec
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.jobs.past_commits import manifests_at, read_commits, undone_by
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.model.moments import shifted

MOST_LATER = 1_000  # jobs committed after it: a GET each, of the latest


@dataclass(frozen=True, slots=True)
class Fate:
    """The effect of later jobs on a committed one.

    ``by`` is the id of the undo in effect; empty: it is not undone. ``last`` is the last of its
    undos, of the undos of these, and so on: the one to undo next. It is empty without any undo, and
    where one of these has left out what it would have brought back.
    ``means`` is all that in a sentence. ``overwritten`` is true if overwrites have removed files
    since, perhaps its own. ``problem`` is why all that is not known.
    """

    by: str = ""
    last: str = ""
    means: str = ""
    overwritten: bool = False
    problem: str = ""


def fate_of(session: Session, job: JobDirectory) -> Fate:
    """The effect of later jobs at its destination on a committed job, by `undone_by`.

    Requests: a listing of ``_commits/``, a GET for each later job, and one for the undo's writer.
    """
    listed = list(manifests_at(session.store, job.destination))
    put = next((one.modified for directory, one in listed if directory == job), "")
    since = put and shifted(put, -S3_CLOCKS)
    later = [one for one in listed if one[0] != job and one[1].modified >= since]
    later.sort(key=lambda one: one[1].modified)
    some = read_commits(session.store, session.parallel, later[-MOST_LATER:])
    commits = {one.directory: one for one in some}
    leaving = {one.directory for one in commits.values() if one.header.leaves_removed}
    pairs = [(one.directory, one.undoes) for one in commits.values() if one.undoes]
    undone, undos = undone_by(pairs, leaving), {its: undo for undo, its in pairs}
    first, last, is_left_out = undos.get(job), job, False
    while last in undos:
        last = undos.pop(last)
        is_left_out |= last != first and last in leaving
    if first is None:
        standing = (one for one in commits.values() if one.directory not in undone)
        removed = (one.header.replaced for one in standing if not one.undoes)
        many = f"it is not known if it was undone: {len(later)} jobs were committed since"
        return Fate(
            overwritten=any(one is not None and one.files for one in removed),
            problem=many if len(later) > MOST_LATER else "",
        )
    if job not in undone:
        means = f"undone by job {first.job_id}, and job {last.job_id} took that back"
        return Fate("", last.job_id, f"ended: {means}")
    undo, who = commits[undone[job]], ""
    with suppress(S3CommitError):  # the document was deleted when its time was over
        said = read_spec(session.s3, undo.directory).who
        who = f"{by_of(said)}; " if said else ""
    means = f"undone by job {undo.header.job_id} ({who}{moment(undo.header.decided_at)})"
    return Fate(undo.header.job_id, "" if is_left_out else last.job_id, f"ended: {means}")
