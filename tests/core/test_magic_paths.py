"""Hadoop's path rules: the cases of its TestMagicCommitPaths, by their names, in our words.

Where Hadoop's has the older ``__magic`` for its constant, both forms are tried.
"""

from __future__ import annotations

import pytest

from s3commit.core.formats.hadoop import (
    BASE,
    destination_key,
    parse_manifest_name,
    task_number,
    task_of_attempt,
)
from s3commit.core.formats.layout import MAGIC_PREFIX
from s3commit.core.model.errors import InvalidInputError
from tests.core.world import JOB, OTHER_JOB


@pytest.fixture(params=["__magic", f"{MAGIC_PREFIX}{JOB}"])
def magic(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def final(*elements: str) -> list[str]:
    """The elements of the path at which what is written to a path appears."""
    return destination_key("/".join(elements) + ".pending").split("/")


@pytest.mark.parametrize(
    ("path", "elements"),
    [
        ("//", [""]),
        ("/", [""]),
        ("/a/b/c", ["a", "b", "c"]),
        ("/a/b/c/", ["a", "b", "c"]),
        ("/a", ["a"]),
        ("/a/", ["a"]),
        ("first", ["first"]),
        ("first/2", ["first", "2"]),
    ],
)
def test_split_path(path: str, elements: list[str]) -> None:
    assert final(path) == elements


def test_parents_magic_root_with_child(magic: str) -> None:
    assert final(magic, "child") == ["child"]


def test_parent_magic_with_child(magic: str) -> None:
    assert final("parent", magic, "child") == ["parent", "child"]


def test_parent_and_children_deep_magic(magic: str) -> None:
    deep = ["parent1", "parent2", magic, "child1", "child2"]
    assert final(*deep) == ["parent1", "parent2", "child2"]
    assert final(*deep[:3], BASE, *deep[3:]) == ["parent1", "parent2", "child1", "child2"]


def test_children_magic_without_child(magic: str) -> None:
    with pytest.raises(InvalidInputError, match="names no file"):
        final("parent", magic)


def test_final_destination_no_magic() -> None:
    assert final("first", "__magical", "2") == ["first", "__magical", "2"]


def test_final_destination_magic1(magic: str) -> None:
    assert final("first", magic, "2") == ["first", "2"]


def test_final_destination_magic2(magic: str) -> None:
    assert final("first", magic, "2", "3.txt") == ["first", "3.txt"]


def test_final_destination_root_magic2(magic: str) -> None:
    assert final(magic, "2", "3.txt") == ["3.txt"]


def test_final_destination_magic_no_child(magic: str) -> None:
    with pytest.raises(InvalidInputError, match="names no file"):
        final(magic)


def test_final_destination_base_direct_child(magic: str) -> None:
    assert final(magic, BASE, "3.txt") == ["3.txt"]


def test_final_destination_base_no_child(magic: str) -> None:
    with pytest.raises(InvalidInputError, match="names no file"):
        destination_key(f"{magic}/{BASE}/.pending")


def test_final_destination_base_subdirs_child(magic: str) -> None:
    assert final(magic, "4", BASE, "2", "3.txt") == ["2", "3.txt"]


def test_final_destination_ignores_base_before_magic(magic: str) -> None:
    assert final(BASE, "home", magic, "2", "3.txt") == [BASE, "home", "3.txt"]


# Ours.


def test_a_pending_file_stands_for_the_file_below_base(magic: str) -> None:
    attempt = "attempt_202611220232428606156846902568140_0000_m_000002_2"
    key = f"t/{magic}/job-1/00/tasks/{attempt}/{BASE}/place=Bad Ems/50%25.parquet.pending"
    assert destination_key(key) == "t/place=Bad Ems/50%25.parquet"
    with pytest.raises(InvalidInputError, match=r"no \.pending file"):
        destination_key(key.removesuffix(".pending"))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (f"job-{JOB}/00/task_1_0000_m_000002.pendingset", ("task_1_0000_m_000002", "00")),
        (f"job-{JOB}/12/t.pendingset", ("t", "12")),
        (f"job-{OTHER_JOB}/00/t.pendingset", None),
        (f"job-{JOB}/tasks/t.pendingset", None),
        (f"job-{JOB}/00/t.pending", None),
        (f"job-{JOB}/00/tasks/a/__base/t.pendingset", None),
        (f"job-{JOB}/t.pendingset", None),
        ("tasks/t/a.pendingset", None),
    ],
)
def test_manifests_of_s3a_are_told_by_their_place(name: str, found: object) -> None:
    assert parse_manifest_name(name, JOB) == found


def test_hadoop_writes_the_attempt_where_the_task_belongs() -> None:
    task = task_of_attempt("attempt_202611220232428606156846902568140_0000_m_000002_2")
    assert task == "task_202611220232428606156846902568140_0000_m_000002"
    assert task_of_attempt("t3") is None
    assert task_number(task) == 2
    assert task_number("t3") is None
