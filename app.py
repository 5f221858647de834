"""What `cdk` and `python app.py` run: the stacks, from the parameters in the CDK context."""

from __future__ import annotations

import sys

from stacks.config import ConfigError
from stacks.layers import LayerBuildError
from stacks.pipeline import build

if __name__ == "__main__":
    try:
        build().synth()
    except (ConfigError, LayerBuildError) as error:
        sys.exit(f"s3commit: {error}")
    except RuntimeError as error:
        if "ValidationFailed" not in str(error):
            raise
        sys.exit("s3commit: cdk-nag has findings (above); mend each or acknowledge it")
