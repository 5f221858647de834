"""Jobs that an S3A driver left behind, on a desk."""

import json

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.destination import Destination
from tests.cli.support import Desk
from tests.core.world import BUCKET, World
from tests.golden.s3a.replay import Recorded, read, replay

DAYS = 2 * 86400.0


def dead(desk: Desk, case: str = "plain", *, later: float = DAYS) -> Recorded:
    """What the driver left behind, and some time after it."""
    recorded = read(case)
    replay(desk.world.store, recorded)
    desk.world.clock.advance(later)
    return recorded


def jobs_of(recorded: Recorded) -> list[JobDirectory]:
    """The directories of all jobs of a case, those of the shared ``__magic/`` too."""
    ids = {json.loads(body)["jobId"] for body in recorded.manifests.values()}
    return [JobDirectory(Destination(BUCKET, "sales/"), job_id) for job_id in sorted(ids)]


def data(world: World) -> dict[str, bytes]:
    return {key: body for key, body in world.visible().items() if not key.endswith("/")}


def snapshot(desk: Desk) -> tuple[list[str], list[str]]:
    return desk.world.all_keys(), desk.world.open_uploads()
