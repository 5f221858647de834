"""Every difference between moto and AWS that matters here, patched in one place.

Each patch is one function whose docstring says what AWS does, with its page, and what moto does.
Each has a test of the behaviour in ``tests/local/test_moto_*.py``, or, of S3 and DynamoDB, in the
suite of ``tests/contract``, whose server has these patches.
"""

from s3commit.local.moto_patches import dynamodb, functions, s3, stepfunctions  # noqa: F401 - each registers its patches
from s3commit.local.moto_patches.registry import PATCHES, Patcher, apply_patches

__all__ = ["PATCHES", "Patcher", "apply_patches"]
