"""``s3commit demo``."""

# ruff: noqa: PLC0415 - the demo brings Spark and the embedded runtime with it
from __future__ import annotations

from pathlib import Path

import click

from s3commit.cli.verb import Verb, reported
from s3commit.cli.verbs.local import project_option, require_local


@click.command(cls=Verb)
@click.option("--keep", is_flag=True, help="Leave the runtime up at the end, to look around.")
@project_option
@click.option(
    "--pace",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="How slowly the story is told; 0 does not wait.",
)
@click.option("--verbose", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def demo(ctx: click.Context, keep: bool, project: Path, pace: float, verbose: bool) -> None:
    """Run a Spark job against a pipeline on this machine.

    Starts the embedded runtime, writes a table with Spark, and shows what becomes visible when.
    """
    with reported(changes=False, verbose=verbose):
        require_local()
        from s3commit.cli.demo.run import run_demo

        ctx.exit(run_demo(keep=keep, project=project, pace=pace))
