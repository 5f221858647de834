"""What all tests share: an environment that reaches no network, and two S3 servers."""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.servers import NO_NETWORK, REGION, Weed, free_ports, moto_server

settings.register_profile("house", max_examples=50, deadline=None)
settings.load_profile("house")

__all__ = ["REGION"]


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
        for name, value in NO_NETWORK.items():
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
    """The URL of a moto server."""
    with moto_server() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def weed_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a SeaweedFS server, an S3 implementation that shares no code with moto's."""
    with Weed(tmp_path_factory.mktemp("weed"), free_ports(4)) as weed:
        yield weed.endpoint
