"""Judges that are not ours: ``make judge-states``, and so on. 1 if one finds something wrong."""

import importlib
import os
import sys
import time

from tests.engines.judges.tools import MissingError
from tests.servers import NO_NETWORK


def main() -> int:
    """Ask the judge of that name."""
    begun = time.monotonic()
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(NO_NETWORK)
    try:
        said, wrong = importlib.import_module(f"tests.engines.judges.{sys.argv[1]}").judge()
    except MissingError as error:
        print(f"s3commit: {error}", file=sys.stderr)
        return 1
    print(*wrong, f"{said}; {len(wrong)} wrong, {time.monotonic() - begun:.0f} s", sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
