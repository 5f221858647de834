"""The AWS session of our clients, and how patiently it asks a machine for its role's credentials.

Spark starts a Python worker for each core of a node, all at once, and each asks the instance
metadata service. That service limits an instance's simultaneous connections and requests, and asks
for pauses that grow: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
botocore asks once and gives up. So here it asks three times without a pause, and the whole look is
repeated with pauses. What the user sets (AWS_METADATA_SERVICE_NUM_ATTEMPTS,
AWS_METADATA_SERVICE_TIMEOUT, or the same in the profile) counts instead:
https://docs.aws.amazon.com/sdkref/latest/guide/feature-ec2-instance-metadata.html

A worker asks once in its life and then about once an hour, since its one client is kept. Nothing is
shared among a node's workers: that would put the role's secret into a file, with a lock and a
lifetime to watch over, to save three small requests a worker.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from s3commit.aws.settings import metadata_disabled

if TYPE_CHECKING:
    from botocore.loaders import Loader
    from botocore.session import Session

ATTEMPTS: Final = 3
TIMEOUT: Final = 2  # seconds; a packet that was dropped is sent again after one
FIRST_PAUSE: Final = 0.2  # seconds, doubled each time
PATIENCE: Final = 3.0  # seconds, after which no other look begins

_ATTEMPTS_NAME: Final = "metadata_service_num_attempts"
_DEFAULTS: Final = {_ATTEMPTS_NAME: ATTEMPTS, "metadata_service_timeout": TIMEOUT}


def make_session(
    region: str | None,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Session:
    """A session of botocore that has credentials, by the standard AWS configuration.

    boto3's own would import what takes large files apart, 25 ms of each start, for nothing.

    Raises `AccessError` (``NO_CREDENTIALS``) if there are none. A client made without any would
    never get some, and Spark uses a worker and its client again and again.
    """
    # Spark imports the data source in processes of which some make no client: 0.15 s each.
    import botocore.session  # noqa: PLC0415
    from botocore.configprovider import ConstantProvider  # noqa: PLC0415

    from s3commit.aws.failures import no_credentials, translated  # noqa: PLC0415

    core = botocore.session.get_session()
    core.register_component("data_loader", _loader())
    core.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_moment)
    settings = core.get_component("config_store")
    for name, value in _DEFAULTS.items():
        settings.get_config_provider(name).set_default_provider(ConstantProvider(value))
    with translated("looking for AWS credentials"):
        if region:
            core.set_config_variable("region", region)
        asked = not metadata_disabled(os.environ)
        again = asked and core.get_config_variable(_ATTEMPTS_NAME) == ATTEMPTS
        began, pause = clock(), FIRST_PAUSE
        while core.get_credentials() is None:
            if not again or clock() - began >= PATIENCE:
                raise no_credentials()
            sleep(pause * random.uniform(0.5, 1))  # those that started together part here
            pause *= 2
    return core


@cache
def _loader() -> Loader:
    """AWS's own description of each service: read once, it is half of what a client costs."""
    from botocore.loaders import create_loader  # noqa: PLC0415

    return create_loader(os.environ.get("AWS_DATA_PATH"))


def _moment(text: Any) -> datetime:
    """A time of S3's; botocore's own reading of a listing's takes five times its other work."""
    from botocore.utils import parse_timestamp  # noqa: PLC0415

    is_listed = isinstance(text, str) and text.endswith("Z")
    return datetime.fromisoformat(text) if is_listed else parse_timestamp(text)
