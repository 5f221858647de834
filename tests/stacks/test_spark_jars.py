"""The jars for Spark's own file writers are assets, and their URLs outputs."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from stacks.config import ConfigError
from stacks.pipeline import upload_jars


def test_each_jar_has_an_output(tmp_path: Path) -> None:
    for scala in ("2.12", "2.13"):
        (tmp_path / f"s3commit-spark_{scala}-0.1.0.jar").write_bytes(scala.encode())
    (tmp_path / "another.jar").write_bytes(b"")
    app = cdk.App()
    stack = cdk.Stack(app, "S")
    upload_jars(stack, tmp_path)
    outputs = Template.from_stack(stack).find_outputs("*")
    assert set(outputs) == {"SparkJarScala212", "SparkJarScala213"}
    assert all(output["Value"]["Fn::Sub"].endswith(".jar") for output in outputs.values())


def test_without_the_jars_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="run make jar first"):
        upload_jars(cdk.Stack(cdk.App(), "S"), tmp_path)
