"""What `write` needs of the machine is looked at before it does anything."""

from __future__ import annotations

import subprocess
import sys


def test_a_worker_that_makes_no_client_loads_no_aws_library() -> None:
    code = "import sys, s3commit.spark; print(*{m.split('.')[0] for m in sys.modules})"

    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()

    assert "s3commit" in loaded
    assert not {"boto3", "botocore", "pyspark"} & set(loaded)
