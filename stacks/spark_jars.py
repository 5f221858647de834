"""The jars for Spark's own file writers, in the bucket of the CDK's assets."""

from __future__ import annotations

import re
from pathlib import Path

import aws_cdk as cdk
from aws_cdk.aws_s3_assets import Asset
from constructs import Construct

from stacks.config import ConfigError
from stacks.package import PACKAGE

BUILT = PACKAGE / "python" / "s3commit" / "spark" / "jars"
_NAME = re.compile(r"s3commit-spark_(?P<scala>2\.1[23])-[\w.]+\.jar")


class SparkJars(Construct):
    """Uploads the jars and names their URLs in the stack's outputs, ``SparkJarScala213`` and so on.

    Raises `ConfigError` if `make jar` was not run.
    """

    def __init__(self, scope: Construct, construct_id: str, *, built: Path = BUILT) -> None:
        super().__init__(scope, construct_id)
        found = {
            match["scala"]: path
            for path in built.glob("*.jar")
            if (match := _NAME.match(path.name))
        }
        if not found:
            raise ConfigError(
                "parameter s3commit:sparkJars=true needs the jars: run make jar first"
            )
        for scala, path in sorted(found.items()):
            name = f"SparkJarScala{scala.replace('.', '')}"
            asset = Asset(self, name, path=str(path))
            output = cdk.CfnOutput(self, f"{name}Url", value=asset.s3_object_url)
            output.override_logical_id(name)
