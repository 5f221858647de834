"""The assemblies that several modules look at."""

import pytest

from tests.stacks.synthesized import ENCRYPTED, IMPORTED, REGULATED, TELLING, Assembly, synthesize


@pytest.fixture(scope="session")
def assembly() -> Assembly:
    return synthesize()


@pytest.fixture(scope="session")
def imported() -> Assembly:
    return synthesize(**IMPORTED)


@pytest.fixture(scope="session")
def encrypted() -> Assembly:
    return synthesize(**ENCRYPTED)


@pytest.fixture(scope="session")
def bridged() -> Assembly:
    return synthesize(events="eventbridge")


@pytest.fixture(scope="session")
def bridged_import() -> Assembly:
    return synthesize(events="eventbridge", importBucket="lake")


@pytest.fixture(scope="session")
def telling() -> Assembly:
    """Two tables of a catalog are told of commits, and one of them of empty partitions."""
    return synthesize(**TELLING)


@pytest.fixture(scope="session")
def regulated() -> Assembly:
    return synthesize(**REGULATED)
