"""What lies at a destination decides, before the first task, whether a write is sensible."""

from collections.abc import Iterator, Sequence
from typing import NoReturn

import pytest

from s3commit.core.formats.layout import parse_destination
from s3commit.core.model.errors import AccessError, InvalidInputError
from s3commit.core.ports.objects import ListedObject
from s3commit.writer.place import check_place
from tests.fakes.memory import MemoryObjectStore

DESTINATION = parse_destination("s3://lake/p/t/")
HIDDEN = ["p/t/_commits/_x.jsonl", "p/t/__magic_job-1/_job.json", "p/t/_SUCCESS", "p/t/.a/part-0"]


def holding(*keys: str) -> MemoryObjectStore:
    store = MemoryObjectStore("lake")
    for key in keys:
        store.put("lake", key, b"x")
    return store


def refusal(keys: Sequence[str], partition_by: Sequence[str], *, objects: bool) -> str | None:
    """The message, of what stands for directories or of files that stay."""
    try:
        check_place(holding(*keys), DESTINATION, partition_by, others_stay=not objects)
    except InvalidInputError as error:
        assert error.code == ("PATH_IS_OBJECT" if objects else "OTHER_PARTITIONS")
        assert error.message.endswith(" Nothing was written.")
        return error.message
    return None


@pytest.mark.parametrize(
    ("key", "partition_by"),
    [
        ("p/t", []),
        ("p/t", ["dt"]),
        ("p/t/dt=1", ["dt"]),
        ("p/t/dt=", ["dt", "hour"]),
        ("p/t/a%3Db=1", ["a=b"]),
    ],
)
def test_an_object_at_a_directorys_own_name_is_refused(key: str, partition_by: list[str]) -> None:
    found = refusal([key, f"{key}/part-0", *HIDDEN], partition_by, objects=True)
    assert found is not None
    assert f"s3://lake/{key}," in found


@pytest.mark.parametrize(
    ("keys", "partition_by"),
    [
        ([], ["dt"]),
        (["p/t/", "p/t/dt=1/", "p/t/dt=1/part-0"], ["dt"]),
        (["p/t2", "p/t-1/x", "p/t.parquet", "p"], ["dt"]),
        (["p/t/dt=1"], []),  # any name is a file's where there are no partitions
        (["p/t/dt=1_$folder$", "p/t/dt=1/part-0"], ["dt"]),  # EMRFS's marker of a directory
        (["p/t/dt2=1", "p/t/dt", "p/t/hour=1"], ["dt", "hour"]),
    ],
)
def test_other_names_are_none_of_its(keys: list[str], partition_by: list[str]) -> None:
    assert refusal([*keys, *HIDDEN], partition_by, objects=True) is None


FLAT, BY_DT, BY_BOTH = "p/t/part-0", "p/t/dt=1/part-0", "p/t/dt=1/hour=2/part-0"


@pytest.mark.parametrize(
    ("keys", "good"),
    [
        ([FLAT], []),
        ([BY_DT], ["dt"]),
        ([BY_BOTH], ["dt", "hour"]),
        (["p/t/year=1/dt=1/part-0"], ["year", "dt"]),
        ([FLAT, BY_DT], ["dt"]),  # Spark reads the partitions' rows alone
        (["p/t/dt=0/_SUCCESS", "p/t/dt=0/", BY_BOTH], ["dt", "hour"]),
        (["p/t/a=1/b=2/_x", "p/t/_day=1/part-0"], ["_day"]),
        (["p/t/a%3Ab=1/part-0"], ["a:b"]),
        (["p/t/plain/dt=1/part-0", FLAT], []),
    ],
)
@pytest.mark.parametrize("by", [[], ["dt"], ["DT"], ["dt", "hour"], ["hour", "dt"], ["hour"]])
def test_files_with_other_partition_columns_are_refused(
    keys: list[str], good: list[str], by: list[str]
) -> None:
    found = refusal([*keys, *HIDDEN], by, objects=False)
    assert (found is None) == (list(map(str.lower, by)) == good)
    assert refusal([*keys, *HIDDEN], good, objects=False) is None


def test_a_table_without_files_takes_any_columns() -> None:
    assert refusal([*HIDDEN, "p/t/", "p/t/dt=1/"], ["hour"], objects=False) is None


def test_who_may_not_list_is_not_stopped() -> None:
    class Closed(MemoryObjectStore):
        def list(self, *_: object, **__: object) -> NoReturn:
            raise AccessError("no")

    check_place(Closed("lake"), DESTINATION, ["dt"], others_stay=True)
    check_place(MemoryObjectStore("other"), DESTINATION, ["dt"], others_stay=True)


def test_partitions_without_files_are_not_looked_through() -> None:
    looks = []

    class Counting(MemoryObjectStore):
        def list(self, bucket: str, prefix: str, **after: str) -> Iterator[ListedObject]:
            looks.append(prefix)
            return super().list(bucket, prefix, **after)

    store = Counting("lake")
    for number in range(50):
        store.put("lake", f"p/t/dt={number:02d}/_SUCCESS", b"")
    check_place(store, DESTINATION, ["hour"], others_stay=True)
    assert len(looks) <= 7


def test_a_huge_directory_is_not_read_to_its_end() -> None:
    asked = []

    class Counting(MemoryObjectStore):
        def names(self, bucket: str, prefix: str) -> Iterator[str]:
            for number in range(10**9):
                asked.append(number)
                yield f"_{number}"

    check_place(Counting("lake"), DESTINATION, ["dt"], others_stay=True)
    assert len(asked) <= 5_001
