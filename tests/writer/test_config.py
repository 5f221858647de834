"""The choice by destination: option before longest prefix before default."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3commit.aws.s3_client import Encryption
from s3commit.core.formats.layout import parse_destination
from s3commit.core.model.conditions import Conditions
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Conflict, Destination, Scope
from s3commit.writer.config import ENVIRONMENT_VARIABLE, Config, Section, load_config, parse_config
from s3commit.writer.job import open_job
from s3commit.writer.options import KNOWN, conditions_of, encryption_of, upload_settings
from s3commit.writer.sizes import MIB, PartSizes, Upload, UploadSettings
from tests.fakes.store import MemoryObjectStore

TEXT = """
[default]
threads = 8
upload = "stream"

["s3://lake"]
threads = 16
encryption = "aws:kms"
encryptionKeyId = "key-1"

["s3a://lake/daily/"]
upload = "stage"
conflict = "replace"
partitionOverwriteMode = "dynamic"
conditions.minRows = 1
conditions.maxNullFraction.price = 0.25

["s3://lake/daily/prices"]
partSize = "64MB"
upload = "stream"

["s3://lake/open/"]
encryption = "AES256"
"""


def settings(uri: str, text: str = TEXT) -> dict[str, str]:
    return dict(parse_config(text, source="s3commit.toml").settings_for(parse_destination(uri)))


def refusal(text: str) -> str:
    with pytest.raises(InvalidInputError) as caught:
        parse_config(text, source="/etc/s3commit.toml")
    assert caught.value.code == "BAD_CONFIG"
    assert "\n" not in caught.value.message
    assert "/etc/s3commit.toml" in caught.value.message
    return caught.value.message


def test_the_longest_prefix_wins_for_each_option_alone() -> None:
    assert settings("s3://other/t/") == {"threads": "8", "upload": "stream"}
    assert settings("s3://lake/t/") == {
        "threads": "16",
        "upload": "stream",
        "encryption": "aws:kms",
        "encryptionKeyId": "key-1",
    }
    daily = settings("s3a://lake/daily")
    assert (daily["upload"], daily["conflict"], daily["threads"]) == ("stage", "replace", "16")
    assert daily["conditions.minRows"] == "1"
    assert daily["conditions.maxNullFraction.price"] == "0.25"
    prices = settings("s3://lake/daily/prices/eu")
    assert (prices["upload"], prices["partSize"], prices["conflict"]) == (
        "stream",
        "64MB",
        "replace",
    )


def test_i5_a_section_is_a_directory_and_data1_never_matches_data10() -> None:
    text = '["s3://lake/data1"]\nthreads = 3\n'
    assert settings("s3://lake/data1/", text) == {"threads": "3"}
    assert settings("s3://lake/data1/x", text) == {"threads": "3"}
    for other in ("data10", "data", "x/data1", "data1x/data1"):
        assert settings(f"s3://lake/{other}", text) == {}
    assert settings("s3://lake2/data1", text) == {}


def test_another_algorithm_drops_the_keys_of_the_one_above() -> None:
    assert encryption_of(settings("s3://lake/open/")) == Encryption("AES256")
    assert encryption_of(settings("s3://lake/t")) == Encryption("aws:kms", "key-1")
    assert encryption_of(settings("s3://other/t")) is None


ELEMENTS = st.lists(st.sampled_from(["data", "data1", "data10", "a"]), min_size=0, max_size=3)


@given(sections=st.lists(ELEMENTS, max_size=5, unique_by=tuple), at=ELEMENTS)
def test_the_order_of_sections_means_nothing_and_the_longest_directory_above_wins(
    sections: list[list[str]], at: list[str]
) -> None:
    made = [
        Section("lake", "".join(f"{element}/" for element in elements), {"threads": str(number)})
        for number, elements in enumerate(sections)
    ]
    destination = Destination("lake", "".join(f"{element}/" for element in [*at, "t"]))
    above = [number for number, found in enumerate(sections) if [*at, "t"][: len(found)] == found]
    expected = max(above, key=lambda number: len(made[number].prefix), default=None)
    for ordered in (made, made[::-1]):
        found = Config(tuple(ordered)).settings_for(destination)
        assert found.get("threads") == (None if expected is None else str(expected))


def test_without_a_file_nothing_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    assert load_config() == Config()
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "")
    assert load_config().settings_for(parse_destination("s3://lake/t")) == {}


def test_the_environment_names_the_file_and_a_path_goes_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named, given_path = tmp_path / "named.toml", tmp_path / "given.toml"
    named.write_text("[default]\nthreads = 2\n")
    given_path.write_text("[default]\nthreads = 3\n")
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(named))
    destination = parse_destination("s3://lake/t")
    assert load_config().settings_for(destination) == {"threads": "2"}
    assert load_config(given_path).settings_for(destination) == {"threads": "3"}
    assert load_config(given_path).source == str(given_path)


@pytest.mark.parametrize(
    ("content", "why"),
    [(None, "can not be read: No such file"), (b"\xff", "not UTF-8"), (b"[x", "not TOML")],
)
def test_a_file_that_can_not_be_read_is_one_line(
    tmp_path: Path, content: bytes | None, why: str
) -> None:
    path = tmp_path / "s3commit.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=f"config file {path}: it .*{why}") as caught:
        load_config(path)
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("key", ["treads", "idempotencyKey", "path", "conditions.minrows"])
def test_an_unknown_key_is_refused_with_section_and_the_known_ones(key: str) -> None:
    message = refusal(f'["s3://lake/t"]\n{key} = 1\n')
    assert f"section ['s3://lake/t']: no option '{key}'" in message
    assert all(known in message for known in KNOWN)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("threads = 0", "threads='0': give a whole number from 1 to 256"),
        ("threads = 2.5", "threads='2.5'"),
        ('threads = "٣"', "threads="),
        ('partSize = "1MB"', "5MB to 5GB"),
        ('memoryBudget = "1MB"', "at least 16MB"),
        ('upload = "later"', "one of stream, stage"),
        ('conflict = "upsert"', "one of append, fail, replace"),
        ('partitionOverwriteMode = "partition"', "one of static, dynamic"),
        ('commitTimeout = "soon"', "a time such as"),
        ('encryption = "rot13"', "one of AES256, aws:kms, aws:kms:dsse"),
        ('bucketKey = "perhaps"', "one of true, false"),
        ('encryptionKeyId = ""', "1 to 2048 printable characters"),
        ("conditions.minRows = -1", "conditions.minRows='-1': give a whole number"),
        ("conditions.maxNullFraction.x = 1.5", "a share from 0 to 1"),
        ("conditions.maxNullFraction.x = nan", "a share from 0 to 1"),
        ("conditions.minRows = 5\nconditions.maxRows = 4", "minRows 5 is more than maxRows 4"),
        ("conditions.maxNullFraction = 0.5", "no option 'conditions.maxNullFraction'"),
        ('conditions = "none"', "no option 'conditions'"),
        ("upload = 1979-05-27", "not date"),
        ("upload = ['stage']", "not list"),
        ("upload = {how = 'stage'}", "not dict"),
        ('encryptionKeyId = "k"', "KMS's"),
        ('encryption = "AES256"\nencryptionKeyId = "k"', "KMS's"),
    ],
)
def test_a_bad_value_is_refused_with_section_and_key(line: str, wanted: str) -> None:
    for section in ("[default]", '["s3://lake/t"]'):
        message = refusal(f"{section}\n{line}\n")
        assert wanted.replace("'", '"') in message.replace("'", '"')
        assert "section [" in message


@pytest.mark.parametrize(
    "section",
    ["defaults", "s3://", "s3://LAKE/t", "gs://lake/t", "/tmp/t", "s3://lake//t", "s3://lake/../t"],
)
def test_a_section_that_is_no_place_is_refused(section: str) -> None:
    assert f"section ['{section}']: name it [default]" in refusal(f'["{section}"]\nthreads = 1\n')


def test_a_place_that_stands_there_twice_is_refused() -> None:
    message = refusal('["s3://lake/t"]\nthreads = 1\n["s3a://lake/t/"]\nthreads = 2\n')
    assert "['s3a://lake/t/'] stands there twice" in message


def test_an_option_outside_of_any_section_is_refused() -> None:
    assert "'threads' stands outside of any section" in refusal("threads = 1\n")


def test_options_become_the_settings_of_a_tasks_uploads() -> None:
    assert upload_settings({}) == UploadSettings()
    assert upload_settings(
        {
            "upload": "Stage",
            "partSize": "64m",
            "threads": "2",
            "memoryBudget": "96MB",
            "spoolDirectory": "/data/tmp",
        }
    ) == UploadSettings(PartSizes(first=64 * MIB), 2, 32 * MIB, 64 * MIB, "/data/tmp", Upload.STAGE)


def test_a_word_of_the_file_is_taken_in_any_case_as_spark_takes_it() -> None:
    text = '[default]\nupload = "STAGE"\nencryption = "aes256"\nconflict = "Replace"\n'
    assert settings("s3://lake/t", text) == {
        "upload": "stage",
        "encryption": "AES256",
        "conflict": "replace",
    }


def test_options_become_conditions() -> None:
    found = settings("s3://lake/daily")
    assert conditions_of(found) == Conditions(min_rows=1, max_null_fraction={"price": 0.25})
    assert conditions_of({"upload": "stage"}) == Conditions()


# --- in open_job


OPENED = """
["s3://lake/t/"]
conflict = "replace"
partitionOverwriteMode = "dynamic"
commitTimeout = "2m"
upload = "stage"
encryption = "aws:kms"
encryptionKeyId = "key-1"
conditions.minRows = 3
"""


def test_a_job_takes_from_the_file_what_the_program_does_not_say(
    store: MemoryObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s3commit.toml"
    path.write_text(OPENED)
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(path))
    job = open_job("s3://lake/t", store=store)
    assert (job.spec.conflict, job.spec.scope) == (Conflict.REPLACE, Scope.PARTITION)
    assert job.spec.conditions == Conditions(min_rows=3)
    assert (job.settings.upload, job.commit_timeout) == (Upload.STAGE, 120.0)
    assert job.encryption == Encryption("aws:kms", "key-1")
    copy = pickle.loads(pickle.dumps(job))
    assert (copy.settings, copy.commit_timeout) == (job.settings, 120.0)

    other = open_job("s3://lake/t10", store=store)
    assert (other.spec.conflict, other.settings) == (Conflict.APPEND, UploadSettings())


def test_what_the_program_says_goes_before_the_file(store: MemoryObjectStore) -> None:
    job = open_job(
        "s3://lake/t",
        conflict="fail",
        scope="directory",
        conditions={},
        commit_timeout=7,
        settings=UploadSettings(),
        encryption=Encryption("AES256"),
        config=parse_config(OPENED, source="x"),
        store=store,
    )
    assert (job.spec.conflict, job.spec.scope) == (Conflict.FAIL, Scope.DIRECTORY)
    assert job.spec.conditions == Conditions()
    assert (job.settings, job.commit_timeout) == (UploadSettings(), 7)
    assert job.encryption == Encryption("AES256")


def test_a_bad_file_is_refused_before_anything_is_written(
    store: MemoryObjectStore, tmp_path: Path
) -> None:
    path = tmp_path / "s3commit.toml"
    path.write_text("[default]\nconflict = 'upsert'\n")
    with pytest.raises(InvalidInputError, match="conflict='upsert'"):
        open_job("s3://lake/t", config=path, store=store)
    assert list(store.list("lake", "")) == []
