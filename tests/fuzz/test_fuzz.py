"""The everyday form of ``python -m tests.engines.fuzz``: the same seeds each day."""

import json
from dataclasses import fields

import pytest

from s3commit.core.documents.job_json import JOB_JSON, Conditions, JobSpec, Who
from s3commit.core.formats.strict_json import member_name
from tests.engines.fuzz.documents import SPEC
from tests.engines.fuzz.targets import read_mutated, run_mutated

OF_S3 = {"sha256", "put_at"}  # fields that no document has


@pytest.mark.parametrize("first", range(0, 4000, 500))
def test_i7_changed_documents_are_read_or_refused(first: int) -> None:
    taken = sum(read_mutated(seed) for seed in range(first, first + 500))
    assert 0 < taken < 500, "some are taken, or nothing was tried behind the first check"


@pytest.mark.parametrize("first", range(0, 60, 30))
def test_i12_a_job_of_changed_documents_touches_nothing_of_others(first: int) -> None:
    ended = {run_mutated(seed) for seed in range(first, first + 30)}
    assert {"COMMITTED", "ABORTED"} <= ended


def test_i7_every_member_of_job_json_is_among_those_that_are_changed() -> None:
    document = json.loads(JOB_JSON.encode(SPEC))
    for kind, written in (
        (JobSpec, document),
        (Conditions, document["conditions"]),
        (Who, document["who"]),
    ):
        named = {member_name(one.name) for one in fields(kind) if one.name not in OF_S3}
        assert named == written.keys() - {"version"}
