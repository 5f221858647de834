"""_job.json, _request.json, _result.json, the commit manifest and _SUCCESS."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3commit.core.formats.documents import (
    CommittedFile,
    commit_lines,
    decode_commit_manifest,
    decode_request,
    encode_request,
)
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import CommitRequest
from tests.core.world import JOB
from tests.engines.fuzz.documents import ATTEMPT, DIRECTORY, HEADER


def test_i3_a_request_that_counts_two_attempts_of_a_task_is_refused() -> None:
    other = replace(ATTEMPT, attempt_id="a1", manifest="_tasks/t0/_a1.pendingset")
    with pytest.raises(InvalidInputError) as caught:
        decode_request(encode_request(CommitRequest(JOB, (ATTEMPT, other))), DIRECTORY)
    assert caught.value.code == "TWO_ATTEMPTS"


committed = st.builds(
    CommittedFile,
    key=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=50),
    length=st.integers(0, 10**15),
    etag=st.just('"x-1"'),
    rows=st.none() | st.integers(0, 10**12),
)


@given(st.lists(committed, max_size=5))
def test_the_commit_manifest_comes_back_line_by_line(found: list[CommittedFile]) -> None:
    header = replace(HEADER, files=len(found))
    assert decode_commit_manifest(b"".join(commit_lines(header, found))) == (header, found)


def test_a_commit_manifest_that_lacks_lines_is_refused() -> None:
    lines = list(commit_lines(replace(HEADER, files=2), [CommittedFile("a", 1, "", None)] * 2))
    for body in (b"", lines[0], b"".join(lines[:2]), b"".join(lines)[:-5]):
        with pytest.raises(InvalidInputError):
            decode_commit_manifest(body)
