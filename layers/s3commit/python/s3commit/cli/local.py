"""``s3commit local``."""

# ruff: noqa: PLC0415 - the embedded runtime is an extra, and takes a second to import
from functools import partial
from pathlib import Path

import click

from s3commit.cli.ui import check_installed, page_beside
from s3commit.local.rehearsal import FAULTS, Rehearsal

FIRES = "alarms fire within twenty seconds, those of a backlog after ten minutes or more"
NEEDED = ("moto", "flask", "waitress", "awslambdaric")  # of the extra `local`
_FAULTS = "\b\nFaults, and the alarms that fire:\n" + "".join(
    f"  {name}: {fault.does} ({', '.join(fault.fires)})\n" for name, fault in FAULTS.items()
)
_PORT = click.IntRange(0, 65535)
_DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)

project_option = click.option(
    "--project",
    type=_DIRECTORY,
    default=".",
    show_default=True,
    help="Directory in which the runtime is announced; a checkout of s3commit runs its own stacks.",
)


@click.group()
def local() -> None:
    """Run the pipeline here, without AWS."""


@local.command("up")
@click.option("--port", type=_PORT, default=0, show_default="a free one", help="For the clients.")
@click.option("--ui-port", type=_PORT, default=0, show_default="a free one", help="For the page.")
@click.option("--bucket", metavar="NAME", help="The data bucket's name [default: from the stack]")
@click.option("--versioned", is_flag=True, help="The bucket keeps versions, for an undo.")
@click.option(
    "--assembly",
    type=_DIRECTORY,
    help="A synthesized cloud assembly [default: the checkout's, or this package's]",
)
@project_option
@click.option("--verbose", is_flag=True, help="Log each request.")
def up(
    *,
    port: int,
    ui_port: int,
    bucket: str | None,
    versioned: bool,
    assembly: Path | None,
    project: Path,
    verbose: bool,
) -> None:
    """Serve the real stacks on 127.0.0.1 until interrupted.

    When it is ready it says so on stderr, with the address of the page that `s3commit ui` serves,
    and prints one line of JSON on stdout, with the
    endpoint, the bucket, the table, the state machine and the keys; `s3commit local env` prints
    them for a shell. All state is in memory and gone at the end.
    """
    check_installed("the embedded runtime", NEEDED, "local")
    from s3commit.local.foreground import run_foreground
    from s3commit.local.synth import assembly_for

    chosen = assembly or assembly_for(project)
    beside = partial(page_beside, ui_port)
    run_foreground(
        chosen, port, bucket, versioned=versioned, project=project, verbose=verbose, beside=beside
    )


@local.command("env")
@project_option
def env(project: Path) -> None:
    """Print the exports that lead a shell to the runtime that is up.

    Run it in another terminal than `local up`: eval "$(s3commit local env)". Then boto3, Spark, the
    AWS command line and this command work on the runtime; $BUCKET is its data bucket.
    """
    from s3commit.local.foreground import exports, read_running

    click.echo(exports(read_running(project)))


@local.command("break", epilog=_FAULTS)
@click.argument("fault", type=click.Choice([*FAULTS]))
@project_option
def break_(fault: str, project: Path) -> None:
    """Break the runtime that is up, to rehearse what the runbook says.

    Writes small jobs below s3://$BUCKET/rehearsal/. Then `s3commit status` says which alarms fire,
    and docs/operations.md what to do; where that is to deploy again, to raise a quota or to fix a
    function, `s3commit local repair` does it. After a repair, `s3commit redrive` starts the jobs
    whose messages were put aside: where a function can't start within seconds, where the account is
    throttled after about 20 minutes.
    """
    from s3commit.local.foreground import enter, read_running

    enter(read_running(project))
    FAULTS[fault].happen(Rehearsal())
    click.echo(f"{FAULTS[fault].does}: {', '.join(FAULTS[fault].fires)}")
    undo = FAULTS[fault].undo
    click.echo(f"{FIRES}; look: s3commit status; undo it: {undo}", err=True)


@local.command("repair")
@project_option
def repair(project: Path) -> None:
    """Undo what `s3commit local break` has broken.

    Jobs, messages and refused documents stay.
    """
    from s3commit.local.foreground import enter, read_running

    enter(read_running(project))
    Rehearsal().repair()
    click.echo("repaired; next: s3commit status")
