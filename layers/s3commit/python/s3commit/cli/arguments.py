"""How people name jobs, destinations and ages on the command line, and where a job then is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from s3commit.aws import env
from s3commit.cli.session import Session
from s3commit.cli.text import parse_age, some
from s3commit.cli.verb import USAGE, Problem
from s3commit.core.formats.layout import MAGIC_PREFIX, JobDirectory, check_job_id, parse_destination
from s3commit.core.formats.layout import parse_directory as directory_of_key
from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.core.model.job import Destination
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.ledger import Ledger

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def parse_job(text: str) -> JobDirectory | str:
    """A job id, or the directory of which the s3:// URI, or that of anything in it, is given.

    Raises `InvalidInputError`.
    """
    if "://" not in text:
        return check_job_id(text)
    scheme, _, rest = text.partition("://")
    bucket, _, key = rest.partition("/")
    try:
        directory = directory_of_key(bucket, f"{key}/")
    except InvalidInputError:
        raise InvalidInputError(
            f"{text!r} is no job directory: it has no {MAGIC_PREFIX}<job id>/; a job at a"
            " destination is named by: JOB_ID --destination s3://bucket/prefix/",
            code="BAD_PATH",
        ) from None
    destination = parse_destination(f"{scheme}://{bucket}/{directory.destination.prefix}")
    return JobDirectory(destination, directory.job_id)


class Parsed(click.ParamType[T]):
    """A parameter as ``parse`` reads its text; what that refuses is a usage error."""

    def __init__(self, name: str, parse: Callable[[str], T]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """See click, which also hands over what is converted already."""
        try:
            return self._parse(value) if isinstance(value, str) else value
        except (InvalidInputError, ValueError) as error:
            self.fail(str(error), param, ctx)


JOB: Parsed[JobDirectory | str] = Parsed("job", parse_job)
DESTINATION = Parsed("destination", parse_destination)
AGE = Parsed("age", parse_age)


def age_option(*names: str, default: str, told: str) -> Callable[[F], F]:
    """An option that takes an age; ``told`` is its help."""
    return click.option(*names, type=AGE, default=default, show_default=True, help=told)


destination_option = click.option(
    "--destination",
    type=DESTINATION,
    metavar="URI",
    help="The job's destination, if JOB is an id and there is no table.",
)


@dataclass(frozen=True, slots=True)
class Located:
    """A job's place; ``ledger`` is None if the command works from S3 alone.

    ``name`` is what to type for the job in a next command.
    """

    name: str
    directory: JobDirectory
    ledger: Ledger | None = None

    @property
    def job_id(self) -> str:
        """The job's id."""
        return self.directory.job_id

    def read_record(self) -> JobRecord | None:
        """The record as it is now."""
        return self.ledger.job(self.directory.ref) if self.ledger else None


def locate(
    session: Session, job: JobDirectory | str, table: str | None, destination: Destination | None
) -> Located:
    """Find the job's place; whether anything is there is another question.

    Raises `NotFoundError` if the id is not in the ledger.
    """
    ledger = session.ledger(table) if table else None
    if isinstance(job, JobDirectory):
        return Located(job.uri, job, ledger)
    if destination is not None:
        directory = JobDirectory(destination, job)
        return Located(directory.uri, directory, ledger)
    if ledger is None:
        raise Problem(
            f"to find job {job} by its id name the ledger's table with --table or {env.TABLE}, or"
            " the job's place with --destination",
            USAGE,
        )
    records = ledger.jobs_with_id(job)
    if len(records) > 1:
        places = some(record.destination.uri for record in records)
        raise Problem(
            f"there are jobs with id {job} at {places}: name one with --destination", USAGE
        )
    if not records:
        raise NotFoundError(
            f"no job {job} in table {table}: check the id, or look for it in S3 with"
            " --destination (the ledger forgets ended jobs after a while)",
            code="NO_JOB",
        )
    return Located(job, JobDirectory(records[0].destination, job), ledger)
