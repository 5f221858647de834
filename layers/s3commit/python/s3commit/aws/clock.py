"""The system's clock."""

import random
import time
from datetime import UTC, datetime

from s3commit.core.model.moments import rfc3339


class SystemClock:
    """Implements `s3commit.core.ports.clock.Clock`."""

    def now(self) -> str:
        """The present as RFC 3339 in UTC with milliseconds."""
        return rfc3339(datetime.now(UTC))

    def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        time.sleep(seconds * random.uniform(0.5, 1))
