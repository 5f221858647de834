"""What a write does about files that are there: mode, options, configuration, session."""

from __future__ import annotations

import pytest

from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Conflict, Scope
from s3commit.spark.options import parse_options
from s3commit.spark.policy import Policy, policy_of
from s3commit.writer.config import Config, parse_config

PATH = "s3://bucket/lake/table"
CONFIG = """
[default]
conflict = "fail"
["s3://bucket/lake/"]
partitionOverwriteMode = "dynamic"
"""


def policy(overwrite: bool, config: Config | None = None, **options: str) -> Policy:
    return policy_of(parse_options({"path": PATH, **options}, config), overwrite=overwrite)


def test_the_mode_goes_first_then_options_then_the_configuration() -> None:
    config = parse_config(CONFIG, source="test")
    whole, parts = Scope.DIRECTORY, Scope.PARTITION
    assert policy(False) == Policy(Conflict.APPEND, whole)
    assert policy(True) == Policy(Conflict.REPLACE, whole)
    assert policy(True, partitionby="k") == Policy(Conflict.REPLACE, whole)
    assert policy(True, partitionby="k", partitionoverwritemode="dynamic").scope is parts
    assert policy(True, partitionby="k", partitionoverwritemode="static").scope is whole
    assert policy(False, conflict="fail", partitionby="k") == Policy(Conflict.FAIL, whole)
    assert policy(False, config) == Policy(Conflict.FAIL, whole)
    assert policy(False, config, conflict="append").conflict is Conflict.APPEND
    assert policy(True, config) == Policy(Conflict.REPLACE, whole)
    assert policy(True, config, partitionby="k") == Policy(Conflict.REPLACE, parts)
    assert policy(True, config, partitionby="k", partitionoverwritemode="static").scope is whole
    by_k = parse_options({"path": PATH, "partitionby": "k"})
    assert policy_of(by_k, overwrite=True, session_scope="Dynamic").scope is parts
    static = parse_options({"path": PATH, "partitionby": "k", "partitionoverwritemode": "static"})
    assert policy_of(static, overwrite=True, session_scope="dynamic").scope is whole


@pytest.mark.parametrize(
    ("overwrite", "options", "says"),
    [
        (True, {"conflict": "append"}, "conflict=append contradicts mode 'overwrite'"),
        (True, {"conflict": "fail"}, "leave the option out, or use mode 'append'"),
        (False, {"conflict": "replace"}, "use mode='overwrite'"),
        (True, {"partitionoverwritemode": "dynamic"}, "give partition_by"),
    ],
)
def test_options_that_contradict_each_other_are_refused_in_one_line(
    overwrite: bool, options: dict[str, str], says: str
) -> None:
    with pytest.raises(InvalidInputError, match=says) as caught:
        policy_of(parse_options({"path": PATH, **options}), overwrite=overwrite)
    assert caught.value.code == "BAD_OPTIONS"
    assert "\n" not in caught.value.message
