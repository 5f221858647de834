"""One run of ``s3commit doctor --probe``, and the options that go with it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from s3commit.cli.arguments import DESTINATION
from s3commit.cli.printer import Printer
from s3commit.cli.session import Session
from s3commit.cli.verb import FAILED, USAGE, Problem, table_option
from s3commit.core.model.job import Destination

if TYPE_CHECKING:
    from s3commit.cli.probe.world import Given, World

ROLE_COLONS = 5  # of a role's ARN: the state machine's has its partition and account

OPTIONS = (
    click.option(
        "--probe",
        "destination",
        type=DESTINATION,
        metavar="URI",
        help="Probe below this s3:// URI, instead of the checks. These options go with it:",
    ),
    click.option(
        "--versioned-bucket",
        metavar="NAME",
        help="A bucket with versioning, to probe it too, below the same prefix.",
    ),
    table_option,
    click.option(
        "--key-role",
        metavar="ARN",
        help="Another role, to complete and abort what is encrypted.",
    ),
    click.option("--key", metavar="ARN", help="The KMS key that --key-role may use."),
    click.option(
        "--machine-role",
        metavar="ARN",
        help="A role for a temporary state machine, to probe Step Functions.",
    ),
    click.option(
        "--alarm",
        metavar="NAME",
        help="An alarm to set off and back: whoever it notifies hears of it.",
    ),
)


def probe_options(function: Any) -> Any:
    """``--probe``, and what to probe with besides; see `Given`."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def probe(session: Session, printer: Printer, destination: Destination, **given: Any) -> None:
    """Announce, probe, clean up and tell. Raises `Problem` if anything is not as needed."""
    from s3commit.aws.failures import translated  # noqa: PLC0415 - as in `Session`
    from s3commit.cli.probe import telling  # noqa: PLC0415
    from s3commit.cli.probe.run import cost_of, lacking_in, run_probes  # noqa: PLC0415
    from s3commit.cli.probe.world import Given, World  # noqa: PLC0415

    world = World(Given(destination, **given), session.environment)
    _require(world.given)
    with translated("looking at the buckets"):
        for place in world.places:
            world.s3.head_bucket(Bucket=place.bucket)
        _require_versions(world)
        lacking = lacking_in(world)
        telling.announce(printer, world, cost_of(world, lacking), lacking)
    with _terminable():
        try:
            reports = run_probes(
                world, lacking, lambda probe: printer.note(f"{probe.name}: {probe.what}")
            )
        finally:
            printer.note("cleaning up")
            left = world.clean()
            for line in left:
                printer.note(f"left: {line}")
    if printer.json:
        printer.document(telling.document(world, reports, left))
    else:
        telling.table(printer, world, reports)
    if bad := telling.summary(reports):
        raise Problem(f"not as correctness needs it: {bad}", FAILED)
    if left:
        raise Problem(telling.left_behind(left), FAILED)


def _require(given: Given) -> None:
    if (given.key_role is None) != (given.key is None):
        raise Problem("--key-role and --key belong together: give both or none", USAGE)
    if given.machine_role and given.machine_role.count(":") < ROLE_COLONS:
        raise Problem("--machine-role is an ARN, arn:aws:iam::111122223333:role/NAME", USAGE)


def _require_versions(world: World) -> None:
    bucket = world.given.versioned_bucket
    if bucket and world.s3.get_bucket_versioning(Bucket=bucket).get("Status") != "Enabled":
        raise Problem(f"bucket {bucket} has no versioning: give one that has, or none", USAGE)


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM interrupts as SIGINT does, so that what was made is deleted then too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
