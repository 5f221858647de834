"""_job.json, _request.json, _result.json, the commit manifest and _SUCCESS."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3commit.core.documents.commit_manifest import (
    CommitHeader,
    CommittedFile,
    commit_lines,
    decode_commit_header,
    decode_commit_manifest,
)
from s3commit.core.model.errors import InvalidInputError
from tests.core.world import JOB, OTHER_JOB
from tests.engines.fuzz.documents import DIRECTORY, FILE, HEADER

committed = st.builds(
    CommittedFile,
    key=st.text(
        st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="./\ufffe\uffff"),
        max_size=50,
    ).map(lambda text: f"sales/x{text}-{JOB}.csv"),
    length=st.integers(0, 10**15),
    etag=st.just('"x-1"'),
    rows=st.none() | st.integers(0, 10**12),
)


@given(st.lists(committed, max_size=5))
def test_the_commit_manifest_comes_back_line_by_line(found: list[CommittedFile]) -> None:
    header = replace(HEADER, files=len(found))
    decoded, files = decode_commit_manifest(commit_lines(header, found), DIRECTORY)
    assert (decoded, list(files)) == (header, found)


def test_a_commit_manifest_that_lacks_lines_is_refused() -> None:
    lines = list(commit_lines(replace(HEADER, files=2), [FILE] * 2))
    assert list(decode_commit_manifest(lines, DIRECTORY)[1])
    for some in ([], lines[:1], lines[:2], [*lines[:2], lines[2][:-5]]):
        with pytest.raises(InvalidInputError):
            list(decode_commit_manifest(some, DIRECTORY)[1])


@pytest.mark.parametrize(
    ("header", "file", "code"),
    [
        (replace(HEADER, job_id=OTHER_JOB), FILE, "WRONG_JOB"),
        (replace(HEADER, destination="s3://lake/copy/"), FILE, "WRONG_JOB"),
        (replace(HEADER, destination="s3://other/sales/"), FILE, "WRONG_JOB"),
        (HEADER, replace(FILE, key=f"secret/x-{JOB}.csv"), "NOT_CONTAINED"),
        (HEADER, replace(FILE, key=f"sales/../secret/x-{JOB}.csv"), "NOT_CONTAINED"),
        (HEADER, replace(FILE, key=f"sales/_commits/_{JOB}.jsonl"), "NOT_CONTAINED"),
        (HEADER, replace(FILE, key=f"sales/_x/y-{JOB}.csv"), "NOT_CONTAINED"),
        (HEADER, replace(FILE, key=f"sales/x-{OTHER_JOB}.csv"), "NAME_NOT_UNIQUE"),
    ],
)
def test_i7_i12_a_list_is_believed_where_it_lies_and_of_its_own_files_alone(
    header: CommitHeader, file: CommittedFile, code: str
) -> None:
    lines = list(commit_lines(header, [file]))
    with pytest.raises(InvalidInputError) as caught:
        list(decode_commit_manifest(lines, DIRECTORY)[1])
    assert caught.value.code == code
    if code == "WRONG_JOB":
        with pytest.raises(InvalidInputError):
            decode_commit_header(lines[0], DIRECTORY)
