"""Draws the pictures of the page, docs/pictures/page-*.webp, from jobs of today: `make screens`.

One of the jobs is half complete: S3 keeps the rest of its completions waiting meanwhile.
"""

import io
import os
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from docs import pictures, screens
from s3commit.cli.ui import page_beside
from s3commit.core.documents.job_json import Who
from s3commit.core.documents.request_json import CountedAttempt
from s3commit.local.runtime import LocalRuntime
from s3commit.local.synth import synthesize
from s3commit.writer.job import Job
from s3commit.writer.options import make_options
from s3commit.writer.start import start_job
from s3commit.writer.undo import undo
from tests.chromium import launch

HEIGHTS: Final = {"jobs": 460, "job": 1120, "table": 560}
TASKS, LET_THROUGH = 24, 15
ANA: Final = Who(application="s3commit", user="ana", host="laptop")
LONGEST: Final = 200.0  # seconds; a completion waits no longer


class Gate:
    """Before S3: of the table ``clicks`` some completions pass, and the others when it is open."""

    def __init__(self) -> None:
        self.is_reached, self.is_open = threading.Event(), threading.Event()
        self._left, self._lock = LET_THROUGH, threading.Lock()

    def __call__(self, application: Any) -> Any:
        """The application behind it."""

        def answer(asked: dict[str, Any], start: Any) -> Any:
            completes = asked["REQUEST_METHOD"] == "POST" and "uploadId=" in asked["QUERY_STRING"]
            if completes and "/clicks/" in asked["PATH_INFO"]:
                with self._lock:
                    self._left -= 1
                    waits = self._left < 0
                if waits:
                    self.is_reached.set()
                    self.is_open.wait(LONGEST)
            return application(asked, start)

        return answer


def _write(place: str, tasks: int, **how: Any) -> tuple[Job, list[CountedAttempt]]:
    """A job whose tasks are done; their files are of any bytes."""
    job, counted = start_job(make_options(place, **how), who=screens.WHO), []
    for number in range(tasks):
        name = f"dt=2026-11-{20 + number % 5}/part-{number}.csv"
        with job.task(str(number)) as task, task.open(name, rows=random.randrange(90_000)) as file:
            file.write(random.randbytes(random.randrange(2_000_000)))
        counted += [task.counted] if task.counted else []
    return job, counted


@contextmanager
def shown(bucket: str, gate: Gate) -> Iterator[dict[str, str]]:
    """The jobs; the address of each view."""
    sales, done = f"s3://{bucket}/sales/", []
    for tasks, mode in ((8, "append"), (5, "append"), (8, "overwrite"), (3, "append")):
        job, counted = _write(sales, tasks, mode=mode)
        job.commit(counted)
        done.append(job.job_id)
    with patch("s3commit.writer.start.this_program", lambda: ANA):
        undo(sales, done[-1])
    job, counted = _write(f"s3://{bucket}/clicks/", TASKS)
    with screens.jobs(bucket), ThreadPoolExecutor(1) as pool:
        ended = pool.submit(job.commit, counted)
        gate.is_reached.wait(LONGEST)
        yield {"jobs": "/", "job": f"/job?job={job.job_id}", "table": f"/table?table={sales}"}
        gate.is_open.set()
        ended.result()


def draw(browser: Browser, address: str, views: dict[str, str]) -> None:
    """Each view in both colours."""
    home, _, token = address.partition("/?")
    for colours in ("light", "dark"):
        context = browser.new_context(color_scheme=colours, reduced_motion="reduce")
        page = context.new_page()
        page.goto(f"{home}/?{token}")
        for name, path in views.items():
            page.set_viewport_size({"width": 1280, "height": HEIGHTS[name]})
            page.goto(home + path)
            page.get_by_text("live", exact=True).wait_for()
            drawn = Image.open(io.BytesIO(page.screenshot()))
            drawn.save(pictures.FOLDER / f"page-{name}-{colours}.webp", quality=80, method=6)
        context.close()


def main() -> None:
    """Draw all."""
    gate, assembly = Gate(), synthesize(screens.ROOT, screens.ROOT / ".s3commit" / "assembly")
    with LocalRuntime(assembly, bucket="lake", middleware=gate) as runtime:
        os.environ.update(runtime.names())
        with (
            shown(runtime.bucket, gate) as views,
            page_beside(0) as address,
            sync_playwright() as playwright,
        ):
            draw(launch(playwright), address, views)


if __name__ == "__main__":
    main()
