"""Ids, destinations and keys: what is accepted, what is refused, and whose a name says it is."""

import uuid
from dataclasses import fields
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3commit.core.formats.layout import (
    ALIAS_ENDS,
    JobDirectory,
    check_job_id,
    is_hidden,
    owner_of,
    parse_destination,
    parse_directory,
    parse_manifest_key,
)
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import InvalidInputError
from tests.core.world import JOB, OTHER_JOB

UUIDS = st.uuids().map(str)
DIRECTORY = JobDirectory(Destination("lake", "sales/north/"), JOB)


# --- a job's id


@given(UUIDS)
def test_a_uuid_is_a_job_id_in_either_case(job_id: str) -> None:
    assert check_job_id(job_id) == job_id
    assert check_job_id(uuid.UUID(job_id)) == job_id  # type: ignore[arg-type]
    assert check_job_id(job_id.upper()) == job_id.upper()


@pytest.mark.parametrize(
    "bad",
    [
        "",
        JOB[:-1],
        JOB + "0",
        JOB + "\n",
        f"{JOB}/",
        JOB.replace("-", ""),
        JOB.replace("b", "g"),
        "urn:uuid:" + JOB,
        "\u0660" + JOB[1:],
        "x" * 10_000,
    ],
)
def test_another_form_is_no_job_id(bad: str) -> None:
    with pytest.raises(InvalidInputError, match="expected a UUID") as caught:
        check_job_id(bad)
    assert caught.value.code == "BAD_ID"
    assert len(caught.value.message) < 150


# --- whose a file is


@pytest.mark.parametrize(
    "key",
    [
        f"sales/part-0-{JOB}.parquet",
        f"sales/dt=2026-11-21/part-00003-{JOB}.c000.snappy.parquet",
        f"sales/{JOB}",
        f"sales/part-{OTHER_JOB}-{JOB}.csv",
        DIRECTORY.commits,
    ],
)
def test_i5_the_id_that_ends_the_name_before_its_first_dot_is_the_owners(key: str) -> None:
    assert owner_of(key) == JOB


@pytest.mark.parametrize(
    "key",
    [
        f"sales/part-{JOB}-{OTHER_JOB}.parquet",  # of the other, with this id in the middle
        f"sales/{JOB}-0.parquet",
        f"sales/part-00003-{JOB}-c000.snappy.parquet",  # of a write of Spark's own
        f"sales/part{JOB}.parquet",
        f"sales/part-{JOB.upper()}.parquet",
        f"sales/part-0.{JOB}",
        f"sales/part-{OTHER_JOB}.x-{JOB}.parquet",
        f"sales/.{JOB}",
        f"sales/__{JOB}.jsonl",
        f"sales/x_{JOB}.jsonl",
        f"{JOB}/part-0.parquet",
        f"sales/part-{JOB}/",
        "sales/part-0.parquet",
        "",
    ],
)
def test_i5_an_id_elsewhere_in_the_key_proves_nothing(key: str) -> None:
    assert owner_of(key) != JOB


@given(UUIDS, UUIDS, st.text())
def test_i5_no_name_says_of_two_jobs_that_they_made_it(one: str, two: str, text: str) -> None:
    for key in (f"{text}-{one}.{two}", f"{text}{two}-{one}", f"{one}/{text}-{two}"):
        assert owner_of(key) in {one, two, None}


# --- a destination


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
@pytest.mark.parametrize("end", ["", "/"])
def test_a_destination_is_a_bucket_and_a_prefix_with_a_slash(scheme: str, end: str) -> None:
    assert parse_destination(f"{scheme}://lake/a/_b/.c{end}") == Destination("lake", "a/_b/.c/")


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "lake/sales",
        "S3://lake/sales",
        "https://lake/sales",
        "s3://",
        "s3:///sales",
        "s3://lake",
        "s3://lake/",
        "s3://lake//sales",
        "s3://lake/a//b",
        "s3://lake/a/.",
        "s3://lake/a/../b",
        "s3://Lake/sales",
        "s3://la_ke/sales",
        "s3://lake:80/sales",
        "s3://" + "x" * 64 + "/sales",
        *(f"s3://lake{end}/sales" for end in ALIAS_ENDS),
        f"s3://lake/__magic_job-{JOB}/",
        "s3://lake/__magic_job-/sales",
        # What S3 can not list (I12).
        *(f"s3://lake/sales/a{bad}b/" for bad in "\x00\n\x1f\x7f\ufffe\uffff\ud800"),
    ],
)
def test_what_no_table_may_have_as_its_place_is_refused(bad: str) -> None:
    with pytest.raises(InvalidInputError, match="path ") as caught:
        parse_destination(bad)
    assert caught.value.code == "BAD_PATH"


# --- the keys of a job, and back


def test_no_document_has_a_name_that_a_glob_takes_for_data() -> None:
    """Spark and Hadoop filter what a glob gives by a file's own name, not by its directory's.

    Of two names, one in the other, one is hidden too: Hadoop fails at a directory in a directory
    that a glob gave ("Not a file").
    """
    # Names of no document.
    taken = {*("bucket", "ref", "prefix", "lists", "tasks", "pipeline_prefix", "replaced")}
    keys = [getattr(DIRECTORY, one.name) for one in fields(DIRECTORY) if one.name not in taken]
    keys = [key for key in keys if isinstance(key, str) and key != DIRECTORY.job_id]
    made = (DIRECTORY.index, DIRECTORY.page, DIRECTORY.once, DIRECTORY.key_note)
    keys += [*(make("0" * 64) for make in made), DIRECTORY.manifest("t", "a")]
    assert len(keys) == 12
    for key in keys:
        below = key.removeprefix(DIRECTORY.destination.prefix).split("/")
        assert below[-1].startswith("_")
        plain = [not name.startswith("_") for name in below]
        assert not any(map(all, pairwise(plain))), key


@pytest.mark.parametrize("prefix", ["sales/", "sales/north/", "a b/dt=1/ü/"])
def test_every_key_of_a_job_directory_leads_back_to_it(prefix: str) -> None:
    directory = JobDirectory(Destination("lake", prefix), str(uuid.uuid4()))
    keys = (directory.prefix, directory.job, directory.request, directory.result, directory.tasks)
    for key in (*keys, directory.manifest("t", "a"), directory.prefix + "other/x"):
        assert parse_directory("lake", key) == directory


@pytest.mark.parametrize(
    "key",
    [
        "",
        "sales/part-0.parquet",
        DIRECTORY.commits,
        DIRECTORY.success,
        DIRECTORY.prefix.removesuffix("/"),
        "sales/__magic_job-/_job.json",
        f"sales/__magic_job-{JOB}0/_job.json",
        f"sales/x__magic_job-{JOB}/_job.json",
        f"sales/__magic_{JOB}/_job.json",
    ],
)
def test_a_key_in_no_job_directory_is_refused(key: str) -> None:
    with pytest.raises(InvalidInputError, match="is not in a job directory") as caught:
        parse_directory("lake", key)
    assert caught.value.code == "BAD_KEY"


_IDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", fullmatch=True)


@given(_IDS, _IDS)
def test_a_manifests_key_leads_back_to_its_attempt(task_id: str, attempt_id: str) -> None:
    key = DIRECTORY.manifest(task_id, attempt_id)
    assert parse_manifest_key("lake", key) == (DIRECTORY, task_id, attempt_id)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "_job.json",
        "_tasks/_0.pendingset",
        "_tasks/0/0.pendingset",
        "tasks/0/_0.pendingset",
        "other/0/_0.pendingset",
        "_tasks/0/0.json",
        "_tasks/0/_0.pendingset/",
        "_tasks//_0.pendingset",
        "_tasks/../_0.pendingset",
        "_tasks/0/_a.b.pendingset",
        f"_tasks/{'x' * 65}/_0.pendingset",
    ],
)
def test_a_key_that_is_no_manifests_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_manifest_key("lake", DIRECTORY.prefix + name)
    assert caught.value.code == "BAD_KEY"


# --- what readers see


@pytest.mark.parametrize(
    ("relative_key", "hidden"),
    [
        ("x", False),
        ("x_y.z", False),
        ("_x", True),
        ("a/_x", True),
        ("_x/a", True),
        ("_day=1/x", False),
        ("_day=1/_x", True),
        ("_x=1", True),
        ("a/_x=1", True),
        ("a/_x=1/b", False),
        (".x=1", True),
        ("a/.x/b", True),
        (f"_commits/_{JOB}.jsonl", True),
        (f"__magic_job-{JOB}/_job.json", True),
    ],
)
def test_i7_names_that_readers_skip_are_hidden(relative_key: str, hidden: bool) -> None:
    assert is_hidden(relative_key) is hidden


@pytest.mark.parametrize("prefix", ["", "/", "a//", "a/../", f"a/__magic_job-{OTHER_JOB}/"])
def test_i7_a_job_directory_where_no_table_may_be_is_refused(prefix: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_directory("lake", f"{prefix}__magic_job-{JOB}/_request.json")


# --- names that no table may have (I12)


@pytest.mark.parametrize(
    "reserved",
    ["_commits", "__magic", f"__magic_job-{JOB}", "__magic_job-x", "_SUCCESS", "_s3commit"],
)
@pytest.mark.parametrize("path", ["{}", "{}/dt=1", "sales/{}", "sales/{}/once"])
def test_i12_no_element_of_a_path_is_a_name_of_the_protocol(reserved: str, path: str) -> None:
    with pytest.raises(InvalidInputError, match="which is not allowed") as caught:
        parse_destination("s3://lake/" + path.format(reserved))
    assert caught.value.code == "BAD_PATH"


@pytest.mark.parametrize("name", ["_commits=1", "x_commits", "_SUCCESS2", "__magician"])
def test_a_name_that_only_looks_like_one_of_the_protocol_is_a_table(name: str) -> None:
    assert parse_destination(f"s3://lake/sales/{name}/").prefix == f"sales/{name}/"


def test_a_destination_leaves_room_for_the_names_of_the_protocol() -> None:
    directory = JobDirectory(parse_destination("s3://lake/" + "é" * 400), JOB)
    assert len(directory.manifest("t" * 64, "a" * 64).encode()) <= 1024
    with pytest.raises(InvalidInputError, match="more than 800 bytes"):
        parse_destination("s3://lake/" + "é" * 401)
