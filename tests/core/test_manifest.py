"""The pendingset codec: what goes in comes out; `HOSTILE` is what test_hostile.py sees refused."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3commit.core.documents.pendingset import (
    MAX_ETAG,
    MAX_FILES,
    MAX_PARTS,
    PendingFile,
    PendingSet,
    decode_pendingset,
    encode_pendingset,
    expected_etag,
)
from s3commit.core.model.checks import MAX_FIGURE, Figures
from s3commit.core.model.errors import InvalidInputError
from tests.core.world import BUCKET, JOB, OTHER_JOB, job_directory

DIRECTORY = job_directory()
NAME = DIRECTORY.manifest_name("t3", "a0")


def one_file(**changes: Any) -> PendingFile:
    values: dict[str, Any] = {
        "bucket": BUCKET,
        "key": f"sales/dt=2026-11-21/part-00003-{JOB}.c000.parquet",
        "upload_id": "2~Vq1",
        "etags": ('"0cc175b9c0f1b6a831c399e269772661"', '"92eb5ffee6ae2fec3ad71c777531578f"'),
        "length": 67108870,
        "job_id": JOB,
        "task_id": "t3",
        "attempt_id": "a0",
        "rows": 10,
    }
    return PendingFile(**{**values, **changes})


def one_set(*files: PendingFile) -> PendingSet:
    return PendingSet(JOB, files or (one_file(),), "t3", "a0")


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
name = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/.\ufffe\uffff"), min_size=1
)
files = st.builds(
    one_file,
    key=name.map(lambda value: f"sales/k={value[:50]}/part-{JOB}.parquet"),
    upload_id=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80),
    etags=st.lists(text.filter(bool), min_size=1, max_size=5).map(tuple),
    length=st.integers(0, 5 * 1024**4),
    rows=st.none() | st.integers(0, 10**12),
)


FIGURES = (Figures("n", "", "x" * MAX_FIGURE, 0), Figures("m", None, "1"), Figures("n"))


@given(st.lists(files, max_size=5, unique_by=lambda file: file.key), st.none() | st.integers(0, 9))
def test_a_pendingset_comes_back_as_it_was(found: list[PendingFile], tasks: int | None) -> None:
    pending = PendingSet(JOB, tuple(found), "t3", "a0", tasks, FIGURES[: len(found)])
    assert decode_pendingset(encode_pendingset(pending), DIRECTORY, NAME) == pending


# As S3A's serializer writes it: nulls, quoted etags, the magic path in ``uri``.
HADOOPS: dict[str, Any] = {
    "version": 2,
    "filename": None,
    "uri": "s3a://lake/sales/__magic_job-x/job-x/00/tasks/a/__base/part.parquet",
    "uploadId": "2~Vq1exampleUploadId",
    "bucket": "lake",
    "destinationKey": f"sales/part-00003-{JOB}.c000.snappy.parquet",
    "created": 1795298842000,
    "saved": 1795298842000,
    "date": "Sat Nov 21 22:07:22 UTC 2026",
    "jobId": JOB,
    "taskId": "attempt_202611210000_0001_m_000003_7",
    "text": "",
    "etags": ['"0cc175b9c0f1b6a831c399e269772661"'],
    "extraData": {},
    "length": 6286,
    "partCount": 1,
    "iostatistics": {"counters": {"stream_write_block_uploads": 2}},
}


def test_hadoops_own_pendingset_is_read() -> None:
    body = json.dumps({"version": 3, "jobId": JOB, "commits": [HADOOPS], "iostatistics": {}})
    name = DIRECTORY.manifest_name(HADOOPS["taskId"], "a0")
    [file] = decode_pendingset(body.encode(), DIRECTORY, name).files
    assert (file.length, file.rows, file.etags) == (6286, None, tuple(HADOOPS["etags"]))


def test_what_hadoop_needs_is_written() -> None:
    written = json.loads(encode_pendingset(one_set()))
    assert (written["version"], written["jobId"]) == (3, JOB)
    [commit] = written["commits"]
    assert commit["version"] == 2
    assert commit["destinationKey"].startswith("sales/")
    assert commit["uri"] == f"s3a://{BUCKET}/{commit['destinationKey']}"
    assert set(commit) >= set(HADOOPS) - {"partCount"}, "for which it has a getter alone"
    assert all(isinstance(part["etag"], str) for part in commit["etags"])  # from Hadoop 3.5 on


def test_the_etag_of_the_completed_object_is_foretold() -> None:
    # md5(md5("a") + md5("b")) and the number of parts, as S3 has it for multipart uploads.
    digests = hashlib.md5(b"a").digest() + hashlib.md5(b"b").digest()
    assert expected_etag(one_file()) == f'"{hashlib.md5(digests).hexdigest()}-2"'
    assert expected_etag(one_file(etags=("kms",))) == ""


def change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def apply(document: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        target: Any = document
        for parent in parents:
            target = target[int(parent)] if parent.isdigit() else target[parent]
        if value is KeyError:
            del target[last]
        else:
            target[last] = value

    return apply


COMMIT = "commits.0."
FORGED: list[Any] = [
    {},
    [{"least": "1"}],
    [{"column": "n", "least": 1}],
    [{"column": "n", "greatest": "x" * (MAX_FIGURE + 1)}],
    [{"column": "n", "nulls": -1}],
    [{"column": "n"}] * 21,
]
HOSTILE = [
    ("version", 2, "BAD_VERSION"),
    ("commits", KeyError, "BAD_FIELD"),
    ("jobId", "someone-else", "WRONG_JOB"),
    (COMMIT + "jobId", "someone-else", "WRONG_JOB"),
    (COMMIT + "taskId", "t4", "WRONG_JOB"),
    (COMMIT + "attemptId", "a1", "WRONG_JOB"),
    (COMMIT + "version", 1, "BAD_VERSION"),
    (COMMIT + "rows", 2**63 - 1, "BAD_FIELD"),  # two of them are more than a record may have
    (COMMIT + "bucket", "other", "NOT_CONTAINED"),
    (COMMIT + "bucket", "", "BAD_FIELD"),
    (COMMIT + "destinationKey", f"sales2/part-{JOB}.parquet", "NOT_CONTAINED"),
    (COMMIT + "destinationKey", f"/sales/part-{JOB}.parquet", "NOT_CONTAINED"),
    (COMMIT + "destinationKey", f"sales/../other/part-{JOB}.parquet", "NOT_CONTAINED"),
    (COMMIT + "destinationKey", f"sales/./part-{JOB}.parquet", "NOT_CONTAINED"),
    (COMMIT + "destinationKey", f"sales//part-{JOB}.parquet", "NOT_CONTAINED"),
    (COMMIT + "destinationKey", "sales/_SUCCESS", "NOT_CONTAINED"),
    (COMMIT + "destinationKey", f"sales/_commits/_{JOB}.jsonl", "NOT_CONTAINED"),
    (COMMIT + "destinationKey", f"sales/__magic_job-x/part-{JOB}", "NOT_CONTAINED"),
    (COMMIT + "destinationKey", f"sales/.hidden/part-{JOB}", "NOT_CONTAINED"),
    (COMMIT + "destinationKey", "sales/part-00000.parquet", "NAME_NOT_UNIQUE"),
    (COMMIT + "destinationKey", f"sales/part.{JOB}.parquet", "NAME_NOT_UNIQUE"),
    (COMMIT + "destinationKey", f"sales/{JOB}/part.parquet", "NAME_NOT_UNIQUE"),
    (COMMIT + "destinationKey", f"sales/part-{JOB}-0.parquet", "NAME_NOT_UNIQUE"),
    (COMMIT + "destinationKey", f"sales/part-{JOB}-{OTHER_JOB}.parquet", "NAME_NOT_UNIQUE"),
    (COMMIT + "destinationKey", f"sales/{'x' * 1024}-{JOB}", "NOT_CONTAINED"),
    (COMMIT + "destinationKey", "sales/", "NOT_CONTAINED"),
    (COMMIT + "destinationKey", f"sales/a\nb-{JOB}", "NOT_CONTAINED"),
    (COMMIT + "destinationKey", f"sales/a\x00b-{JOB}", "NOT_CONTAINED"),
    (COMMIT + "destinationKey", "", "BAD_FIELD"),
    (COMMIT + "uploadId", "", "BAD_FIELD"),
    (COMMIT + "etags", [], "BAD_FIELD"),
    (COMMIT + "etags", ["a", ""], "BAD_FIELD"),
    (COMMIT + "etags", ["a", 1], "BAD_FIELD"),
    (COMMIT + "etags", ["a"] * (MAX_PARTS + 1), "BAD_FIELD"),
    (COMMIT + "etags", ["a" * (MAX_ETAG + 1)], "BAD_FIELD"),
    (COMMIT + "etags", [{"etag": "a" * (MAX_ETAG + 1)}], "BAD_FIELD"),
    (COMMIT + "length", -1, "BAD_FIELD"),
    (COMMIT + "length", 2**62, "BAD_FIELD"),
    *(("checked", said, "BAD_FIELD") for said in FORGED),
]


PARTED = one_file(etags=('"0123456789abcdef0123456789abcdef"',) * MAX_PARTS)


def parted(count: int) -> PendingSet:
    """Files of as many parts as S3 takes."""
    return one_set(*(replace(PARTED, key=f"sales/{n}-{JOB}.parquet") for n in range(count)))


def test_the_largest_manifest_is_written_and_read() -> None:
    """As many files as a task may have, with long keys; and files of as many parts as may be."""
    name = "dt=2026-11-21/" + "x" * 200
    many = one_set(*(one_file(key=f"sales/{name}-{n:05}-{JOB}.parquet") for n in range(MAX_FILES)))
    for pending in (many, parted(40)):
        body = encode_pendingset(pending)
        assert len(decode_pendingset(body, DIRECTORY, NAME).files) == len(pending.files)


def test_a_writer_refuses_what_no_reader_takes() -> None:
    """At the task, where it can be mended, and not at the job's end."""
    twice = one_set(one_file(), one_file(upload_id="other"))
    for pending, code in ((parted(60), "TOO_LARGE"), (twice, "DUPLICATE_KEY")):
        with pytest.raises(InvalidInputError) as caught:
            encode_pendingset(pending)
        assert caught.value.code == code
