"""The embedded runtime: the synthesized template, the real handlers and the real state machine."""

from typing import Final

from s3commit.core.model.errors import S3CommitError

ACCOUNT: Final = "123456789012"
REGION: Final = "us-east-1"
BUCKET: Final = "BUCKET"  # the variable with the data bucket's name, for people and rehearsals


class LocalRuntimeError(S3CommitError):
    """The template cannot be run here, or the runtime cannot start; nothing was changed in AWS."""

    code = "LOCAL_RUNTIME"


class UnsupportedTemplateError(LocalRuntimeError):
    """The template uses something the loader does not know; the message names it."""

    code = "UNSUPPORTED_TEMPLATE"
