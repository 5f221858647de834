"""Documents that nobody of ours wrote, for the suites of the check."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from s3commit.core.formats.documents import encode_result
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.published import CommitHeader, CommittedFile, commit_lines
from s3commit.core.model.job import JobResult, Outcome
from tests.core.fsck_world import (
    Checked,
)
from tests.core.world import BUCKET, World


def forge_list(world: World, directory: JobDirectory, *files: CommittedFile, **header: Any) -> None:
    """A list in ``_commits/`` that nobody of ours wrote."""
    first = CommitHeader(
        directory.job_id,
        directory.destination.uri,
        "2026-11-21T00:00:00.000Z",
        files=len(files),
        bytes=sum(file.length for file in files),
        rows=None,
    )
    lines = commit_lines(replace(first, **header), files)
    world.store.put(BUCKET, directory.commits, b"".join(lines))


def forge_result(world: World, directory: JobDirectory, outcome: Outcome) -> None:
    now = "2026-11-21T00:00:00.000Z"
    result = JobResult(directory.job_id, outcome, None, 0, 0, None, None, now, "arn")
    world.store.put(BUCKET, directory.result, encode_result(result))


def changed_by_repair(desk: Checked) -> bool:
    """Whether a repair of everything deletes or aborts anything at all."""

    def state() -> object:
        world = desk.world
        return world.all_keys(), list(world.store.list_uploads(BUCKET, ""))

    before = state()
    desk.repair()
    return state() != before
