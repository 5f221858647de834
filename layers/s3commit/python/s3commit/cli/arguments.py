"""How people name jobs, destinations and ages on the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from s3commit.cli.text import parse_age
from s3commit.core.formats.layout import MAGIC_PREFIX, JobDirectory, check_job_id, parse_destination
from s3commit.core.formats.layout import parse_directory as directory_of_key
from s3commit.core.model.errors import InvalidInputError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JobName:
    """A job as it was named: by id alone, or by its directory. ``text`` is what was typed."""

    text: str
    job_id: str
    directory: JobDirectory | None = None


def parse_job(text: str) -> JobName:
    """A job id, or the s3:// URI of a job directory or of anything in it.

    Raises `InvalidInputError`.
    """
    if "://" not in text:
        return JobName(text, check_job_id(text))
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
    return JobName(text, directory.job_id, JobDirectory(destination, directory.job_id))


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


JOB = Parsed("job", parse_job)
DESTINATION = Parsed("destination", parse_destination)
AGE = Parsed("age", parse_age)

destination_option = click.option(
    "--destination",
    type=DESTINATION,
    metavar="URI",
    help="The job's destination, if JOB is an id and there is no table.",
)
