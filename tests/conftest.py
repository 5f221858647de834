"""What all tests share: an environment that reaches no network, and two S3 servers."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.servers import Weed, free_ports, read_line

settings.register_profile("house", max_examples=50, deadline=None)
settings.register_profile(
    "thorough",
    max_examples=2000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))

REGION = "eu-central-1"


@pytest.fixture(scope="session", autouse=True)
def aws_environment(request: pytest.FixtureRequest) -> Iterator[None]:
    """No settings of the machine's: test credentials, and an endpoint where nobody listens.

    Save for the contract suite on buckets and a table that are given.
    """
    if request.config.getoption("table", None):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        for name, value in {
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        }.items():
            patch.setenv(name, value)
        yield


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also behind a shell's & and in xdist, which ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[str]:
    """The URL of a moto server with the S3 and DynamoDB patches, in a process of its own.

    Its own, so that the patches don't meet those of a test that runs the embedded runtime.
    """
    script = Path(__file__).with_name("servers.py")
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield read_line(process)
        finally:
            process.kill()


@pytest.fixture(scope="session")
def weed_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a SeaweedFS server, an S3 implementation that shares no code with moto's."""
    with Weed(tmp_path_factory.mktemp("weed"), free_ports(4)) as weed:
        yield weed.endpoint
