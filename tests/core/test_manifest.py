"""The pendingset codec: what goes in comes out, and what is amiss is refused whole (I7)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3commit.core.formats.manifest import (
    MAX_ETAG,
    MAX_EXTRAS,
    MAX_FILES,
    MAX_MANIFEST_BYTES,
    MAX_PARTS,
    decode_pendingset,
    encode_pendingset,
    expected_etag,
)
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.pending import PendingFile, PendingSet
from tests.core.world import BUCKET, JOB, OTHER_JOB, job_directory

DIRECTORY = job_directory()


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
    rows=st.none() | st.integers(0, 2**62),
    created=st.integers(0, 2**62),
    text=text,
    extra=st.dictionaries(text, text, max_size=3),
)


@given(st.lists(files, max_size=5, unique_by=lambda file: file.key))
def test_a_pendingset_comes_back_as_it_was(found: list[PendingFile]) -> None:
    pending = one_set(*found) if found else PendingSet(JOB, (), "t3", "a0")
    decoded = decode_pendingset(encode_pendingset(pending), DIRECTORY)
    assert [
        (file.key, file.upload_id, file.etags, file.length, file.rows, file.extra)
        for file in decoded.files
    ] == [
        (file.key, file.upload_id, file.etags, file.length, file.rows, file.extra)
        for file in pending.files
    ]


def test_hadoops_own_pendingset_is_read() -> None:
    """As S3A's serializer writes it: nulls, quoted etags, the magic path in ``uri``."""
    commit = {
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
    body = json.dumps({"version": 3, "jobId": JOB, "commits": [commit], "iostatistics": {}})
    [file] = decode_pendingset(body.encode(), DIRECTORY).files
    assert (file.length, file.rows, file.etags) == (6286, None, tuple(commit["etags"]))  # type: ignore[arg-type]


def test_what_hadoop_needs_is_written() -> None:
    written = json.loads(encode_pendingset(one_set()))
    assert (written["version"], written["jobId"]) == (3, JOB)
    [commit] = written["commits"]
    assert commit["version"] == 2
    assert commit["destinationKey"].startswith("sales/")
    assert commit["uri"] == f"s3a://{BUCKET}/{commit['destinationKey']}"
    # The fields of Hadoop's SinglePendingCommit, without its getter-only partCount.
    assert set(commit) >= {
        "filename",
        "uri",
        "uploadId",
        "bucket",
        "destinationKey",
        "created",
        "saved",
        "date",
        "jobId",
        "taskId",
        "text",
        "etags",
        "extraData",
        "length",
        "iostatistics",
    }
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
HOSTILE = [
    ("version", 2, "BAD_VERSION"),
    ("version", "3", "BAD_VERSION"),
    ("version", True, "BAD_VERSION"),
    ("commits", KeyError, "BAD_FIELD"),
    ("commits", {}, "BAD_FIELD"),
    ("commits", [1], "BAD_FIELD"),
    ("jobId", "someone-else", "WRONG_JOB"),
    ("jobId", 7, "BAD_FIELD"),
    (COMMIT + "jobId", "someone-else", "WRONG_JOB"),
    (COMMIT + "taskId", "t4", "WRONG_JOB"),
    (COMMIT + "version", 1, "BAD_VERSION"),
    (COMMIT + "bucket", "other", "NOT_CONTAINED"),
    (COMMIT + "bucket", "", "BAD_FIELD"),
    (COMMIT + "destinationKey", f"sales2/part-{JOB}.parquet", "NOT_CONTAINED"),
    (COMMIT + "destinationKey", f"/sales/part-{JOB}.parquet", "NOT_CONTAINED"),
    (COMMIT + "destinationKey", f"sales/../other/part-{JOB}.parquet", "NOT_CONTAINED"),
    (COMMIT + "destinationKey", f"sales/./part-{JOB}.parquet", "NOT_CONTAINED"),
    (COMMIT + "destinationKey", f"sales//part-{JOB}.parquet", "NOT_CONTAINED"),
    (COMMIT + "destinationKey", "sales/_SUCCESS", "NOT_CONTAINED"),
    (COMMIT + "destinationKey", f"sales/_commits/{JOB}.jsonl", "NOT_CONTAINED"),
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
    (COMMIT + "uploadId", None, "BAD_FIELD"),
    (COMMIT + "etags", [], "BAD_FIELD"),
    (COMMIT + "etags", ["a", ""], "BAD_FIELD"),
    (COMMIT + "etags", ["a", 1], "BAD_FIELD"),
    (COMMIT + "etags", ["a"] * (MAX_PARTS + 1), "BAD_FIELD"),
    (COMMIT + "etags", ["a" * (MAX_ETAG + 1)], "BAD_FIELD"),
    (COMMIT + "etags", [{"etag": "a" * (MAX_ETAG + 1)}], "BAD_FIELD"),
    (COMMIT + "length", -1, "BAD_FIELD"),
    (COMMIT + "length", 1.5, "BAD_FIELD"),
    (COMMIT + "length", True, "BAD_FIELD"),
    (COMMIT + "length", 2**62, "BAD_FIELD"),
    (COMMIT + "rows", -1, "BAD_FIELD"),
    (COMMIT + "extraData", {"a": 1}, "BAD_FIELD"),
    (COMMIT + "extraData", {"\ud800": "a"}, "BAD_FIELD"),
    (COMMIT + "extraData", {f"{n}": "a" for n in range(MAX_EXTRAS + 1)}, "BAD_FIELD"),
    (COMMIT + "text", "\ud800", "BAD_FIELD"),
]


@pytest.mark.parametrize(("path", "value", "code"), HOSTILE, ids=lambda value: str(value)[:40])
def test_i7_a_hostile_or_broken_manifest_is_refused_whole(path: str, value: Any, code: str) -> None:
    document = json.loads(encode_pendingset(one_set()))
    change(path, value)(document)
    with pytest.raises(InvalidInputError) as caught:
        decode_pendingset(json.dumps(document).encode(), DIRECTORY)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe{}",
        b'{"version":3,"version":3,"commits":[]}',
        b'{"version":3,"commits":[],"x":NaN}',
        b'{"version":3,"commits":[],"x":-Infinity}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"version":3,"commits":[]} trailing',
        b'{"version":' + b"9" * 5000 + b"}",
    ],
    ids=lambda body: body[:30].decode("latin-1"),
)
def test_i7_what_is_no_strict_json_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidInputError):
        decode_pendingset(body, DIRECTORY)


def test_i7_every_truncation_of_a_manifest_is_refused() -> None:
    body = encode_pendingset(one_set())
    for length in range(len(body)):
        with pytest.raises(InvalidInputError):
            decode_pendingset(body[:length], DIRECTORY)


def test_an_oversized_manifest_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(InvalidInputError) as caught:
        decode_pendingset(b" " * (MAX_MANIFEST_BYTES + 1), DIRECTORY)
    assert caught.value.code == "TOO_LARGE"


def test_the_largest_manifest_is_written_and_read() -> None:
    """As many files as a task may have, with long keys; and files of as many parts as S3 takes."""
    name = "dt=2026-11-21/" + "x" * 200
    many = one_set(*(one_file(key=f"sales/{name}-{n:05}-{JOB}.parquet") for n in range(MAX_FILES)))
    parted = one_file(etags=('"0123456789abcdef0123456789abcdef"',) * MAX_PARTS)
    large = one_set(*(replace(parted, key=f"sales/{n}-{JOB}.parquet") for n in range(40)))
    for pending in (many, large):
        assert len(decode_pendingset(encode_pendingset(pending), DIRECTORY).files) == len(
            pending.files
        )


def test_a_writer_refuses_what_no_reader_takes() -> None:
    """At the task, where it can be mended, and not at the job's end."""
    parted = one_file(etags=('"0123456789abcdef0123456789abcdef"',) * MAX_PARTS)
    files = (replace(parted, key=f"sales/{n}-{JOB}.parquet") for n in range(60))
    with pytest.raises(InvalidInputError) as caught:
        encode_pendingset(one_set(*files))
    assert caught.value.code == "TOO_LARGE"


def test_two_commits_of_one_key_are_refused_on_load_and_on_save() -> None:
    twice = one_set(one_file(), one_file(upload_id="other"))
    with pytest.raises(InvalidInputError) as caught:
        encode_pendingset(twice)
    assert caught.value.code == "DUPLICATE_KEY"
    document = json.loads(encode_pendingset(one_set()))
    document["commits"] *= 2
    with pytest.raises(InvalidInputError) as caught:
        decode_pendingset(json.dumps(document).encode(), DIRECTORY)
    assert caught.value.code == "DUPLICATE_KEY"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@given(st.data())
def test_i7_whatever_a_field_holds_it_is_read_contained_or_refused(data: st.DataObject) -> None:
    document = json.loads(encode_pendingset(one_set()))
    commit = document["commits"][0]
    commit[data.draw(st.sampled_from(sorted(commit)))] = data.draw(json_values)
    body = json.dumps(document).encode()
    try:
        pending = decode_pendingset(body, DIRECTORY)
    except InvalidInputError:
        return
    for file in pending.files:
        assert file.bucket == BUCKET
        assert file.key.startswith("sales/")
        assert JOB in file.key.rsplit("/", 1)[-1]
