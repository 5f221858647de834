"""The assemblies that several modules look at."""

from typing import Any

import pytest

from tests.stacks.synthesized import ENCRYPTED, IMPORTED, REGULATED, TELLING, Assembly, synthesize


def deployment(**parameters: Any) -> Any:
    """A fixture of the assembly with these parameters."""

    @pytest.fixture(scope="session")
    def made() -> Assembly:
        return synthesize(**parameters)

    return made


assembly = deployment()
imported = deployment(**IMPORTED)
encrypted = deployment(**ENCRYPTED)
bridged = deployment(events="eventbridge", freshTables="sales/=26,finance/eu/=168")
bridged_import = deployment(events="eventbridge", importBucket="lake")
# Two tables of a catalog are told of commits, and one of them of empty partitions.
telling = deployment(**TELLING)
regulated = deployment(**REGULATED)
