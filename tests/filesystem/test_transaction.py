"""fsspec's transactions as jobs."""

from __future__ import annotations

import gc
import multiprocessing
import pickle
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import fsspec
import pytest

from s3commit.core.model.errors import InvalidInputError, JobFailedError, S3CommitError
from s3commit.core.model.job import Conflict
from s3commit.filesystem import S3CommitFileSystem
from s3commit.writer.sizes import Upload, UploadSettings
from tests.lake import Lake


def write(url: str, body: bytes = b"abc", **options: Any) -> None:
    with fsspec.open(url, "wb", **options) as file:
        file.write(body)


def test_i1_i2_what_is_written_gets_visible_together_at_the_end(
    lake: Lake, fs: Any, url: str
) -> None:
    with fs.transaction as job:
        with fs.open(f"{url}/dt=1/a.csv", "wb", rows=2) as file:
            file.write(b"abc")
        with fs.open(f"{url}/b.txt", "w", encoding="utf-8") as text:
            text.write("ü")
        fs.pipe(f"{url}/c", b"piped")
        assert lake.visible() == []
        assert not fs.exists(f"{url}/dt=1/a.csv")
    assert job.result is not None
    assert (job.result.files, job.result.bytes) == (3, 10)
    names = [key.rsplit("/", 1)[-1] for key in lake.visible()]
    assert [name[:2] for name in names] == ["b-", "c-", "a-"]
    assert all(job.result.job_id in name for name in names)
    assert lake.body(lake.visible()[0]) == "ü".encode()


def test_local_files_are_put_and_got(lake: Lake, fs: Any, url: str, tmp_path: Path) -> None:
    for name in ("a.txt", "deep/b.txt"):
        path = tmp_path / "from" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    with fs.transaction as job:
        fs.put(f"{tmp_path}/from/", f"{url}/", recursive=True)
    assert job.result.files == 2
    fs.get(f"{url}/", f"{tmp_path}/to/", recursive=True)
    got = {path.read_text() for path in (tmp_path / "to").rglob("*.txt")}
    assert got == {"a.txt", "deep/b.txt"}


def test_i2_an_exception_aborts_the_job(lake: Lake, fs: Any, url: str) -> None:
    with pytest.raises(KeyError), fs.transaction:
        write(f"{url}/a")
        raise KeyError("the caller's own")
    assert [request["action"] for request in lake.requests()] == ["abort"]
    assert "the caller's own" in lake.requests()[0]["reason"]
    assert lake.open_uploads() == []
    lake.run_pipeline()
    assert lake.visible() == []
    with fs.transaction:  # another one is another job
        write(f"{url}/a")
    assert len(lake.visible()) == 1


def test_i2_a_file_left_open_aborts_the_job(lake: Lake, fs: Any, url: str) -> None:
    with pytest.raises(InvalidInputError, match="still open"), fs.transaction:
        write(f"{url}/a")
        forgotten = fs.open(f"{url}/b", "wb")
    assert forgotten.aborted
    assert [request["action"] for request in lake.requests()] == ["abort"]
    assert lake.open_uploads() == []


def test_start_and_end_without_a_block(lake: Lake, fs: Any, url: str) -> None:
    job = fs.start_transaction()
    write(f"{url}/a")
    with pytest.raises(S3CommitError, match=f"at s3://{lake.bucket}/t/ runs already"):
        fs.start_transaction()
    fs.end_transaction()
    assert job.result.files == 1
    with pytest.raises(S3CommitError, match="no transaction runs"):
        fs.end_transaction()


def test_the_options_are_the_jobs(lake: Lake, url: str) -> None:
    fs = S3CommitFileSystem(
        f"s3://{lake.bucket}/t/",
        conflict="replace",
        names="exact",
        settings=UploadSettings(upload=Upload.STAGE),
        commit_timeout=5,
    )
    for body in (b"first", b"second"):
        with fs.transaction as job:
            assert job._job is not None
            assert (job._job.spec.conflict, job._job.commit_timeout) == (Conflict.REPLACE, 5)
            with fs.open(f"{url}/{body.decode()}.bin", "wb") as file:
                file.write(b"?" + body[1:])
                file.seek(0)
                file.write(body[:1])
    assert lake.visible() == ["t/second.bin"]  # the first was replaced
    assert lake.body("t/second.bin") == b"second"


def test_a_job_that_fails_raises_and_the_transaction_has_ended(
    lake: Lake, url: str, fs: Any
) -> None:
    fs = S3CommitFileSystem(f"s3://{lake.bucket}/t/", conditions={"minFiles": 2})
    with pytest.raises(JobFailedError, match="minFiles is 2, the job has 1"), fs.transaction:
        write(f"{url}/a")
    assert lake.visible() == []
    with pytest.raises(InvalidInputError, match="within a transaction only"):
        write(f"{url}/a")


# --- who joins which transaction


def test_a_library_with_an_instance_of_its_own_joins(lake: Lake, fs: Any, url: str) -> None:
    def elsewhere() -> None:
        assert fsspec.filesystem("s3commit") is not fs  # instances are a thread's own
        write(f"{url}/from-a-thread")

    with fs.transaction as job:
        write(f"{url}/by-url")
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join(30)
    assert job.result.files == 2


def test_what_has_ended_is_forgotten(lake: Lake, fs: Any, url: str) -> None:
    with fs.transaction as job:
        write(f"{url}/a")
    ended = weakref.ref(job)
    del job
    gc.collect()
    assert ended() is None


def test_the_nearest_of_two_transactions_is_joined(lake: Lake, url: str) -> None:
    table, partition = (S3CommitFileSystem(f"s3://{lake.bucket}/{at}") for at in ("t", "t/dt=1"))
    with table.transaction as whole, partition.transaction as part:
        write(f"{url}/dt=1/a")
        write(f"{url}/dt=10/b")
    assert (whole.result.files, part.result.files) == (1, 1)
    assert part.result.bytes == whole.result.bytes == 3


def test_of_two_at_one_place_only_their_own_filesystems_say_which(lake: Lake, url: str) -> None:
    first, second = (
        S3CommitFileSystem(f"s3://{lake.bucket}/t", commit_timeout=limit) for limit in (50, 60)
    )
    with first.transaction as one, second.transaction as two:
        with pytest.raises(InvalidInputError, match="two transactions run at"):
            write(f"{url}/a")
        second.pipe(f"{url}/b", b"12")
    assert (one.result.files, two.result.files) == (0, 1)


def test_i5_a_sibling_prefix_is_outside(lake: Lake, fs: Any, url: str) -> None:
    with fs.transaction:
        for outside in (f"{url}2/a", f"{url[:-1]}a", "s3commit://other/t/a"):
            with pytest.raises(InvalidInputError, match="outside of the transaction's destin"):
                fs.open(outside, "wb")
            with pytest.raises(InvalidInputError, match="within a transaction only"):
                write(outside)


def test_i3_a_forked_process_can_not_write_what_nobody_would_name(
    lake: Lake, fs: Any, url: str
) -> None:
    def child(answers: Any) -> None:
        try:
            fs.open(f"{url}/a", "wb")
        except Exception as error:
            answers.put(str(error))

    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    with fs.transaction:
        process = context.Process(target=child, args=(answers,))
        process.start()
        assert "outside of the transaction" in answers.get(timeout=30)
        process.join(30)
        with pytest.raises(TypeError, match="can not be pickled within its transaction"):
            pickle.dumps(fs)
    assert pickle.loads(pickle.dumps(fs)).destination == fs.destination


# --- refusals: one line that names the way that works


def test_writing_outside_of_a_transaction_is_refused(lake: Lake, fs: Any, url: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        write(f"{url}/a.csv")
    message = caught.value.message
    assert f"fsspec.filesystem('s3commit', destination='s3://{lake.bucket}/t/')" in message
    assert "\n" not in message
    assert lake.visible() == []


def test_a_transaction_without_a_destination_is_refused(lake: Lake) -> None:
    fs = fsspec.filesystem("s3commit")
    with pytest.raises(InvalidInputError, match="name it, as in fsspec"), fs.transaction:
        pass


@pytest.mark.parametrize("mode", ["ab", "xb", "r+b", "a"])
def test_other_modes_are_refused(lake: Lake, fs: Any, url: str, mode: str) -> None:
    with fs.transaction, pytest.raises(OSError, match="whole new files with 'wb'"):
        fs.open(f"{url}/a", mode)


def test_unknown_options_are_refused(lake: Lake, fs: Any, url: str) -> None:
    with pytest.raises(InvalidInputError, match="no option 'conflcit'"):
        fsspec.filesystem("s3commit", conflcit="replace")
    with fs.transaction, pytest.raises(InvalidInputError, match="no option 'row'; known are con"):
        fs.open(f"{url}/a", "wb", row=1)


def test_a_destination_that_can_not_be_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="must look like"):
        fsspec.filesystem("s3commit", destination="lake/t")


def test_without_fsspec_the_import_says_what_to_install() -> None:
    code = "import sys; sys.modules['fsspec'] = None; import s3commit.filesystem"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert (
        "ImportError: s3commit:// needs fsspec: install it, or this package with its extra" in last
    )


def test_from_a_zip_it_is_registered_by_hand() -> None:
    import s3commit.filesystem

    s3commit.filesystem.register()
    assert fsspec.get_filesystem_class("s3commit") is S3CommitFileSystem
