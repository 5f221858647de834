"""Whoever may put a job may have it replace: only below the prefixes that the deployment lists."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.job import Conflict, Outcome, Scope
from tests.core.world import BUCKET, JOB, World, job_directory


def deployed(*allowed: str) -> World:
    """A bucket with data, behind a pipeline that allows replacing below ``allowed``."""
    world = World()
    world.ports = replace(world.ports, replace_below=allowed)
    for prefix in ("sales/", "sales10/", "sale/", "sales/eu/"):
        world.store.put(BUCKET, f"{prefix}old.parquet", b"old")
    return world


def asked(world: World, directory: JobDirectory, *tasks: str, **spec: Any) -> JobDirectory:
    """A job that replaces, with a file a task; without tasks it is empty."""
    world.open(directory, **{"conflict": Conflict.REPLACE, **spec})
    world.request(directory, *[world.attempt(directory, task) for task in tasks])
    return directory


def data(world: World) -> set[str]:
    return {key for key in world.all_keys() if key.endswith(".parquet")}


@pytest.mark.parametrize("tasks", [(), ("t0",)], ids=["empty", "with a file"])
@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize(
    ("allowed", "prefix", "refused"),
    [
        ([""], "sales/", False),
        (["sales/"], "sales/", False),
        (["finance/", "sales/"], "sales/eu/", False),
        ([], "sales/", True),
        (["finance/"], "sales/", True),
        (["sales/"], "sales10/", True),
        (["sales/"], "sale/", True),
        (["sales/eu/"], "sales/", True),
    ],
)
def test_i12_a_job_replaces_below_the_allowed_prefixes_alone(
    allowed: Iterable[str], prefix: str, refused: bool, scope: Scope, tasks: tuple[str, ...]
) -> None:
    world = deployed(*allowed)
    before = data(world)
    directory = asked(world, job_directory(prefix=prefix), *tasks, scope=scope)
    world.run(directory)
    if refused:
        failure = world.failure(directory)
        assert failure.code == "REPLACE_NOT_ALLOWED"
        assert directory.destination.uri in failure.message
        assert "replacePrefixes" in failure.message
        assert "finance" not in failure.message, "whose that is concerns no one else"
        assert data(world) == before
        assert world.open_uploads() == []
        assert "lock" not in world.plan.counts()
    else:
        assert world.result(directory).outcome is Outcome.COMMITTED


@pytest.mark.parametrize("conflict", [Conflict.APPEND, Conflict.FAIL])
def test_jobs_that_replace_nothing_are_not_asked(conflict: Conflict) -> None:
    world = deployed()
    directory = asked(world, job_directory(prefix="new/"), "t0", conflict=conflict)
    world.run(directory)
    assert world.result(directory).outcome is Outcome.COMMITTED


def test_i2_a_job_that_was_decided_before_the_list_got_shorter_is_finished() -> None:
    world = deployed("")
    directory = asked(world, job_directory(), "t0")
    world.plan.crash_after("decide")
    world.dies(directory)
    world.ports = replace(world.ports, replace_below=())
    world.run(directory, "execution-2")
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert set(world.visible()) == {f"sales/part-t0-{JOB}.parquet"}
