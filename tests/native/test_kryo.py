"""A session that serializes the tasks' results with Kryo."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from s3commit.core.model.states import JobState
from tests.native import s3a
from tests.native.conftest import uri
from tests.native.s3a import ROOT, jars
from tests.native.test_cluster import environment
from tests.spark.conftest import SETTINGS
from tests.spark.tiny import Place, TinyPipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_kryo_with_registered_classes_alone(
    spark: SparkSession, tiny: TinyPipeline, place: Place, tmp_path: Path
) -> None:
    """The control is the first write, which Spark's own protocol commits."""
    control = tmp_path / "control"
    settings = {
        **SETTINGS,
        **s3a.settings(tiny.environment["AWS_ENDPOINT_URL"]),
        "spark.jars": ",".join(map(str, jars())),
    }
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.native.kryo", json.dumps(settings)),
            *(control.as_uri(), uri(place)),
        ],
        env=environment(tmp_path),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert place.tidy().state is JobState.COMMITTED
    own, ours = (spark.read.parquet(where) for where in (control.as_uri(), uri(place)))
    assert own.count() == 100
    assert own.exceptAll(ours).count() == ours.exceptAll(own).count() == 0
