"""Reading by URL: what is visible, and no hidden name as data."""

from __future__ import annotations

from typing import Any

import fsspec
import pytest

from s3commit.core.model.errors import InvalidInputError
from tests.lake import Lake


@pytest.fixture
def table(lake: Lake) -> Lake:
    for key in (
        "t/a.csv",
        "t/dt=1/b.csv",
        "t/dt=1/_temporary/c.csv",
        "t/_hour=2/d.csv",
        "t/_SUCCESS",
        "t/_commits/1.jsonl",
        "t/.hidden/e",
        "t/__magic_job-1/job.json",
        "t/directory/",
        "t2/f.csv",
    ):
        lake.client.put_object(Bucket=lake.bucket, Key=key, Body=key.encode())
    return lake


def names(lake: Lake, found: list[str]) -> list[str]:
    return [name.removeprefix(f"{lake.bucket}/") for name in found]


def test_a_listing_has_no_hidden_names_and_no_siblings(table: Lake, fs: Any, url: str) -> None:
    for path in (url, f"{url}/", f"{table.bucket}/t"):
        listed = names(table, fs.ls(path, detail=False))
        assert listed == ["t/_hour=2", "t/a.csv", "t/directory", "t/dt=1"]
    assert names(table, fs.ls(f"{url}/dt=1", detail=False)) == ["t/dt=1/b.csv"]
    assert names(table, fs.ls(f"{url}/a.csv", detail=False)) == ["t/a.csv"]
    assert names(table, fs.ls(f"s3commit://{table.bucket}", detail=False)) == ["t", "t2"]
    assert fs.ls(f"{url}/directory") == []
    with pytest.raises(FileNotFoundError):
        fs.ls(f"{url}/nothing")


def test_find_glob_walk_and_du_see_the_same_data(table: Lake, fs: Any, url: str) -> None:
    data = ["t/_hour=2/d.csv", "t/a.csv", "t/dt=1/b.csv"]
    assert names(table, fs.find(url)) == data
    assert names(table, fs.find(f"{url}/a.csv")) == ["t/a.csv"]
    assert set(fs.find(url, detail=True)) == {f"{table.bucket}/{key}" for key in data}
    assert fs.find(f"{url}/nothing") == []
    assert names(table, fs.find(url, maxdepth=1)) == ["t/a.csv"]
    assert sorted(names(table, fs.glob(f"{url}/**/*.csv"))) == data
    assert names(table, fs.glob(f"{url}/dt=*/*")) == ["t/dt=1/b.csv"]
    assert fs.du(url) == sum(map(len, data))


def test_info_tells_files_from_directories(table: Lake, fs: Any, url: str) -> None:
    file = fs.info(f"{url}/a.csv")
    assert (file["type"], file["size"]) == ("file", len("t/a.csv"))
    assert fs.modified(f"{url}/a.csv") == file["LastModified"]
    assert fs.info(url)["type"] == fs.info(f"{url}/")["type"] == "directory"
    assert fs.isdir(f"s3commit://{table.bucket}")
    assert (fs.isfile(f"{url}/a.csv"), fs.exists(f"{url}/nothing")) == (True, False)
    with pytest.raises(FileNotFoundError, match="nothing"):
        fs.info(f"{url}/nothing")
    with pytest.raises(InvalidInputError, match="needs a bucket"):
        fs.ls("s3commit://")


def test_a_hidden_name_can_be_read_by_its_path(table: Lake, fs: Any, url: str) -> None:
    assert fs.cat(f"{url}/_SUCCESS") == b"t/_SUCCESS"
    assert names(table, fs.ls(f"{url}/_commits", detail=False)) == ["t/_commits/1.jsonl"]


def test_files_are_read_whole_and_in_ranges(table: Lake, fs: Any, url: str) -> None:
    body = bytes(range(256)) * 1000
    table.client.put_object(Bucket=table.bucket, Key="t/big", Body=body)
    with fsspec.open(f"{url}/big", "rb", block_size=1000) as file:
        assert file.read(10) == body[:10]
        assert file.seek(100_000) == 100_000
        assert file.read(3000) == body[100_000:103_000]
        assert file.seek(0) == 0
        assert file.read() == body
    assert fs.cat_file(f"{url}/big", start=5, end=9) == body[5:9]
    assert fs.cat_file(f"{url}/big", start=9, end=9) == b""
    with fsspec.open(f"{url}/a.csv", "r") as text:
        assert text.read() == "t/a.csv"
    with pytest.raises(FileNotFoundError):
        fs.open(f"{url}/nothing")


def test_c7_a_file_that_is_replaced_while_it_is_read_is_noticed(
    table: Lake, fs: Any, url: str
) -> None:
    table.client.put_object(Bucket=table.bucket, Key="t/big", Body=b"a" * 10_000)
    with fs.open(f"{url}/big", block_size=100) as file:
        assert file.read(100) == b"a" * 100
        table.client.put_object(Bucket=table.bucket, Key="t/big", Body=b"b" * 10_000)
        with pytest.raises(OSError, match="was replaced while it was read: open it again"):
            file.seek(5000)
            file.read(1000)


def test_what_can_not_be_reached_is_an_os_error(
    fs: Any, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(PermissionError, match="credentials"):
        fs.ls(url)


@pytest.mark.parametrize(
    "act",
    [
        lambda fs, path: fs.rm(path),
        lambda fs, path: fs.rm_file(path),
        lambda fs, path: fs.rm(path, recursive=True),
        lambda fs, path: fs.delete(path),
        lambda fs, path: fs.rmdir(path),
        lambda fs, path: fs.mv(path, path + "2"),
        lambda fs, path: fs.rename(path, path + "2"),
        lambda fs, path: fs.cp_file(path, path + "2"),
        lambda fs, path: fs.copy(path, path + "2", recursive=True),
        lambda fs, path: fs.touch(path),
    ],
)
def test_i5_nothing_is_removed_moved_or_copied(table: Lake, fs: Any, url: str, act: Any) -> None:
    with pytest.raises(OSError, match=r"s3commit:// does not support \w+ files: ") as caught:
        act(fs, f"{url}/a.csv")
    assert "\n" not in str(caught.value)
    assert table.body("t/a.csv") == b"t/a.csv"


def test_directories_need_not_be_made(table: Lake, fs: Any, url: str) -> None:
    before = table.visible()
    fs.mkdir(f"{url}/new")
    fs.makedirs(f"{url}/new/deep", exist_ok=True)
    assert table.visible() == before
