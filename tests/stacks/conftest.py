"""The assemblies that several modules look at."""

import pytest

from tests.stacks.synthesized import IMPORTED, KEY_ARN, OPERATOR, REGULATED, Assembly, synthesize


@pytest.fixture(scope="session")
def assembly() -> Assembly:
    return synthesize()


@pytest.fixture(scope="session")
def imported() -> Assembly:
    return synthesize(**IMPORTED)


@pytest.fixture(scope="session")
def encrypted() -> Assembly:
    return synthesize(
        bucketName="named-lake",
        kmsKeyArn=KEY_ARN,
        versioned="true",
        accessLogsBucket="logs",
        alarmEmail="oncall@example.com",
        architecture="x86_64",
        protectNames="documents",
        operators=OPERATOR,
        executionLogs="data",
        reserveWorkers="true",
    )


@pytest.fixture(scope="session")
def bridged() -> Assembly:
    return synthesize(events="eventbridge")


@pytest.fixture(scope="session")
def bridged_import() -> Assembly:
    return synthesize(events="eventbridge", importBucket="lake")


@pytest.fixture(scope="session")
def telling() -> Assembly:
    """Two tables of a catalog are told of commits, and one of them of empty partitions."""
    dropping = "analytics.sales dropEmpty"
    return synthesize(catalogs={"sales/": dropping, "orders/eu/": "other.orders"})


@pytest.fixture(scope="session")
def regulated() -> Assembly:
    return synthesize(**REGULATED)
