"""One synth for all tests of this directory: it takes seconds."""

from __future__ import annotations

import pytest

from tests.stacks.synthesized import KEY_ARN, OPERATOR, Assembly, synthesize


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    return synthesize(tmp_path_factory.mktemp("default"))


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    return synthesize(
        tmp_path_factory.mktemp("imported"), importBucket="lake", kmsKeyArn=KEY_ARN, name="dev"
    )


@pytest.fixture(scope="session")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    return synthesize(
        tmp_path_factory.mktemp("encrypted"),
        bucketName="named-lake",
        kmsKeyArn=KEY_ARN,
        versioned="true",
        accessLogsBucket="logs",
        alarmEmail="oncall@example.com",
        architecture="x86_64",
        protectNames="documents",
        operators=OPERATOR,
    )
